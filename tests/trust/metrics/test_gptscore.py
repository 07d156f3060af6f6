"""GPTScore: the prompt of each setting and direction, word for word, and what is asked of conversations."""

from typing import Any

import pytest

from tests.trust.metrics.likelihoods import Likely
from tests.trust.metrics.writers import run
from trust.errors import ConfigError
from trust.metrics import RowScore
from trust.metrics.gptscore import Gptscore, GptscoreConfig, ready

OWN = {"mine": {"instruction": "Shorten:", "connector": "Short:"}}
ROW = {"output": " out ", "context": {"source": "src", "history": "A: hello"}, "references": ["one", "two"]}


def ask_of(
    row: dict[str, Any] = ROW, rule: Any = lambda *_: -1.0, **options: Any
) -> tuple[RowScore, list[tuple[str, str]]]:
    ask = Likely(rule)
    (found,) = run(Gptscore(GptscoreConfig(**options), "strict"), [row], ask)
    return found, ask.asked


def test_the_three_settings() -> None:
    assert ask_of(own=OWN)[1] == [("Shorten:\n\nsrc\nShort:", " out")]
    assert ask_of(own=OWN, setting="value")[1] == [("src\nShort:", " out")]
    shown = [{"text": "long", "output": "brief"}]
    assert ask_of(own=OWN, setting="demonstrations", demonstrations=shown)[1] == [
        ("Shorten:\n\nlong\nShort: brief\n\nsrc\nShort:", " out")
    ]


def test_directions_and_the_best_reference() -> None:
    table = {("one", " out"): -4.0, ("two", " out"): -2.0, ("out", " one"): -1.0, ("out", " two"): -9.0}

    def rule(context: str, continuation: str) -> float:
        return table[context.removesuffix("\nShort:"), continuation]

    for direction, best in (("reference", -2.0), ("both", -2.5)):  # of both: -2.5 and -5.5
        own = {"mine": OWN["mine"] | {"direction": direction}}
        found, _ = ask_of(own=own, setting="value", rule=rule)
        assert found.values == {"gptscore_mine": best}


def test_a_conversation_is_asked_about() -> None:
    (context, continuation) = ask_of(aspects=["engaging"])[1][0]
    assert context == f"A: hello\nout\n\nQuestion: {ready()['engaging']['question']}\nAnswer:"
    assert continuation == " Yes"


def test_rows_without_the_texts() -> None:
    found, asked = ask_of({"output": "out", "context": {}}, aspects=["consistency", "engaging", "adequacy"])
    assert (found.status, found.reason, asked) == ("na", "nothing_to_compare", [])
    found, _ = ask_of(ROW | {"output": ""}, aspects=["fluency"])
    assert (found.status, found.reason) == ("na", "empty_output")
    found, _ = ask_of(
        {"output": "out", "docs": [{"title": "", "text": "d"}], "question": ""}, aspects=["answer_quality", "fluency"]
    )
    assert set(found.values) == {"gptscore_fluency"}, "the documents are the source; a question there is none"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "aspects is empty"),
        ({"aspects": ["fluensy"]}, "did you mean fluency"),
        ({"own": {"mine": {"instruktion": "x"}}}, r"did you mean metrics\.gptscore\.own\.mine\.instruction"),
        ({"own": {"mine": {"instruction": "x", "question": "y"}}}, "one of the two"),
        ({"own": {"not a name": {"instruction": "x"}}}, "is no name"),
        ({"aspects": ["engaging"], "setting": "value"}, "is a question"),
        ({"aspects": ["fluency"], "setting": "demonstrations"}, "needs some"),
        (
            {"aspects": ["fluency"], "demonstrations": [{"text": "a", "output": "b"}]},
            "belong to setting=demonstrations",
        ),
        ({"own": {"mine": OWN["mine"] | {"direction": "sourse"}}}, "did you mean source"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Gptscore(GptscoreConfig(**options), "strict")


def test_every_ready_aspect_can_be_asked() -> None:
    metric = Gptscore(GptscoreConfig(aspects=list(ready())), "strict")
    assert len(metric.terms) == 2 * len(ready())
