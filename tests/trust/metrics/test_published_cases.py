"""The mode `upstream` on the small cases of facts.md A2 and A5: formulas and bookkeeping, not the model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.golden import Replay, all_words, one, published, run
from trust.metrics.trust_score import TrustScore, TrustScoreConfig

DOCS = [
    {"title": "d", "text": text, "answers_found": found}
    for text, found in (
        ("alpha beta gamma", [1, 0]),
        ("delta epsilon", [0, 1]),
        ("zeta eta", [0, 0]),
        ("alpha beta theta", [1, 0]),
        ("alpha delta", [0, 0]),
    )
]
GOLD = [["alpha"], ["delta"]]


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _cited(
    output: str, docs: list[dict[str, Any]] = DOCS, task: str = "em", question: str = "q"
) -> tuple[float, float]:
    score = one(output, "upstream", task, answers=GOLD, docs=docs, question=question)
    return 100 * score.values["citation_recall"], 100 * score.values["citation_precision"]


@pytest.mark.parametrize(
    ("output", "recall", "precision"),
    [
        ("Alpha beta [1].", 100, 100),
        ("Alpha beta.", 0, 0),
        ("Alpha beta [1][3].", 100, 50),
        ("Alpha epsilon [1][2].", 100, 100),
        ("Alpha gamma [1][4].", 100, 100),
        ("Alpha beta [1][1].", 100, 100),
        ("Alpha beta [1][3][3].", 100, 100 / 3),
        ("Alpha delta [0].", 100, 100),
        ("Alpha beta [1]. Delta epsilon [9].", 50, 100),
        ("Alpha beta [1][9].", 0, 0),
        ("Alpha beta [3][2][5][1].", 0, 0),
        ("Alpha epsilon [1, 2].", 0, 0),
        ("Alpha beta. [1] Delta epsilon. [2]", 100 / 3, 50),
        ("Alpha beta [2019] [1].", 0, 0),
    ],
)
def test_citations(output: str, recall: float, precision: float, nltk_data: Path) -> None:
    assert _cited(output) == (pytest.approx(recall), pytest.approx(precision))


def test_the_third_condition_needs_a_shared_gold_answer(nltk_data: Path) -> None:
    docs = [*DOCS[:3], DOCS[3] | {"answers_found": [0, 0]}, DOCS[4]]
    assert _cited("Alpha gamma [1][4].", docs) == (100, 50)


@pytest.mark.parametrize(
    ("output", "recall", "precision"),
    [("alpha [1], delta [2], nope [1].", 200 / 3, 200 / 3), ("alpha [1], delta", 50, 100)],
)
def test_citations_of_lists_are_judged_with_the_question(output: str, recall: float, precision: float) -> None:
    docs = [doc | {"title": "which letters"} for doc in DOCS]
    found = _cited(output, docs, "em5", "which letters")
    assert found == (pytest.approx(recall), pytest.approx(precision))


def _rows(task: str, outputs: list[str], supported: list[list[int]], gold: list[list[str]]) -> list[dict[str, Any]]:
    return [
        {
            "sample_id": str(i),
            "task": task,
            "language": "en",
            "question": "q",
            "answers": gold,
            "output": output,
            "docs": [{"title": "d", "text": "alpha beta gamma", "answers_found": found}],
        }
        for i, (output, found) in enumerate(zip(outputs, supported, strict=True))
    ]


def _publish(task: str, outputs: list[str], supported: list[list[int]], gold: list[list[str]]) -> dict[str, float]:
    metric = TrustScore(TrustScoreConfig(), "upstream")
    return published(metric, run(metric, _rows(task, outputs, supported, gold), Replay(all_words)), task)


def test_an_empty_output_is_in_no_citation_average(nltk_data: Path) -> None:
    result = _publish("em", ["Alpha beta [1].", ""], [[1, 0], [1, 0]], GOLD)
    assert [result[f"answered_citation_{key}"] for key in ("rec", "prec", "f1")] == [100, 100, 100]


def test_supported_answers_alone_are_calibrated(nltk_data: Path) -> None:
    result = _publish("em", ["alpha and delta"], [[1, 0]], GOLD)
    assert (result["regular_str_em"], result["calib_answered_str_em"], result["parametric_str_em"]) == (100, 100, 50)


@pytest.mark.parametrize(("alias", "output"), [("5", "1950 people"), ("The", "nothing")])
def test_substrings_and_empty_aliases_match(alias: str, output: str, nltk_data: Path) -> None:
    assert _publish("em", [output], [[1]], [[alias]])["calib_answered_str_em"] == 100


def test_four_items(nltk_data: Path) -> None:
    refusal = "I apologize, but I couldn't find an answer to your question in the search results."
    outputs = ["alpha delta", "alpha", "alpha delta", refusal]
    result = _publish("em", outputs, [[1, 1], [1, 1], [0, 0], [1, 0]], GOLD)
    want = {
        "regular_str_em": 62.5,
        "answered_str_em": 250 / 3,
        "calib_answered_str_em": 50,
        "calib_answerable_str_em": 50,
        "calib_str_em_f1": 50,
        "parametric_str_em": 100 / 3,
        "answerable_prec": 200 / 3,
        "answerable_rec": 200 / 3,
        "answerable_f1": 200 / 3,
        "refuse_f1": 0,
        "macro_f1": 100 / 3,
    }
    assert {key: result[key] for key in want} == pytest.approx(want)


def test_lists_with_an_unsupported_answer() -> None:
    result = _publish("em5", ["Alpha, Dee, Gam, nope."], [[1, 1, 0]], [["Alpha"], ["Delta", "Dee"], ["Gam"]])
    keys = ("qampari_prec", "qampari_rec", "qampari_f1")
    assert [result[f"calib_answered_{key}"] for key in keys] == pytest.approx([50, 100, 200 / 3])
    assert [result[f"regular_{key}"] for key in keys] == pytest.approx([75, 100, 600 / 7])


def test_recall_is_capped_at_five() -> None:
    gold = [[f"a{i}"] for i in range(8)]
    result = _publish("em5", [", ".join(f"a{i}" for i in range(6))], [[1] * 8], gold)
    found = [result[f"calib_answered_qampari_{key}"] for key in ("rec", "rec_top5", "f1", "f1_top5")]
    assert found == pytest.approx([75, 100, 600 / 7, 100])


def test_claims(nltk_data: Path) -> None:
    result = _publish("cm", ["alpha beta delta"], [[1, 0, 1]], [["alpha beta"], ["delta"], ["omega"]])
    keys = ("regular_claims_nli", "calib_answered_claims_nli", "parametric_answered_claims_nli")
    assert [result[key] for key in keys] == pytest.approx([200 / 3, 50, 100 / 3])


def _sums(**counts: float) -> dict[str, np.ndarray]:
    metric = TrustScore(TrustScoreConfig(), "upstream")
    return {name: np.array([counts.get(name, 0.0)]) for name in metric.terms}


@pytest.mark.parametrize("compat", ["upstream", "strict"])
def test_documented_toy_result(compat: str) -> None:
    """Ten items, seven answerable, five answered, all five correct; citation recall 50 and precision 60."""
    sums = _sums(
        rows=10,
        known=10,
        answered=5,
        answerable=7,
        unanswerable=3,
        known_answered=5,
        known_refused=5,
        answered_answerable=5,
        refused_unanswerable=3,
        ac_known_answered_rows=5,
        ac_answerable_rows=7,
        ac_both_rows=5,
        ac_calib_answered=5,
        ac_calib_answerable=5,
        answered_cite_rows=5,
        answered_cite_prec_rows=5,
        answered_cite_rec=2.5,
        answered_cite_prec=3,
    )
    stats = TrustScore(TrustScoreConfig(), compat).final(sums, "em")
    result = {key: float(stat.value[0]) for key, stat in stats.items()}
    want = {
        "refuse_rec": 100,
        "refuse_prec": 60,
        "refuse_f1": 75,
        "answerable_rec": 71.43,
        "answerable_prec": 100,
        "answerable_f1": 83.33,
        "macro_avg": 85.71,
        "macro_f1": 79.17,
        "calib_answered_str_em": 100,
        "calib_answerable_str_em": 71.43,
        "calib_str_em_f1": 83.33,
        "answered_citation_rec": 50,
        "answered_citation_prec": 60,
        "answered_citation_f1": 54.55,
        "trust_score": 72.348,
    }
    assert {key: result[key] for key in want} == pytest.approx(want, abs=0.006)
    assert stats["refuse_prec"].successes == 3
    assert stats["refuse_prec"].n == 5
    assert stats["calib_str_em_f1"].n == 7
    assert stats["trust_score"].n == 10


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "answered", "refused"),
    [(610, 338, 39.15, 26.28), (295, 705, 22.78, 41.35), (207, 793, 17.15, 44.23), (682, 1487, 23.92, 40.67)],
)
def test_closed_forms(answerable: int, unanswerable: int, answered: float, refused: float) -> None:
    rows = answerable + unanswerable
    base = {"rows": rows, "known": rows, "answerable": answerable, "unanswerable": unanswerable}
    metric = TrustScore(TrustScoreConfig(), "upstream")
    every = _sums(**base, answered=rows, known_answered=rows, answered_answerable=answerable)
    none = _sums(**base, known_refused=rows, refused_unanswerable=unanswerable)
    assert metric.final(every, "em")["macro_f1"].value[0] == pytest.approx(answered, abs=0.006)
    assert metric.final(none, "em")["macro_f1"].value[0] == pytest.approx(refused, abs=0.006)


@pytest.mark.parametrize(
    ("answerable", "total", "answered", "overlap"),
    [(610, 948, 535, 416), (295, 1000, 224, 147), (207, 1000, 155, 73), (610, 948, 619, 468), (295, 1000, 323, 188)],
)
def test_grounded_refusals_by_the_closed_form(answerable: int, total: int, answered: int, overlap: int) -> None:
    unanswerable, refused = total - answerable, total - answered
    right = unanswerable - (answered - overlap)
    stats = TrustScore(TrustScoreConfig(), "strict").final(
        _sums(
            rows=total,
            known=total,
            answered=answered,
            answerable=answerable,
            unanswerable=unanswerable,
            known_answered=answered,
            known_refused=refused,
            answered_answerable=overlap,
            refused_unanswerable=right,
        ),
        "em",
    )
    want = 100 * (right / (refused + unanswerable) + overlap / (answered + answerable))
    assert stats["macro_f1"].value[0] == pytest.approx(want)
    assert stats["answered_ratio"].value[0] == pytest.approx(100 * answered / total)
    assert f1(stats["answerable_prec"].value[0], stats["answerable_rec"].value[0]) == pytest.approx(
        stats["answerable_f1"].value[0]
    )
