"""One row at a time: who writes its positive, what is refused, and what upstream made of the same."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from trust.align.positives import Builder, Positive
from trust.ask import AskFailed, Completion, Verdict
from trust.ask.lexical import LexicalConfig, LexicalJudge
from trust.errors import RowError
from trust.metrics.trust_score import TrustScore, TrustScoreConfig

REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."


class FakeAsk:
    """Writes the given texts, one after the other, and judges by words."""

    def __init__(self, *texts: str | Exception | Completion, judge: Any = None) -> None:
        self._texts = list(texts)
        self._judge = judge or LexicalJudge(LexicalConfig(threshold=1.0))
        self.prompts: list[str] = []
        self.samplings: list[dict[str, Any]] = []
        self.pairs: list[tuple[str, str]] = []

    async def complete(
        self, messages: Any, sampling: dict[str, Any], schema: Any = None, *, role: str = ""
    ) -> Completion:
        assert role == "positive"
        self.prompts.append(messages[0]["content"].split("Now your task:")[1])
        self.samplings.append(sampling)
        text = self._texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return text if isinstance(text, Completion) else Completion(text, "stop", 10, 5)

    async def entails(self, premise: str, hypothesis: str, **where: Any) -> Verdict:
        self.pairs.append((premise, hypothesis))
        (answer,) = self._judge.answer_batch([{"premise": premise, "hypothesis": hypothesis}])
        if isinstance(answer, Exception):
            raise answer
        return answer


def doc(text: str, *found: int, score: float | None = None, **more: Any) -> dict[str, Any]:
    return {"doc_id": None, "title": "", "text": text, "score": score, "answers_found": list(found), **more}


def row(answers: Sequence[Sequence[str] | str], docs: Sequence[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "sample_id": "d:1",
        "dataset": "d",
        "language": "en",
        "task": "em",
        "question": "Which cities?",
        "answers": [[alias] if isinstance(alias, str) else list(alias) for alias in answers],
        "docs": list(docs),
        **changes,
    }


def build(
    sample: dict[str, Any], *texts: Any, compat: str = "strict", ask: FakeAsk | None = None, **options: Any
) -> Any:
    made = Builder(
        compat,
        **{
            "writer": "w",
            "sampling": lambda sample_id, number: {"seed": number},
            "tries": 1,
            "max_citations": {"em": 2, "em5": 1, "cm": 2},
            "max_sentences": 4,
            "refusals": {},
            "check": True,
        }
        | options,
    )
    return asyncio.run(made.build(sample, ask or FakeAsk(*texts)))


def output(*args: Any, **options: Any) -> str:
    made: Positive = build(*args, **options)
    assert made.error is None, made.error
    assert made.output is not None
    return made.output


def reason(*args: Any, **options: Any) -> str:
    made: Positive = build(*args, **options)
    assert made.output is None
    assert made.error is not None
    return made.error.reason


CITIES = row(
    ["Paris", "Lyon"],
    [doc("Noise.", 0, 0), doc("Paris is a city.", 1, 0), doc("Lyon is a city.", 0, 1), doc("Rain.", 0, 0)],
)
LIST = CITIES | {"task": "em5", "question": "city"}
CLAIMS = row(
    ["Paris is large.", "Paris is big and large.", "Lyon is old."],
    [doc("Paris is big and large.", 1, 1, 0), doc("Lyon is old.", 0, 0, 1)],
    task="cm",
)
GOOD = "Paris [Answer Label 1] is a city. Lyon [Answer Label 2] is a city."


def test_a_writer_writes_em_from_the_supporting_documents() -> None:
    ask = FakeAsk(GOOD)
    made = build(CITIES, ask=ask)
    assert made.output == "Paris is a city [2]. Lyon is a city [3]."
    assert (made.by, made.texts, made.deleted, made.tokens) == ("w", 1, 0, (10, 5))
    (prompt,) = ask.prompts
    assert "Noise" not in prompt
    assert "Rain" not in prompt
    assert "[Answer Label 1]: Paris\n[Answer Label 2]: Lyon\n" in prompt


def test_a_writer_writes_cm_from_the_claims_alone() -> None:
    ask = FakeAsk("Paris is big and large [Claim 1][Claim 2]. Lyon is old [Claim 3].")
    assert output(CLAIMS, ask=ask) == "Paris is big and large [1]. Lyon is old [2]."
    (prompt,) = ask.prompts
    assert "Documents:" not in prompt
    assert "[Claim 1]: Paris is large.\n[Claim 2]: Paris is big and large.\n[Claim 3]: Lyon is old.\n" in prompt


def test_only_supported_answers_are_given_to_the_writer() -> None:
    ask = FakeAsk("Lyon [Answer Label 1] is a city.")
    sample = row(["Rome", "Lyon"], [doc("Lyon is a city.", 0, 1)])
    assert output(sample, ask=ask) == "Lyon is a city [1]."
    assert "Rome" not in ask.prompts[0]


# facts.md B7 7: labels are numbered after repeats are taken out, and the published mapper counts the repeats.
TWICE = row(
    ["Paris", "paris!", "Lyon"],
    [doc("Lyon is a city.", 0, 0, 1), doc("Paris is a city.", 1, 1, 0)],
)


def test_labels_after_a_repeat_stand_for_the_right_answer() -> None:
    ask = FakeAsk(GOOD)
    assert output(TWICE, ask=ask) == "Paris is a city [2]. Lyon is a city [1]."
    assert "Short answers:\n[Answer Label 1]: Paris\n[Answer Label 2]: Lyon\n\n" in ask.prompts[0]


def test_upstream_labels_after_a_repeat_point_to_the_wrong_answer() -> None:
    ask = FakeAsk(GOOD)
    assert output(TWICE, ask=ask, compat="upstream", check=False) == "Paris is a city [2]. Lyon is a city [2]."
    assert "Short answers:\n[Answer Label 1]: Paris\n[Answer Label 2]: Lyon\n\n" in ask.prompts[0]


@pytest.mark.usefixtures("nltk_data")
def test_what_upstream_points_to_the_wrong_answer_is_not_perfect_by_upstreams_own_metric() -> None:
    assert reason(TWICE, GOOD, compat="upstream") == "not_perfect"


def test_a_label_of_several_answers_may_be_cited_from_either_document() -> None:
    sample = row(["Paris", "Paris"], [doc("It is Paris.", 1, 0, score=1.0), doc("It is Paris.", 0, 1, score=2.0)])
    assert output(sample, "It is Paris [Answer Label 1].") == "It is Paris [2]."


def test_the_score_that_decides_between_equal_documents() -> None:
    docs = [doc("It is old.", 1, score=2.0, rec_score=1.0), doc("It is old.", 1, score=1.0, rec_score=2.0)]
    sample, text = row(["It is old."], docs, task="cm"), "It is old [Claim 1]."
    assert output(sample, text) == "It is old [1]."
    caps = {"em": 1, "em5": 1, "cm": 1}
    assert output(sample, text, compat="upstream", check=False, max_citations=caps) == "It is old [2]."


# pitfalls.md B67
def test_a_failed_generation_is_a_failed_row_and_never_a_refusal() -> None:
    for compat in ("strict", "upstream"):
        made = build(CITIES, AskFailed("timeout", "the endpoint did not answer"), compat=compat, tries=3)
        assert (made.output, made.error.reason, made.texts) == (None, "timeout", 0)


# pitfalls.md B66
@pytest.mark.parametrize("compat", ["strict", "upstream"])
@pytest.mark.parametrize("text", ["Paris is it [1].", "", REFUSAL])
def test_a_text_without_tags_is_no_empty_positive(compat: str, text: str) -> None:
    assert reason(CITIES, text, compat=compat, check=False) == "no_tagged_sentence"


# pitfalls.md B64
def test_no_tag_is_left_in_a_target() -> None:
    sample = row(["Paris"], [doc("Paris is it.", 1)], task="cm")
    for compat in ("strict", "upstream"):
        assert output(sample, "Paris is it [Claim 1].", compat=compat, check=False) == "Paris is it [1]."
    assert reason(sample, "Paris [Claim 2] is it [Claim 1].") == "unknown_bracket"


# pitfalls.md B68
def test_a_sentence_that_needs_too_many_documents_is_refused() -> None:
    docs = [doc(f"{name} is a city.", *(int(name == other) for other in "ABC")) for name in "ABC"]
    sample = row(["A", "B", "C"], docs)
    text = "A [Answer Label 1], B [Answer Label 2] and C [Answer Label 3] are cities."
    assert reason(sample, text, check=False) == "too_many_citations"
    assert output(sample, text, compat="upstream", check=False) == "A, B and C are cities [1][2][3]."


def test_too_many_sentences_and_texts_that_were_cut_off_are_refused() -> None:
    text = " ".join(["Paris [Answer Label 1] is a city."] * 5)
    assert reason(CITIES, text, check=False) == "too_many_sentences"
    assert reason(CITIES, Completion(GOOD, "length", 10, 5)) == "cut_off"


def test_sentences_without_a_tag_are_counted() -> None:
    made = build(CITIES, f"Here you go. {GOOD} I hope this helps.")
    assert (made.output, made.deleted) == ("Paris is a city [2]. Lyon is a city [3].", 2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Paris [Answer Label 1] is a city.", "answer_correctness is 0.5, not 1"),
        ("Paris [Answer Label 1] is a huge city. Lyon [Answer Label 2] is a city.", "citation_recall is 0.5, not 1"),
        (
            "Paris [Answer Label 1][Answer Label 2] is a city. Lyon [Answer Label 2] is a city.",
            "citation_precision is 0.6667",
        ),
        ("I cannot answer the question about Paris [Answer Label 1] and Lyon [Answer Label 2].", "read as refused"),
    ],
)
def test_what_our_own_metrics_do_not_score_as_perfect_is_refused(text: str, told: str) -> None:
    docs = [doc("I cannot answer the question about Paris and Lyon.", 0, 0), *CITIES["docs"]]
    made = build(CITIES | {"docs": docs}, text)
    assert made.error.reason == "not_perfect"
    assert told in made.error.detail


# pitfalls.md B73
def test_one_sentence_may_hold_all_answers() -> None:
    sample = row(["Paris", "Lyon"], [doc("Paris and Lyon are cities.", 1, 1)])
    assert (
        output(sample, "Paris [Answer Label 1] and Lyon [Answer Label 2] are cities.")
        == "Paris and Lyon are cities [1]."
    )


def test_the_check_can_be_left_out() -> None:
    ask = FakeAsk("Paris [Answer Label 1] is a huge city.")
    assert output(CITIES, ask=ask, check=False) == "Paris is a huge city [2]."
    assert ask.pairs == []


def test_a_refused_text_is_written_again_with_another_seed() -> None:
    ask = FakeAsk("Paris is a city.", "Paris [Answer Label 1] is a city.", GOOD, "never asked for")
    made = build(CITIES, ask=ask, tries=4)
    assert made.output == "Paris is a city [2]. Lyon is a city [3]."
    assert (made.texts, dict(made.refused)) == (3, {"no_tagged_sentence": 1, "not_perfect": 1})
    assert made.tokens == (30, 15)
    assert [sampling["seed"] for sampling in ask.samplings] == [0, 1, 2]
    builder = Builder("strict", "w", lambda _, number: {"seed": number}, 4, {"em": 2}, 4, {}, False)
    ask = FakeAsk("No.", GOOD)
    asyncio.run(builder.build(CITIES, ask, before=2))  # type: ignore[arg-type]
    assert [sampling["seed"] for sampling in ask.samplings] == [8, 9], "a row that failed twice gets seeds of its own"


def test_a_row_fails_with_the_last_reason_when_all_texts_are_refused() -> None:
    made = build(CITIES, "No.", "Paris [Answer Label 1] is a city.", tries=2)
    assert made.error.reason == "not_perfect"
    assert made.error.detail.startswith("the last of 2 texts was refused: answer_correctness is 0.5")


def test_a_judge_that_cannot_answer_fails_the_row_and_nothing_is_written_again() -> None:
    class Down:
        def answer_batch(self, pairs: Any) -> list[Any]:
            return [AskFailed("judge_error", "down") for _ in pairs]

    made = build(CITIES, ask=FakeAsk(GOOD, judge=Down()), tries=3)
    assert (made.error.reason, made.texts) == ("judge_error", 1)


def test_a_list_is_assembled_without_a_model() -> None:
    docs = [
        doc("Paris city. Lyon city.", 1, 0, 1, 0, score=1.0),
        doc("Paris city.", 1, 1, 0, 0, score=9.0),
        doc("Rain.", 0, 0, 0, 0),
    ]
    sample = row([["Paris", "Lutetia"], ["paris"], ["Lyon"], ["Rome"]], docs, task="em5", question="city")
    ask = FakeAsk()
    assert output(sample, ask=ask, writer=None) == "Paris [2], Lyon [1]."
    assert build(sample, ask=FakeAsk()).by == "assembled"
    assert output(sample, ask=FakeAsk(), compat="upstream", check=False) == "Paris [2], Lyon [1]."


def test_an_answer_that_no_list_holds_is_written_by_another_alias_or_refused() -> None:
    text = "Washington, D.C. city"
    sample = row([["Washington, D.C.", "Washington"]], [doc(text, 1)], task="em5", question="city")
    assert output(sample) == "Washington [1]."
    assert output(sample, compat="upstream", check=False) == "Washington, D.C. [1]."
    assert reason(sample | {"answers": [["Washington, D.C."]]}) == "not_perfect"
    assert reason(sample | {"answers": [["Washington [4]"]]}, check=False) == "unknown_bracket"


@pytest.mark.parametrize(
    ("language", "answers", "text", "expected"),
    [
        ("zh", ["北京", "上海"], "城市北京上海", "北京[1]、上海[1]。"),
        ("ja", ["東京", "大阪"], "城市東京大阪", "東京[1]、大阪[1]。"),
        ("ar", ["القاهرة", "بغداد"], "城市 القاهرة بغداد", "القاهرة [1]، بغداد [1]."),
        ("hi", ["दिल्ली", "मुंबई"], "城市 दिल्ली मुंबई", "दिल्ली [1], मुंबई [1]।"),
        ("en", ["U.S.", "1,000"], "城市 U.S. 1,000", "U.S. [1], 1,000 [1]."),
    ],
)
def test_lists_of_other_languages_are_perfect_too(language: str, answers: list[str], text: str, expected: str) -> None:
    sample = row(answers, [doc(text, 1, 1)], task="em5", language=language, question="城市")
    assert output(sample) == expected


@pytest.mark.parametrize("docs", [[], [doc("Noise.", 0, 0)]])
@pytest.mark.parametrize("task", ["em", "em5", "cm"])
def test_what_the_documents_do_not_answer_is_refused(docs: list[dict[str, Any]], task: str) -> None:
    ask = FakeAsk()
    made = build(CITIES | {"docs": docs, "task": task}, ask=ask, writer=None)
    assert (made.by, made.output, made.texts) == ("refusal", REFUSAL, 0)
    assert ask.pairs == []


def test_a_refusal_is_in_the_rows_language_and_is_checked() -> None:
    silent = CITIES | {"docs": [doc("Lärm.", 0, 0)]}
    assert output(silent | {"language": "de-AT"}).startswith("Es tut mir leid, aber ich konnte")
    assert reason(silent | {"language": "it"}) == "no_refusal_sentence"
    made = build(silent, refusals={"en": "Paris."})
    assert made.error.reason == "not_perfect"
    assert "it is read as answered, not refused: 'Paris.'" in made.error.detail


@pytest.mark.usefixtures("nltk_data")
def test_upstreams_own_metric_finds_a_good_positive_perfect() -> None:
    assert output(CITIES, GOOD, compat="upstream") == "Paris is a city [2]. Lyon is a city [3]."
    assert output(CITIES | {"docs": []}, compat="upstream") == REFUSAL


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"docs": None}, "no_docs"),
        ({"docs": [{"text": "x", "answers_found": None}]}, "no_labels"),
        ({"docs": [doc("x", 1)]}, "answers_found_length"),
        ({"docs": [doc("x", 1, 0), {"text": "y", "answers_found": None}]}, "answers_found_missing"),
        ({"docs": [doc("x", 1, 2)]}, "answers_found_value"),
        ({"answers": [["..."], []], "docs": [doc("x", 1, 1)]}, "no_usable_answer"),
        ({"answers": [], "docs": [doc("x", 1, 1)]}, "no_usable_answer"),
        ({"task": "none"}, "no_recipe"),
        ({"task": "qa"}, "invalid_task"),
        ({"docs": [{"title": "x", "text": None, "answers_found": [1, 1]}]}, "doc_without_text"),
    ],
)
def test_rows_that_cannot_be_read_fail_with_a_reason(changes: dict[str, Any], expected: str) -> None:
    assert reason(CITIES | changes) == expected


def test_without_a_writer_what_needs_one_fails() -> None:
    assert reason(CITIES, writer=None) == "no_writer"


def test_a_positive_is_scored_as_the_metric_scores_it_in_an_evaluation() -> None:
    positive = output(CITIES, GOOD)
    metric = TrustScore(TrustScoreConfig(), "strict")
    result = asyncio.run(metric.row(CITIES | {"output": positive}, FakeAsk()))  # type: ignore[arg-type]
    names = ("answer_correctness", "citation_recall", "citation_precision", "answered")
    assert [result.values[name] for name in names] == [1.0, 1.0, 1.0, 1.0]


def test_errors_are_told_as_they_are() -> None:
    made = build(CITIES, "Paris [7] is a city [Answer Label 1].")
    assert isinstance(made.error, RowError)
    assert "'Paris [7] is a city [Answer Label 1].'" in made.error.detail


def test_the_arithmetic_needs_no_heavy_package() -> None:
    code = (
        "import sys; import trust.align.positives; "
        "print([m for m in ('ray', 'torch', 'vllm', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
