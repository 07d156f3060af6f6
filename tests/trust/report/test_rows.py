"""Rows as the page embeds them."""

import json
from typing import Any

import pytest

from tests.trust.report.helpers import response
from trust.report.explain import verdicts
from trust.report.rows import shape

KNOWN = verdicts("strict")


def scored(trace: dict[str, Any] | None = None, **values: float) -> dict[str, Any]:
    return {
        "metric": "trust_score",
        "status": "scored",
        "reason": None,
        "detail": None,
        "values": values,
        "trace": json.dumps(trace) if trace is not None else None,
    }


def shaped(row: dict[str, Any], *scores: dict[str, Any]) -> dict[str, Any]:
    return shape(row, list(scores), KNOWN)


def test_documents_name_the_answers_they_hold() -> None:
    docs = shaped(response(1, "Angara [1]."), scored())["docs"]
    assert [(doc["n"], doc["title"], doc["holds"]) for doc in docs] == [(1, "Baikal", ["Angara"]), (2, "Murray", [])]


def test_far_documents_stay_only_where_they_matter() -> None:
    plain = {"doc_id": "x", "title": "t", "text": "x", "answers_found": [0]}
    docs = [*([plain] * 30), plain | {"answers_found": [1]}, *([plain] * 9)]
    trace = {"sentences": [{"text": "s", "recall": 1, "citations": [{"doc": 25, "verdict": "supports", "p_yes": 1.0}]}]}
    row = shaped(response(1, "s [25]", docs=docs), scored(trace))
    assert [doc["n"] for doc in row["docs"]] == [*range(1, 21), 25, 31]
    assert row["docs_left"] == 18


def test_long_texts_are_cut_and_say_so() -> None:
    row = shaped(response(1, "x" * 50_000), scored())
    assert row["output"] == "x" * 20_000 + " […30,000 more characters]"


def test_the_question_before_a_list_item_is_not_repeated() -> None:
    question = response(1, "")["question"]
    sentence = {"text": f"{question} Angara [1]", "recall": 1, "citations": []}
    row = shaped(response(1, "Angara [1]", task="em5"), scored({"sentences": [sentence]}))
    assert row["sentences"][0]["text"] == "Angara [1]"


def test_a_failed_response_says_why() -> None:
    failed = scored() | {"status": "failed", "reason": "no_response", "detail": "the response failed", "values": None}
    row = shaped(response(1, None), failed)
    assert (row["status"], row["reason"], row["output"]) == ("failed", "too_long", None)
    assert row["detail"].startswith("the prompt has 9000 tokens")


def test_a_failed_score_outweighs_a_good_one() -> None:
    failed = scored() | {"status": "failed", "reason": "judge_failed", "detail": "no answer"}
    row = shaped(response(1, "Angara"), scored(), failed)
    assert (row["status"], row["reason"]) == ("failed", "judge_failed")


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_no_nan_reaches_the_page(odd: float) -> None:
    row = shaped(response(1, "Angara"), scored(answered=1.0, citation_recall=odd))
    assert row["values"]["citation recall"] is None
    json.dumps(row, allow_nan=False)


def test_gold_answers_are_there_without_a_trace() -> None:
    (answer,) = shaped(response(1, None), scored())["answers"]
    assert answer == {"text": "Angara", "aliases": ["Angara River"], "supported": None, "found": None}


def test_200_citations_of_one_sentence_are_kept() -> None:
    cites = [{"doc": n, "verdict": "out_of_range", "p_yes": None} for n in range(200)]
    trace = {"sentences": [{"text": "s", "recall": 0, "citations": cites}]}
    (sentence,) = shaped(response(1, "s"), scored(trace))["sentences"]
    assert len(sentence["citations"]) == 200
    assert sentence["citations_left"] == 0
