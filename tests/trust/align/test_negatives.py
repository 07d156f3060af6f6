"""The five errors and their severity, on hand-made responses (facts.md B1, B6; pitfalls B73-B75)."""

import asyncio
from typing import Any

import pytest

from tests.trust.metrics.golden import Replay
from tests.trust.report.helpers import response
from trust.align.negatives import Errors, Labeller, Weights, totals, types_of
from trust.errors import ConfigError, RowError
from trust.metrics.trust_score import TrustScoreConfig

SORRY = "I apologize, but I couldn't find an answer to your question in the search results."
CITIES = {
    "question": "Which cities are there?",
    "answers": [["Paris"], ["Lyon"]],
    "docs": [{"doc_id": "a", "title": "", "text": "Paris and Lyon are cities.", "answers_found": [1, 1]}],
}
FIRST, SECOND = "The Angara flows out of Lake Baikal", "The Murray is a river"


def words(premise: str, hypothesis: str) -> int:
    """A judge that says yes where the premise holds every word."""
    return int(set(hypothesis.lower().rstrip(".").split()) <= set(premise.lower().replace(".", "").split()))


def label(row: dict[str, Any], compat: str = "strict", **options: Any) -> Errors:
    return asyncio.run(Labeller(TrustScoreConfig(**options), compat).label(row, Replay(words)))


def unanswerable(output: str) -> dict[str, Any]:
    row = response(0, output)
    return row | {"docs": [doc | {"answers_found": [0]} for doc in row["docs"]]}


@pytest.mark.parametrize(
    ("row", "sizes", "severity", "primary"),
    [
        (response(0, f"{FIRST} [1]."), (0, 0, 0, 0, 0), 0, None),
        (response(0, SORRY), (1, 0, 0, 0, 0), 0.5, "unwarranted_refusal"),
        (unanswerable(f"{FIRST} [1]."), (0, 1, 0, 0, 0), 0.5, "over_responsiveness"),
        (unanswerable(SORRY), (0, 0, 0, 0, 0), 0, None),
        # The second document is not needed: 1 of 2 citations is right.
        (response(0, f"{FIRST} [1][2]."), (0, 0, 0.5, 0, 0), 0.17, "overcitation"),
        # Of two sentences one is supported, and 1 of 2 citations is right: 0.34 x 0.5 + 0.26 x 0.5.
        (response(0, f"{FIRST} [1]. {SECOND} [1]."), (0, 0, 0.5, 0.5, 0), 0.30, "overcitation"),
        # All three at once are the most severe there is.
        (response(0, f"{SECOND} [1]."), (0, 0, 1, 1, 1), 1.0, "inaccurate_claims"),
        # No citation: nothing is cited too much, the only sentence is not supported.
        (response(0, f"{FIRST}."), (0, 0, 0, 1, 0), 0.26, "improper_citation"),
    ],
)
def test_severities(row: dict[str, Any], sizes: tuple[float, ...], severity: float, primary: str | None) -> None:
    found = label(row)
    assert found.sizes == sizes
    assert found.severity(Weights()) == pytest.approx(severity, abs=1e-12)
    assert found.primary(Weights()) == primary


def test_half_of_the_answers_is_half_of_the_correctness() -> None:
    row = response(0, "Paris is there.", **CITIES)
    assert label(row).sizes[4] == 0.5
    assert label(response(0, "Paris, nope", **CITIES, task="em5")).sizes[4] == pytest.approx(0.5), "P 1/2, R@5 1/2"
    claims = CITIES | {"answers": [["Paris is there"], ["Lyon is there"]]}
    assert label(response(0, "Paris is there.", **claims, task="cm")).sizes[4] == 0.5


def test_one_sentence_may_hold_several_gold_answers() -> None:  # B73
    row = response(0, "Paris and Lyon are cities [1].", **CITIES)
    assert label(row).sizes == (0, 0, 0, 0, 0)


@pytest.mark.usefixtures("nltk_data")
def test_as_published_a_sentence_satisfies_one_gold_answer() -> None:  # B6
    row = response(0, "Paris and Lyon are cities [1].", **CITIES)
    assert label(row, "upstream").sizes == (0, 0, 0, 0, 0.5)
    two = response(0, "Lyon is one [1]. Paris is one [1].", **CITIES)
    assert label(two, "upstream").sizes[4] == 0
    claims = CITIES | {"answers": [["Paris is there"], ["Lyon is there"]]}
    both = response(0, "Paris and Lyon is there.", **claims, task="cm")
    assert (label(both).sizes[4], label(both, "upstream").sizes[4]) == (0, 0.5)


@pytest.mark.usefixtures("nltk_data")
def test_as_published_citations_have_no_cap_and_none_is_a_precision_of_0() -> None:
    docs = [{"doc_id": t, "title": "", "text": t, "answers_found": [1]} for t in ("Angara", "b", "c", "d")]
    row = response(0, "Angara b c d [1][2][3][4].", docs=docs)
    assert label(row).sizes[3] == 1, "the fourth document is not read"
    assert label(row, "upstream").sizes[3] == 0
    assert label(response(0, f"{FIRST}."), "upstream").sizes[2:] == (1, 1, 0)


@pytest.mark.parametrize("compat", ["strict", "upstream"])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"answers": []}, "no_answers"),  # B74
        ({"output": ""}, "empty_output"),  # B74
        ({"output": " [1] "}, "empty_output"),
        ({"task": "none"}, "no_correctness"),
        ({"docs": [{"text": "a", "answers_found": None}]}, "no_labels"),
        ({"docs": None}, "no_docs"),
    ],
)
@pytest.mark.usefixtures("nltk_data")
def test_what_cannot_be_labelled_says_why(changes: dict[str, Any], reason: str, compat: str) -> None:
    row = response(0, f"{FIRST} [1].")
    if changes.get("answers") == []:
        row["docs"] = [doc | {"answers_found": []} for doc in row["docs"]]
    with pytest.raises(RowError) as error:
        label(row | changes, compat)
    assert error.value.reason == reason


def test_gold_answers_that_cannot_be_compared_are_no_wrong_answer() -> None:
    with pytest.raises(RowError) as error:
        label(response(0, "It is this [1].", answers=[["!"]]))
    assert error.value.reason == "unmatchable_answers"


def test_totals_reconcile() -> None:  # B75
    rows = []
    for row in (response(0, SORRY), response(0, f"{SECOND} [1]."), response(0, f"{FIRST} [1]."), unanswerable(FIRST)):
        found = label(row)
        sizes = {f"e_{number}": size for number, size in enumerate(found.sizes, 1)}
        rows.append(sizes | {"answerable": found.answerable, "primary_type": found.primary(Weights())})
    assert totals(rows) == {
        "with_error": 3,
        "with_error:answerable": 2,
        "with_error:unanswerable": 1,
        "primary:unwarranted_refusal": 1,
        "primary:inaccurate_claims": 1,
        "primary:over_responsiveness": 1,
        "type:unwarranted_refusal": 1,
        "type:overcitation": 1,
        "type:improper_citation": 1,
        "type:inaccurate_claims": 1,
        "type:over_responsiveness": 1,
    }
    assert types_of(rows[1]) == ["overcitation", "improper_citation", "inaccurate_claims"]


def test_weights_decide_what_an_error_is() -> None:
    found = Errors(True, (0, 0, 0.5, 0, 0.5))
    assert found.primary(Weights()) == "inaccurate_claims"
    assert found.primary(Weights(overcitation=0.4)) == "overcitation", "the first of equals"
    nothing = Weights(overcitation=0, inaccurate_claims=0)
    assert (found.severity(nothing), found.primary(nothing)) == (0, None)
    with pytest.raises(ConfigError, match=r"weights\.overcitation=-1: must be a number, 0 or more"):
        Weights(overcitation=-1)
    with pytest.raises(ConfigError, match="all are 0"):
        Weights(0, 0, 0, 0, 0)
