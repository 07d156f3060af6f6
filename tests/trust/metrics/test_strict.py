"""The mode `strict`: what pitfalls.md says is right, on small inputs."""

import asyncio
import dataclasses
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trust.metrics.golden import Replay, all_words, one, published, run
from tests.trust.metrics.test_published_cases import DOCS, GOLD
from trust import compat
from trust.ask import Verdict
from trust.errors import ConfigError, RowError
from trust.metrics.trust_score import TrustScore, TrustScoreConfig


def _verdicts(score: Any) -> list[list[tuple[int, str]]]:
    return [[(c["doc"], c["verdict"]) for c in sentence["citations"]] for sentence in score.trace["sentences"]]


@pytest.mark.parametrize(
    ("output", "recall", "precision", "verdicts"),
    [
        ("Alpha beta [1].", 1, 1, [[(1, "supports")]]),
        ("Alpha beta.", 0, None, [[]]),
        ("Alpha beta [1][3].", 1, 0.5, [[(1, "supports"), (3, "irrelevant")]]),
        ("Alpha epsilon [1, 2].", 1, 1, [[(1, "needed"), (2, "needed")]]),
        ("Alpha gamma [1][4].", 1, 0.5, [[(1, "supports"), (4, "irrelevant")]]),
        ("Alpha beta [1][1].", 1, 1, [[(1, "supports"), (1, "duplicate")]]),
        ("Alpha beta [1][3][3].", 1, 0.5, [[(1, "supports"), (3, "irrelevant"), (3, "duplicate")]]),
        ("Alpha delta [0].", 0, 0, [[(0, "out_of_range")]]),
        ("Alpha beta [1]. Delta epsilon [9].", 0.5, 0.5, [[(1, "supports")], [(9, "out_of_range")]]),
        ("Alpha beta [1][9].", 1, 0.5, [[(1, "supports"), (9, "out_of_range")]]),
        ("Alpha beta [3][2][5][1].", 0, 0,
         [[(3, "not_entailed"), (2, "not_entailed"), (5, "not_entailed"), (1, "over_cap")]]),
        ("Alpha beta [1][4][3][2].", 1, 0.5,
         [[(1, "supports"), (4, "supports"), (3, "irrelevant"), (2, "over_cap")]]),
        ("Alpha beta. [1] Delta epsilon. [2]", 1, 1, [[(1, "supports")], [(2, "supports")]]),
        ("Alpha beta [2019] [1].", 1, 0.5, [[(2019, "out_of_range"), (1, "supports")]]),
        ("Zeta eta [1-3].", 1, 1 / 3, [[(1, "irrelevant"), (2, "irrelevant"), (3, "supports")]]),
        ("Letters:\nAlpha beta [1].", 1, 1, [[], [(1, "supports")]]),
    ],
)  # fmt: skip
def test_citations(output: str, recall: float, precision: float | None, verdicts: list[Any]) -> None:
    score = one(output, task="em", answers=GOLD, docs=DOCS)
    assert score.values["citation_recall"] == recall
    assert score.values.get("citation_precision") == pytest.approx(precision)
    assert _verdicts(score) == verdicts


def test_without_a_cap_all_citations_are_judged() -> None:
    config = TrustScoreConfig(at_most_citations=None)
    score = one("Alpha beta [3][2][5][1].", docs=DOCS, config=config)
    assert _verdicts(score)[0][-1] == (1, "supports")
    assert (score.values["citation_recall"], score.values["citation_precision"]) == (1, 0.25)


def test_sentence_and_citation_level_are_both_published() -> None:
    metric = TrustScore(TrustScoreConfig(), "strict")
    rows = [_row(f"Alpha beta [1]. Alpha [1][3][5].{tail}") for tail in ("", " Omega.")]
    result = published(metric, run(metric, rows, Replay(all_words)), "em")
    assert result["answered_citation_rec"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert result["answered_citation_rec_by_sentence"] == pytest.approx(80)
    assert result["answered_citation_prec_by_citation"] == pytest.approx(75)


def _row(output: str | None, task: str = "em", **fields: Any) -> dict[str, Any]:
    base = {"sample_id": "s", "task": task, "language": "en", "question": "q", "answers": GOLD, "docs": DOCS}
    return base | {"output": output} | fields


def test_nothing_empty_is_ever_asked() -> None:
    docs = [{"title": None, "text": "", "answers_found": [0]}, {"title": "T", "text": "", "answers_found": [1]}]
    for output in ("Fact [1].", "[1]", " . ", "", "- \n[1][2]\n", "Fact [1] [2]."):
        for task in ("em", "cm", "none"):
            ask = Replay(lambda premise, hypothesis: 1)
            one(output, task=task, answers=[["", "x"]], docs=docs, ask=ask)
            assert all(premise.strip() and hypothesis.strip() for _, premise, hypothesis in ask.asked)
            assert all(premise == "Title: T" for role, premise, _ in ask.asked if role.startswith("citation"))


def test_independent_asks_go_out_together() -> None:
    waiting = 0
    most = 0

    class Slow(Replay):
        async def entails(self, premise: str, hypothesis: str, **where: Any) -> Verdict:
            nonlocal waiting, most
            waiting += 1
            most = max(most, waiting)
            await asyncio.sleep(0.001)
            waiting -= 1
            return await super().entails(premise, hypothesis, **where)

    ask = Slow(all_words)
    run(TrustScore(TrustScoreConfig(), "strict"), [_row("Alpha [1][4][5]. Delta [2]. Zeta [3].", "cm")], ask)
    assert most >= 5
    assert ("citation_precision", 0, 4) in ask.where
    assert ("citation_recall", 1, 2) in ask.where
    assert ("claim", 1, None) in ask.where


@pytest.mark.parametrize(
    ("output", "response", "answered", "refused"),
    [("C", "answered", 1, 0), ("find", "answered", 1, 0), ("", "empty", 0, 0), ("[2]", "empty", 0, 0),
     ("Sorry, I cannot answer this question.", "refused", 0, 1),
     ("I couldn't find a specific answer; however, the film was released in 1994 [1].", "answered", 1, 0)],
)  # fmt: skip
def test_three_kinds_of_response(output: str, response: str, answered: int, refused: int) -> None:
    score = one(output, task="em", answers=[["C"]], docs=[{"title": "t", "text": "C", "answers_found": [1]}])
    assert score.trace["response"] == response
    assert (score.values["answered"], score.values["refused"]) == (answered, refused)
    assert score.values["empty"] == (response == "empty")
    assert ("citation_recall" in score.values) == bool(answered)


def test_a_refusal_is_found_by_own_phrases_and_named() -> None:
    config = TrustScoreConfig(refusal_phrases=["Computer says no"])
    assert one("Well: computer says NO!", config=config).trace["refusal"] == {
        "ratio": None,
        "phrase": "Computer says no",
    }
    assert one("Well: computer says NO!").values["answered"] == 1


def test_remarks_about_gaps_need_no_citation() -> None:
    score = one("Alpha beta [1]. The documents do not mention omega.", docs=DOCS)
    assert [sentence["recall"] for sentence in score.trace["sentences"]] == [1, None]
    assert score.values["citation_recall"] == 1


@pytest.mark.parametrize(
    ("gold", "output", "language", "found"),
    [("US", "Australia", "en", False), ("10", "In 2010", "en", False), ("10", "In 10 years", "en", True),
     ("US", "the U.S. Army", "en", True), ("北京", "首都是北京市", "zh", True), ("5", "3.5", "en", False),
     ("Kuba", "kuba ndogo", "sw", True), ("ไทย", "ประเทศไทย", "th", True), ("서울", "서울은 수도", "ko", True)],
)  # fmt: skip
def test_matching(gold: str, output: str, language: str, found: bool) -> None:
    docs = [{"title": "t", "text": "x", "answers_found": [1]}]
    score = one(output, task="em", answers=[[gold]], docs=docs, language=language)
    assert score.values["answer_correctness"] == found
    assert score.trace["answers"] == [{"answer": gold, "aliases": [gold], "supported": True, "found": found}]


def test_answers_that_are_nothing_are_left_out() -> None:
    docs = [{"title": "t", "text": "x", "answers_found": [1, 1]}]
    score = one("Paris", task="em", answers=[["The"], ["Paris"]], docs=docs)
    assert score.values["answer_correctness"] == 1
    assert len(score.trace["answers"]) == 1


@pytest.mark.parametrize(
    ("output", "predictions", "correctness"),
    [
        ("Washington, D.C. [1], Paris [1]", ["Washington, D.C.", "Paris"], 1.0),
        ("1. Paris [1]\n2. Washington, D.C. [1]", ["Paris", "Washington, D.C."], 1.0),
        ("Paris, paris, and Washington, D.C.", ["Paris", "Washington, D.C."], 1.0),
        ("Paris\nLondon", ["Paris", "London"], 0.5),
        ("I apologize, but I couldn't find an answer.", [], 0.0),
        ("The", [], 0.0),
    ],
)
def test_lists(output: str, predictions: list[str], correctness: float) -> None:
    docs = [{"title": "t", "text": "Washington D.C. Paris", "answers_found": [1, 1]}]
    score = one(output, task="em5", answers=[["Washington, D.C."], ["Paris"]], docs=docs)
    assert [prediction["text"] for prediction in score.trace["predictions"]] == predictions
    assert score.values["answer_correctness"] == pytest.approx(correctness)


def test_where_wrong_items_come_from_is_not_applicable_without_any() -> None:
    metric = TrustScore(TrustScoreConfig(), "strict")
    docs = [{"title": "t", "text": "Paris and London", "answers_found": [1]}]
    right, wrong = (_row(text, "em5", answers=[["Paris"]], docs=docs) for text in ("Paris", "Paris, London, Rome"))
    result = published(metric, run(metric, [right], Replay(all_words)), "em5")
    assert math.isnan(result["qampari_presence"])
    assert math.isnan(result["qampari_absence"])
    result = published(metric, run(metric, [right, wrong], Replay(all_words)), "em5")
    assert (result["qampari_presence"], result["qampari_absence"]) == (50, 50)


@pytest.mark.parametrize("task", ["em", "em5", "cm"])
def test_unknown_labels_leave_citations(task: str) -> None:
    docs = [doc | {"answers_found": None} for doc in DOCS]
    metric = TrustScore(TrustScoreConfig(), "strict")
    scores = run(metric, [_row("Alpha beta [1].", task, docs=docs)], Replay(all_words))
    assert scores[0].trace["answerable"] is None
    assert scores[0].status == "scored"
    assert not {"answerable", "answer_correctness"} & set(scores[0].values)
    result = published(metric, scores, task)
    assert result["answered_citation_rec"] == (100 if task != "em5" else 0)
    for key in ("refuse_f1", "answerable_f1", "macro_f1", "trust_score"):
        assert math.isnan(result[key])
    assert result["answered_ratio"] == 100


def test_task_none_publishes_refusals_and_citations() -> None:
    metric = TrustScore(TrustScoreConfig(), "strict")
    result = published(metric, run(metric, [_row("Alpha beta [1].", "none")], Replay(all_words)), "none")
    assert result["answerable_f1"] == result["answered_citation_f1"] == 100
    assert not any("em" in key.split("_") or key == "trust_score" for key in result)


def test_half_labelled_rows_fail() -> None:
    docs = [*DOCS[:4], DOCS[4] | {"answers_found": None}]
    with pytest.raises(RowError, match="document 5 has no answers_found"):
        one("x", task="em", answers=GOLD, docs=docs)
    with pytest.raises(RowError, match="only 0 and 1"):
        one("x", task="em", answers=[["a"]], docs=[{"title": "t", "text": "x", "answers_found": [2]}])
    with pytest.raises(RowError, match="known are em, em5, cm, none"):
        one("x", task="qa")


def test_length_counts_characters_where_no_spaces_are_written() -> None:
    assert one("北京是首都 [1]。", language="zh").values["length"] == 6
    assert one("It is so [1].").values["length"] == 3


def test_citations_in_a_format_that_is_not_read_are_counted() -> None:
    metric = TrustScore(TrustScoreConfig(), "strict")
    rows = [_row("Alpha beta (1)."), _row("Alpha beta【1】."), _row("Alpha beta [Document 1].")]
    scores = run(metric, rows, Replay(all_words))
    assert [score.values["citation_recall"] for score in scores] == [0, 1, 1]
    assert published(metric, scores, "em")["uncited_format_num"] == 1
    config = TrustScoreConfig(citation_styles=["round", "square"])
    assert one("Alpha beta (1).", docs=DOCS, config=config).values["citation_recall"] == 1


@pytest.mark.parametrize(
    ("config", "mode", "message"),
    [
        (TrustScoreConfig(at_most_citations=0), "strict", "1 or more"),
        (TrustScoreConfig(refusal_threshold=101), "upstream", "0 to 100"),
        (TrustScoreConfig(citation_styles=["curly"]), "strict", "square, lenticular, round"),
        (TrustScoreConfig(citation_styles=[]), "strict", "empty"),
        (TrustScoreConfig(refusal_phrases=[" "]), "strict", "empty phrase"),
        (TrustScoreConfig(refusal_flag="No."), "strict", "only in compat=upstream"),
        (TrustScoreConfig(refusal_phrases=["No."]), "upstream", "only in compat=strict"),
        (TrustScoreConfig(), "exact", "strict, upstream"),
    ],
)
def test_options_that_are_wrong_or_idle_are_errors(config: TrustScoreConfig, mode: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrustScore(config, mode)


def test_the_fuzzy_rule_can_be_set(nltk_data: Path) -> None:
    config = TrustScoreConfig(refusal_flag="No comment", refusal_threshold=90)
    assert one("No comment.", "upstream", config=config).values["refused"] == 1
    assert one("I apologize, but I couldn't find an answer", "upstream", config=config).values["refused"] == 0


# A row for each choice on which the two settings differ, everything else as in strict.
_DIFFER: dict[str, dict[str, Any]] = {
    "sentences": _row("Alpha beta. [1] Delta epsilon. [2]"),
    "citations": _row("Alpha epsilon [1, 2]."),
    "refusals": _row("The documents do not contain the answer."),
    "correctness_refusals": _row("find", answers=[["find"], ["x"]]),
    "empty": _row(""),
    "matching": _row("alphabet"),
    "lists": _row("alpha\ndelta", "em5"),
    "repeated_predictions": _row("alpha, alpha, omega", "em5"),
    "shared_claim": _row("Alpha gamma [1][4]."),
    "out_of_range": _row("Alpha beta [1][9]."),
    "zero": _row("Alpha delta [0]."),
    "over_cap": _row("Alpha beta [1][4][3][2]."),
    "repeated_citations": _row("Alpha beta [1][3][3]."),
    "statements": _row("Letters:\nAlpha beta [1]."),
    "cited_rows": _row("I cannot answer this question. Alpha."),
    "no_citation": _row("Alpha beta."),
    "premise": _row("Alpha [1].", docs=[{"title": "", "text": "alpha", "answers_found": [1, 0]}]),
    "empty_asks": _row("I cannot answer this question.", "cm"),
    "words": _row("北京", language="zh"),
    "undefined": _row("Alpha beta [1].", docs=[DOCS[0]]),
    "answered_ratio_digits": _row("Alpha"),
}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(compat.Choices)])
def test_every_choice_does_something(name: str, monkeypatch: pytest.MonkeyPatch, nltk_data: Path) -> None:
    seen = []
    for value in (getattr(compat.STRICT, name), getattr(compat.UPSTREAM, name)):
        monkeypatch.setitem(compat.MODES, "strict", dataclasses.replace(compat.STRICT, **{name: value}))
        metric, ask = TrustScore(TrustScoreConfig(), "strict"), Replay(all_words)
        rows = [_DIFFER[name]] * 2 + [_row("", docs=DOCS)] * (name == "answered_ratio_digits")
        scores = run(metric, rows, ask)
        seen.append(repr((published(metric, scores, rows[0]["task"]), scores, ask.asked)))
    assert seen[0] != seen[1]


def test_the_arithmetic_needs_no_heavy_package() -> None:
    code = (
        "import sys; import trust.metrics.trust_score, trust.stats; "
        "print([m for m in ('ray', 'torch', 'vllm', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
