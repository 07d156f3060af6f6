"""G-Eval: expected grades by hand, what is no grade, samples, and prompts that show what they should."""

import asyncio
import json
import math
from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.writers import Writer, run
from trust.ask import Completion
from trust.errors import ConfigError, RowError
from trust.metrics.geval import Aspect, Geval, GevalConfig, expected, read, ready

SCALE = Aspect("Criterion.", low=1, high=10)


def told(**shares: float) -> Completion:
    first = tuple((token.strip("_"), math.log(share)) for token, share in shares.items())
    return Completion("x", "stop", 1, 1, first_tokens=first)


def row(**more: Any) -> dict[str, Any]:
    base = {"sample_id": "s", "language": "en", "question": "Who?", "output": "Ann did.", "references": None}
    return base | {"docs": [{"title": "T", "text": "Ann did it."}], "context": {"source": "Long text."}} | more


def metric(**options: Any) -> Geval:
    return Geval(GevalConfig(**options), "strict")


def test_the_expected_grade_is_weighted_and_renormalised() -> None:
    assert expected(told(_8=0.5, _9=0.5), SCALE, 0.05) == pytest.approx(8.5)
    assert expected(told(_2=0.3, _4=0.1, the=0.6), SCALE, 0.05) == pytest.approx((2 * 0.3 + 4 * 0.1) / 0.4)
    assert expected(told(_10=0.2, _11=0.7), SCALE, 0.05) == 10, "11 is not on the scale"
    answer = Completion(
        "3", "stop", 1, 1, first_tokens=((" 3", math.log(0.4)), ("3", math.log(0.4)), ("5", math.log(0.2)))
    )
    assert expected(answer, SCALE, 0.05) == pytest.approx(3.4)


def test_what_is_no_grade_fails_and_is_not_zero() -> None:
    with pytest.raises(RowError, match=r"no grade from 1 to 10 \(1.0%\)") as caught:
        expected(told(The=0.99, _3=0.01), SCALE, 0.05)
    assert caught.value.reason == "no_grade"
    with pytest.raises(RowError, match="mode=samples"):
        expected(Completion("3", "stop", 1, 1), SCALE, 0.05)


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("3", 3),
        (" 4.", 4),
        ("**5**", 5),
        ("10", 10),
        ("8: since 2 of 9 are right", 8),
        ("good: 8", None),
        ("", None),
        ("11", None),
        ("0", None),
        ("3.5", None),
        ("4,5", None),
    ],
)
def test_a_grade_is_the_first_number(text: str, grade: int | None) -> None:
    assert read(text, SCALE) == grade


def test_means_over_rows_on_the_aspects_scale() -> None:
    made = metric(aspects=["factual_consistency", "fluency"])
    ask = Writer(lambda text, _: told(_1=0.75, _0=0.25) if "Documents:" in text else told(_3=1.0))
    scores = run(made, [row(), row(docs=[])], ask)
    assert scores[0].values == {"geval_factual_consistency": 0.75, "geval_fluency": 3.0}
    assert scores[1].values == {"geval_fluency": 3.0}, "without documents that aspect does not apply"
    sums = {term: np.array([sum(s.terms.get(term, 0) for s in scores)]) for term in made.terms}
    final = made.final(sums, "none")
    assert float(final["geval_factual_consistency"].value[0]) == 0.75
    assert (final["geval_fluency"].n, final["geval_fluency"].bounds) == (2, (1.0, 3.0))
    assert made.notes() == {"geval_mode": "probabilities", "geval_steps": "given"}


def test_samples_are_drawn_with_seeds_of_their_own_and_the_unread_are_counted() -> None:
    made = metric(aspects=["fluency"], mode="samples", samples=4)
    ask = Writer(lambda _, sampling: ["2", "3", "well", "3"][sampling["seed"] % 4])
    (score,) = run(made, [row()], ask)
    assert score.values["geval_fluency"] == pytest.approx(8 / 3)
    assert len({sampling["seed"] for _, sampling, _ in ask.asked}) == 4
    final = made.final({term: np.array([score.terms[term]]) for term in made.terms}, "none")
    assert float(final["geval_fluency_unread"].value[0]) == pytest.approx(25.0)
    assert score.values["geval_fluency_agreement"] == pytest.approx(2 / 3), (
        "2 and 3, on a scale of 1 to 3, twice of 3 pairs"
    )
    assert float(final["geval_fluency_agreement"].value[0]) == pytest.approx(200 / 3)
    with pytest.raises(RowError, match="none of 4 answers"):
        run(made, [row()], Writer(lambda *_: "fine"))


def test_the_prompt_shows_criteria_steps_scale_and_texts() -> None:
    own = {
        "criteria": "Politeness.",
        "steps": ["Read.", "Grade."],
        "low": 1,
        "high": 7,
        "shows": ["question", "output"],
    }
    ask = Writer(lambda *_: told(_4=1.0))
    run(metric(criteria={"polite": own}), [row()], ask)
    (text, sampling, _) = ask.asked[0]
    for part in ("Politeness.", "1. Read.\n2. Grade.", "Question:\nWho?", "Response:\nAnn did.", "from 1 to 7"):
        assert part in text
    assert "Documents" not in text
    assert (sampling["temperature"], sampling["logprobs"]) == (0.0, 20)


def test_steps_that_the_model_writes() -> None:
    made = metric(aspects=["fluency", "coherence"], steps="written")
    assert made.wants_setup
    assert not metric(aspects=["fluency"]).wants_setup
    ask = Writer(lambda text, _: json.dumps({"steps": ["Look." if "Fluency" in text else "Think."]}))
    found = asyncio.run(made.setup(ask))
    assert found == {"fluency": ["Look."], "coherence": ["Think."]}
    assert [(sampling["temperature"], schema["required"]) for _, sampling, schema in ask.asked] == [
        (0.0, ["steps"])
    ] * 2
    made.take(found)
    shown = Writer(lambda *_: told(_3=1.0))
    run(made, [row()], shown)
    assert sorted(text.split("Steps:\n")[1].split("\n")[0] for text, _, _ in shown.asked) == ["1. Look.", "1. Think."]


@pytest.mark.parametrize(
    "text", ["Think first.", "{}", '{"steps": 3}', '{"steps": [1]}', '{"steps": [" "]}', '{"steps": []}']
)
def test_what_is_no_list_of_steps(text: str) -> None:
    with pytest.raises(RowError, match="give the steps yourself") as caught:
        asyncio.run(metric(aspects=["fluency"], steps="written").setup(Writer(lambda *_: text)))
    assert caught.value.reason == "no_steps"


def test_nothing_is_asked_about_nothing() -> None:
    ask = Writer(lambda *_: told(_4=1.0))
    made = metric(aspects=["engagingness"])
    assert run(made, [row(output=" ")], ask)[0].reason == "empty_output"
    assert run(made, [row()], ask)[0].reason == "nothing_to_show"
    assert not ask.asked


def test_every_ready_aspect_can_be_asked() -> None:
    assert len(ready()) == 8
    metric(aspects=list(ready()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "choose from coherence"),
        ({"aspects": ["coherance"]}, "did you mean coherence"),
        ({"aspects": ["fluency"], "mode": "sample"}, "did you mean samples"),
        ({"aspects": ["fluency"], "samples": 0}, "at least 1"),
        ({"criteria": {"a b": {"criteria": "x"}}}, "no name"),
        ({"criteria": {"a": {"criteria": " "}}}, "criteria is empty"),
        ({"criteria": {"a": {"criteria": "x", "low": 5, "high": 5}}}, "low < high"),
        ({"criteria": {"a": {"criteria": "x", "shows": ["output", "doc"]}}}, "did you mean docs"),
        ({"criteria": {"a": {"criteria": "x", "shows": ["docs"]}}}, "must hold output"),
        ({"criteria": {"a": {"criterion": "x"}}}, "did you mean"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        metric(**options)
