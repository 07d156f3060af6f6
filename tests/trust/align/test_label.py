"""Labels by hand, task by task, and what was asked for them (facts B4; pitfalls B32)."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from trust.align.claims import ClaimsOptions
from trust.align.label import Labelled, Labeller, settled, sub_questions
from trust.ask import AskFailed, Completion, Verdict
from trust.errors import RowError


class Judge:
    """Answers by `rule(premise, hypothesis)`, and keeps what it was asked."""

    def __init__(self, rule: Callable[[str, str], bool] = lambda *_: True, writes: str = "") -> None:
        self._rule, self._writes = rule, writes
        self.pairs: list[tuple[str, str]] = []
        self.places: list[tuple[int | None, int | None]] = []

    async def entails(
        self, premise: str, hypothesis: str, *, role: str = "", sentence: int | None = None, doc: int | None = None
    ) -> Verdict:
        self.pairs.append((premise, hypothesis))
        self.places.append((sentence, doc))
        return Verdict(int(self._rule(premise, hypothesis)), 0.5)

    async def complete(self, *_: Any, **__: Any) -> Completion:
        return Completion(self._writes, "stop", 1, 1)


def doc(text: str, title: str = "") -> dict[str, Any]:
    return {"doc_id": None, "title": title, "text": text, "score": 1.0, "answers_found": None, "rec_score": None}


def row(task: str, answers: list[list[str]], docs: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    base = {"sample_id": "d:1", "question": "Where is it?", "task": task, "language": "en", "references": []}
    return base | {"answers": answers, "docs": docs, "context": {}, "meta": {}} | changes


def label(
    sample: dict[str, Any], judge: Any, compat: str = "strict", claims_by: str | None = None
) -> tuple[Labelled, Counter[str]]:
    counts: Counter[str] = Counter()
    made = Labeller(5, ClaimsOptions(), compat, claims_by)
    return asyncio.run(made.label(sample, judge, counts)), counts


def found(made: Labelled) -> list[list[int]]:
    return [one["answers_found"] for one in made.sample["docs"]]


def test_em_needs_the_words_and_the_entailment_of_one_of_two_hypotheses() -> None:
    asides = json.dumps(["Which town is it in?", None])
    docs = [
        doc("It is in Oslo, or Christiania.", "Hall"),  # the sub-question is entailed
        doc("In Christiania, by the sea."),  # not it, but the question
        doc("Oslo has a hall."),  # neither
        doc("The town is in Norway."),  # words do not match
    ]
    says = {
        ("Title: Hall\nIt is in Oslo, or Christiania.", "Which town is it in? Oslo"),
        ("In Christiania, by the sea.", "Where is it? Oslo"),
        ("The town is in Norway.", "Where is it? Norway"),
    }
    judge = Judge(lambda *pair: pair in says)
    sample = row("em", [["Oslo", "Christiania"], ["Norway"]], docs, context={"sub_questions": asides})
    made, counts = label(sample, judge)
    assert found(made) == [[1, 0], [1, 0], [0, 0], [0, 1]]
    assert [one["rec_score"] for one in made.sample["docs"]] == [50, 50, 0, 50]
    assert judge.pairs.count(("Title: Hall\nIt is in Oslo, or Christiania.", "Where is it? Oslo")) == 0
    assert len(judge.pairs) == 1 + 2 + 2 + 1
    assert set(judge.places) == {(0, 1), (0, 2), (0, 3), (1, 4)}
    assert counts == {
        "pairs": 8,
        "pairs_skipped_by_string": 4,
        "second_hypotheses": 2,
        "pairs_supported": 3,
        "rows_answerable": 1,
    }
    assert len(judge.pairs) == 8 - 4 + 2
    assert [one["text"] for one in made.oracle["docs"]] == [docs[i]["text"] for i in (0, 1, 3, 2)]
    assert sample["docs"][0]["answers_found"] is None, "the row that was read stays as it was"


def test_em5_asks_with_the_question_and_the_first_alias() -> None:
    judge = Judge(lambda premise, _: "made" in premise)
    docs = [doc("Paper was made in China."), doc("Papermaking was old."), doc("A compass was made.")]
    made, _ = label(row("em5", [[" papermaking ", "paper"], ["compass"]], docs, question="What?"), judge)
    assert found(made) == [[1, 0], [0, 0], [0, 1]]
    assert [hypothesis for _, hypothesis in judge.pairs] == ["What? papermaking"] * 2 + ["What? compass"]


def test_cm_asks_about_every_claim_and_no_words() -> None:
    judge = Judge(lambda premise, claim: premise[0] == claim[0])
    made, counts = label(row("cm", [["A claim."], ["B claim."]], [doc("B text"), doc("C text")]), judge)
    assert found(made) == [[0, 1], [0, 0]]
    assert sorted(judge.pairs) == [
        ("B text", "A claim."),
        ("B text", "B claim."),
        ("C text", "A claim."),
        ("C text", "B claim."),
    ]
    assert counts["pairs_skipped_by_string"] == 0


@pytest.mark.parametrize(
    ("alias", "text", "strict", "upstream"),
    [
        ("US", "Australia is large.", 0, 1),  # B32
        ("10", "It was in 2010.", 0, 1),
        ("Paris", "The Eiffel Tower, Paris.", 1, 1),
        ("the Beatles", "Beatles songs", 1, 1),
    ],
)
def test_an_answer_is_found_as_whole_words(alias: str, text: str, strict: int, upstream: int) -> None:
    for compat, expected in (("strict", strict), ("upstream", upstream)):
        judge = Judge()
        made, _ = label(row("em", [[alias]], [doc(text)]), judge, compat)
        assert found(made) == [[expected]]
        assert len(judge.pairs) == expected


def test_a_title_is_a_part_of_the_document() -> None:
    sample = row("em", [["Oslo"]], [doc("It is the capital.", "Oslo")])
    assert found(label(sample, Judge())[0]) == [[1]]
    assert found(label(sample, Judge(), "upstream")[0]) == [[0]], "as published"
    apart = row("em", [["New York"]], [doc("York is old.", "New")])
    assert found(label(apart, Judge())[0]) == [[0]], "half in the title and half in the text is not there"


def test_an_answer_of_nothing_is_refused_and_published_it_is_everywhere() -> None:
    docs = [doc("Anything.")]
    with pytest.raises(RowError, match=r'answers\[1\] is \["The", "!"\]') as told:
        label(row("em", [["Oslo"], ["The", "!"]], docs), Judge())
    assert (told.value.reason, told.value.field) == ("empty_answer", "answers[1]")
    assert found(label(row("em", [["Oslo"], ["The"]], docs), Judge(), "upstream")[0]) == [[0, 1]]
    judge = Judge()
    assert found(label(row("em", [["The", "Oslo"]], [doc("Oslo is here."), *docs]), judge)[0]) == [[1], [0]]
    assert judge.pairs == [("Oslo is here.", "Where is it? Oslo")], "the first alias that says anything"


def test_other_languages_are_matched_by_their_rules() -> None:
    docs = [doc("日本で最も長い川は信濃川である。"), doc("利根川は長い。")]
    made, _ = label(row("em", [["信濃川"]], docs, language="ja", question="最も長い川は何ですか。"), Judge())
    assert found(made) == [[1], [0]]


def test_nobody_is_asked_about_an_empty_document() -> None:
    judge = Judge()
    made, counts = label(row("cm", [["A."]], [doc(" "), doc("Text.")]), judge)
    assert found(made) == [[0], [1]]
    assert counts["pairs_skipped_empty"] == 1
    label(row("cm", [["A."]], [doc(" ")]), published := Judge(), "upstream")
    assert published.pairs == [("Title: \n ", "A.")]


def test_claims_are_written_where_there_are_long_answers_alone() -> None:
    written = json.dumps({"claims": ["One.", "Two.", "Three."]})
    sample = row("cm", [], [doc("One, three.")], references=["A long answer.", "Another."], meta={"split": "train"})
    judge = Judge(lambda _, claim: claim != "Two.", written)
    made, counts = label(sample, judge, claims_by="writer")
    assert made.sample["answers"] == [["One."], ["Two."], ["Three."]]
    assert found(made) == [[1, 0, 1]]
    assert made.sample["meta"] == {"split": "train", "claims_by": "writer"}
    assert made.sample["references"] == ["A long answer.", "Another."]
    assert counts["claims_written"] == 1
    with pytest.raises(RowError, match="choose a model that writes them with judge/complete=") as told:
        label(sample, judge)
    assert told.value.reason == "no_claims_model"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"docs": []}, "no_docs"),
        ({"docs": None}, "no_docs"),
        ({"answers": []}, "no_answers"),
        ({"answers": None}, "no_answers"),
        ({"answers": [], "references": ["Long."]}, "no_answers"),  # of task em: claims are for cm
        ({"answers": [[]]}, "empty_answer"),
        ({"answers": [], "task": "cm", "references": [" "]}, "no_answers"),
        ({"answers": [["."]], "task": "cm"}, "empty_answer"),
        ({"task": "qa"}, "invalid_task"),
        ({"context": {"sub_questions": '["a", "b"]'}}, "sub_questions"),
        ({"context": {"sub_questions": "What?"}}, "sub_questions"),
        ({"context": {"sub_questions": "[1]"}}, "sub_questions"),
    ],
)
def test_a_row_that_cannot_be_labelled_says_why(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowError) as told:
        label(row("em", [["Oslo"]], [doc("Oslo.")]) | changes, Judge(), claims_by="writer")
    assert told.value.reason == reason
    assert told.value.detail


def test_without_sub_questions_the_question_is_asked_once() -> None:
    judge = Judge(lambda *_: False)
    label(row("em", [["Oslo"]], [doc("Oslo.")], context={"sub_questions": '["Where is it?"]'}), judge)
    assert judge.pairs == [("Oslo.", "Where is it? Oslo")]
    assert sub_questions({"context": None, "answers": []}) == []


def test_the_first_failure_is_told_when_all_have_ended() -> None:
    ended = []

    async def fail(place: int) -> int:
        await asyncio.sleep(0.02 - place / 100)
        ended.append(place)
        raise AskFailed("down", str(place))

    with pytest.raises(AskFailed, match="0"):
        asyncio.run(settled([fail(0), fail(1)]))
    assert sorted(ended) == [0, 1]
