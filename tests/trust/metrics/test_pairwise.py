"""Two responses in both orders: what counts as a win, and a judge that favours a place."""

from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.writers import Writer, run
from trust.errors import ConfigError, RowError
from trust.metrics import RowScore
from trust.metrics.pairwise import Pairwise, PairwiseConfig


def row(**more: Any) -> dict[str, Any]:
    base = {"sample_id": "s", "language": "en", "question": "Where is Paris?", "output": "In France."}
    return base | {"references": ["", "It lies in Spain."], "meta": {"output_b": "On the Moon."}} | more


def prefers(text: str) -> Any:
    """A judge that says which place holds `text`, and tie where none does."""

    def rule(prompt: str, _: Any) -> str:
        first, second = prompt.split("Response A:\n")[1].split("\n\nResponse B:\n")
        place = "A" if text in first else "B" if text in second.split("\n\n")[0] else "tie"
        return f'{{"better": "{place}"}}'

    return rule


def score(answer: Any, **more: Any) -> RowScore:
    return run(Pairwise(PairwiseConfig(), "strict"), [row(**more)], Writer(answer))[0]


@pytest.mark.parametrize(
    ("answer", "value", "consistent"),
    [
        (prefers("In France."), 1.0, 1.0),
        (prefers("It lies in Spain."), 0.0, 1.0),
        (prefers("nowhere"), 0.5, 1.0),
        (lambda *_: '{"better": "A"}', 0.5, 0.0),
        (lambda *_: '{"better": "B"}', 0.5, 0.0),
    ],
)
def test_a_win_counts_where_both_orders_agree(answer: Any, value: float, consistent: float) -> None:
    assert score(answer).values == {"pairwise": value, "pairwise_consistent": consistent}


def test_a_win_in_one_order_and_a_tie_in_the_other_is_a_tie() -> None:
    found = score(lambda prompt, _: '{"better": "A"}' if "A:\nIn France" in prompt else '{"better": "tie"}')
    assert found.values == {"pairwise": 0.5, "pairwise_consistent": 0.0}


def test_another_systems_output_may_stand_in_a_column() -> None:
    made = Pairwise(PairwiseConfig(other="meta.output_b"), "strict")
    ask = Writer(prefers("On the Moon."))
    found = run(made, [row(), row(meta={}), row(output=" "), row(output="On the Moon.")], ask)
    assert [one.status for one in found] == ["scored", "na", "na", "scored"]
    assert [one.values.get("pairwise") for one in found] == [0.0, None, None, 0.5]
    assert len(ask.asked) == 2, "of equal texts nobody is asked"
    sums = {term: np.array([sum(one.terms.get(term, 0.0) for one in found)]) for term in made.terms}
    final = made.final(sums, "none")
    assert {key: float(stat.value[0]) for key, stat in final.items()} == {
        "pairwise_win_rate": 25.0,
        "pairwise_won": 0.0,
        "pairwise_lost": 50.0,
        "pairwise_consistency": 100.0,
    }


@pytest.mark.parametrize("said", ["A", "[]", '{"best": "A"}', '{"better": "C"}', '{"better": null}'])
def test_what_is_no_verdict_fails(said: str) -> None:
    with pytest.raises(RowError) as caught:
        score(lambda *_: said)
    assert caught.value.reason == "judge_unreadable"


@pytest.mark.parametrize("options", [{"criterion": " "}, {"other": "meta."}, {"other": "reference"}, {"max_tokens": 0}])
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.pairwise\."):
        Pairwise(PairwiseConfig(**options), "strict")
