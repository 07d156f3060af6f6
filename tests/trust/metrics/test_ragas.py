"""RAGAS: each measure by hand with a model that says what it should, and all the ways in which one says something else."""

import json
from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.writers import Writer, run
from trust.ask import Completion
from trust.errors import ConfigError, RowError
from trust.metrics import RowScore
from trust.metrics.ragas import Ragas, RagasConfig
from trust.metrics.ragas_measures import MEASURES, average_precision

DOCS = [{"title": "", "text": "Paris lies in France. It is large."}, {"title": "", "text": "The Seine is a river."}]


def row(**more: Any) -> dict[str, Any]:
    base = {"sample_id": "s", "language": "en", "question": "Where is Paris?", "output": "In France. On the Rhine."}
    return base | {"docs": DOCS, "references": ["Paris lies in France. On the Seine."]} | more


def sentences(text: str) -> list[str]:
    return [part.strip() + "." for part in text.split(".") if part.strip()]


def rule(text: str, sampling: dict[str, Any]) -> str:
    """Takes an answer apart at full stops; a text supports a statement whose last word it holds."""
    if "Take the answer apart" in text:
        return json.dumps({"statements": sentences(text.split("Answer:\n")[1].split("\n\n", maxsplit=1)[0])})
    if "Statements:" in text:
        body, listed = text.split("Text:\n")[1].split("\n\nStatements:\n")
        lines = listed.split("\n\n")[0].splitlines()
        return json.dumps({"verdicts": [int(line.rstrip(".").split()[-1] in body) for line in lines]})
    if "Write one question" in text:
        return json.dumps({"question": f"Question {sampling['seed']}?", "noncommittal": 0})
    if "Copy from the text" in text:
        return json.dumps({"sentences": ["Paris lies in France.", "It is made up."]})
    return json.dumps({"useful": int("Paris" in text.split("Text:\n")[1].split("\n\n", maxsplit=1)[0])})


def vectors(text: str) -> np.ndarray:
    """The question is (1, 0); what is made of the response comes nearer with its seed."""
    angle = {"Question 1?": 0.0, "Question 2?": np.pi / 3, "Question 3?": np.pi / 2}.get(text, 0.0)
    return np.array([np.cos(angle), np.sin(angle)])


def score(measure: str, answer: Any = rule, **more: Any) -> RowScore:
    return run(Ragas(RagasConfig([measure]), "strict"), [row(**more)], Writer(answer, vectors))[0]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("faithfulness", 0.5),  # "France" stands in the documents, "Rhine" does not
        ("answer_relevance", (1 + 0.5 + 0) / 3),
        ("context_relevance", 1 / 3),  # of three sentences one is copied; the made-up one does not count
        ("context_precision", 1.0),  # the first document is of use, the second is not
        ("context_recall", 1.0),
        ("answer_correctness", 0.75 * (2 * 1 / (2 * 1 + 1 + 1)) + 0.25),
    ],
)
def test_each_measure(measure: str, expected: float) -> None:
    assert score(measure).values == {measure: pytest.approx(expected)}


def test_several_samples_give_their_mean_and_how_far_they_agree() -> None:
    def answer(text: str, sampling: dict[str, Any]) -> str:
        if "Statements:" in text:  # the first of three samples supports both statements, the others one
            return json.dumps({"verdicts": [1, int(sampling["seed"] < 2000)]})
        return rule(text, sampling)

    made = Ragas(RagasConfig(["faithfulness"], samples=3), "strict")
    ask = Writer(answer, vectors)
    [found] = run(made, [row()], ask)
    assert found.values == {
        "faithfulness": pytest.approx((1 + 0.5 + 0.5) / 3),
        "faithfulness_agreement": pytest.approx(1 - (0.5 + 0.5 + 0) / 3),
    }
    assert {sampling["temperature"] for _, sampling, _ in ask.asked} == {0.3}
    assert len({sampling["seed"] for _, sampling, _ in ask.asked}) == 3
    final = made.final({term: np.array([found.terms[term]]) for term in made.terms}, "none")
    assert float(final["ragas_faithfulness_agreement"].value[0]) == pytest.approx(200 / 3)
    with pytest.raises(ConfigError, match="samples are at least 1"):
        Ragas(RagasConfig(samples=0), "strict")


def test_average_precision() -> None:
    assert average_precision([True, False, True]) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([False, True]) == 0.5
    assert average_precision([False]) == 0.0


def test_what_is_said_is_held_to_a_schema_in_the_rows_language() -> None:
    ask = Writer(rule, vectors)
    run(Ragas(RagasConfig(["faithfulness"]), "strict"), [row(language="zh-Hans")], ask)
    (text, _, schema) = ask.asked[0]
    assert "Write in Chinese" in text
    assert schema["required"] == ["statements"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Completion('{"statements": ["a', "length", 1, 1), "judge_cut"),
        ("Sure! Here are the statements.", "judge_unreadable"),
        ('{"statement": ["a"]}', "judge_unreadable"),
        ('{"statements": "a"}', "judge_unreadable"),
        ('{"statements": [1]}', "judge_unreadable"),
        ("[]", "judge_unreadable"),
    ],
)
def test_what_is_not_of_the_form_fails(answer: Any, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        score("faithfulness", lambda *_: answer)
    assert caught.value.reason == reason


@pytest.mark.parametrize("verdicts", ["[1]", "[1, 1, 1]", "[1, -1]", "[1, null]", "[true, true]"])
def test_verdicts_that_are_missing_or_none_do_not_count_for_the_response(verdicts: str) -> None:
    def answer(text: str, sampling: dict[str, Any]) -> str:
        return f'{{"verdicts": {verdicts}}}' if "Statements:" in text else rule(text, sampling)

    with pytest.raises(RowError, match=r"verdicts|form"):
        score("faithfulness", answer)


@pytest.mark.parametrize(
    ("measure", "more"),
    [
        ("faithfulness", {"docs": []}),
        ("faithfulness", {"docs": [{"title": "", "text": " "}]}),
        ("faithfulness", {"output": ""}),
        ("answer_relevance", {"output": None}),
        ("context_relevance", {"docs": None}),
        ("context_precision", {"references": None}),
        ("context_recall", {"references": [""]}),
        ("answer_correctness", {"references": []}),
    ],
)
def test_what_a_row_lacks_is_not_applicable_and_not_asked_about(measure: str, more: dict[str, Any]) -> None:
    ask = Writer(rule, vectors)
    (made,) = run(Ragas(RagasConfig([measure]), "strict"), [row(**more)], ask)
    assert (made.status, made.terms) == ("na", {})
    assert not ask.asked


def test_a_response_that_states_nothing_is_not_faithful_but_not_applicable() -> None:
    assert score("faithfulness", lambda *_: '{"statements": []}').status == "na"


@pytest.mark.parametrize(("marks", "expected"), [([1, 0, 0], 0.5), ([1, 1, 0], 0.0)])
def test_the_majority_calls_a_response_noncommittal(marks: list[int], expected: float) -> None:
    def answer(text: str, sampling: dict[str, Any]) -> str:
        return json.dumps({"question": f"Question {sampling['seed']}?", "noncommittal": marks[sampling["seed"] - 1]})

    assert score("answer_relevance", answer).values["answer_relevance"] == pytest.approx(expected)


def test_means_and_asks() -> None:
    made = Ragas(RagasConfig(list(MEASURES)), "strict")
    assert made.asks == ("complete", "embed")
    assert Ragas(RagasConfig(["context_recall"]), "strict").asks == ("complete",)
    scores = run(made, [row(), row(references=None)], Writer(rule, vectors))
    sums = {term: np.array([sum(s.terms.get(term, 0) for s in scores)]) for term in made.terms}
    final = made.final(sums, "none")
    assert (float(final["ragas_faithfulness"].value[0]), final["ragas_faithfulness"].n) == (50.0, 2)
    assert final["ragas_context_recall"].n == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [({"measures": []}, "choose from"), ({"measures": ["faithful"]}, "did you mean"), ({"questions": 0}, "at least 1")],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Ragas(RagasConfig(**options), "strict")
