"""Scores in words."""

from typing import Any

import pytest

from trust.report.explain import explain, verdicts


def trace(**changes: Any) -> dict[str, Any]:
    base = {
        "answerable": True,
        "response": "answered",
        "refusal": {"ratio": None, "phrase": None},
        "answers": [
            {"answer": "Angara", "aliases": ["Angara"], "supported": True, "found": True},
            {"answer": "Lena", "aliases": ["Lena"], "supported": False, "found": False},
        ],
        "sentences": [],
    }
    return base | changes


def said(found: dict[str, Any], values: dict[str, float] | None = None, compat: str = "strict") -> dict[str, str]:
    return {text: tone for tone, text in explain(found, values or {"answer_correctness": 1.0}, verdicts(compat))}


@pytest.mark.parametrize(
    ("answerable", "response", "tone", "words"),
    [
        (True, "answered", "good", "so it should be answered, and it was answered."),
        (True, "refused", "bad", "so it should be answered, but it was refused."),
        (True, "empty", "bad", "but the response is empty."),
        (False, "answered", "bad", "so it should be refused, but it was answered."),
        (False, "refused", "good", "so it should be refused, and it was refused."),
        (None, "answered", "neutral", "is not known; it was answered."),
    ],
)
def test_decision(answerable: bool | None, response: str, tone: str, words: str) -> None:
    first, text = explain(trace(answerable=answerable, response=response), {}, verdicts("strict"))[0]
    assert first == tone
    assert text.endswith(words)


def test_only_answers_that_documents_hold_count() -> None:
    assert said(trace())["It gives 1 of 1 gold answers that the documents hold."] == "good"


def test_answers_beyond_the_documents_are_named() -> None:
    answers = [{"answer": "Lena", "aliases": [], "supported": False, "found": True}]
    assert said(trace(answers=answers))["Gold answers that it gives and no document holds: 1."] == "bad"


def test_refusal_signals() -> None:
    phrase = trace(answerable=False, response="refused", refusal={"ratio": None, "phrase": "could not find"})
    assert any("it says “could not find”" in text for text in said(phrase))
    pattern = trace(refusal={"ratio": None, "phrase": "(can not|could not|did not) " * 9})
    assert any("(although it uses a known phrase of refusal)" in text for text in said(pattern))
    ratio = trace(answerable=False, response="refused", refusal={"ratio": 91, "phrase": None})
    assert any("91 of 100" in text for text in said(ratio))


def cited(*marks: str) -> dict[str, Any]:
    sentence = {"text": "s", "recall": 1, "citations": [{"doc": 1, "verdict": mark, "p_yes": None} for mark in marks]}
    return trace(sentences=[sentence, {"text": "lead-in:", "recall": None, "citations": []}])


def test_citations_are_counted_as_the_mode_counts_them() -> None:
    found = cited("supports", "irrelevant", "duplicate", "over_cap")
    strict, upstream = said(found), said(found, compat="upstream")
    assert strict["1 of 3 citations are right; 1 more do not count."] == "neutral"
    assert upstream["1 of 2 citations are right; 2 more do not count."] == "neutral"
    assert strict["The cited documents entail 1 of 1 statements."] == "good"


def test_an_answer_without_citations() -> None:
    assert said(trace(sentences=[{"text": "s", "recall": 0, "citations": []}]))["It cites nothing."] == "bad"


def test_a_failed_row_has_nothing_to_explain() -> None:
    assert explain({}, {}, verdicts("strict")) == []


def test_every_verdict_of_the_metric_is_explained(repo: Any) -> None:
    source = (repo / "trust" / "metrics" / "citations.py").read_text()
    known = verdicts("strict")
    assert [name for name in known if f'"{name}"' not in source] == []
