"""Scores of evaluated runs beside what people said of the same outputs."""

from pathlib import Path
from typing import Any

import pytest

from tests.trust.agree.helpers import config
from tests.trust.report.helpers import response, write_run
from trust.agree.items import Item
from trust.agree.scored import join
from trust.errors import ConfigError, PreflightError

RIGHT, WRONG = "The Angara flows out of Lake Baikal [1].", "The Murray does [2]."


def evaluated(root: Path, name: str, **changes: Any) -> None:
    """Ten questions, of which every other is answered rightly."""
    write_run(root / "runs", [response(n, WRONG if n % 2 else RIGHT, **changes) for n in range(10)], name)


def items(model: str, questions: range = range(10)) -> list[Item]:
    return [Item(f"demo:{n:05d}", model, "g", "g", {"quality": [1.0]}) for n in questions]


def test_values_join_by_id_and_model(tmp_path: Path) -> None:
    evaluated(tmp_path, "mine")
    rated = [*items("small", range(8)), *items("other", range(2))]
    told = join(rated, config(tmp_path, tmp_path, runs=["mine"], values=["trust_score.answer_correctness"]))
    assert [item.metrics for item in rated[:2]] == [
        {"trust_score.answer_correctness": 1.0},
        {"trust_score.answer_correctness": 0.0},
    ]
    assert not any(item.metrics for item in rated[8:])
    assert told == ["mine: scores of 8 of 10 rated outputs"]


def test_runs_by_address_have_metrics_of_their_own(tmp_path: Path) -> None:
    evaluated(tmp_path, "one")
    evaluated(tmp_path, "two")
    rated = items("small")
    join(rated, config(tmp_path, tmp_path, runs=["one", str(tmp_path / "runs" / "two")]))
    assert rated[0].metrics["one: trust_score.refused"] == rated[0].metrics["two: trust_score.refused"] == 0


def test_draws_are_averaged_and_the_only_model_may_have_another_name(tmp_path: Path) -> None:
    rows = [response(0, text, draw=draw) for draw, text in enumerate((RIGHT, WRONG, WRONG, RIGHT))]
    write_run(tmp_path / "runs", [*rows, response(1, RIGHT)], "drawn")
    rated = items("unknown", range(2))
    join(rated, config(tmp_path, tmp_path, runs=["drawn"]))
    assert [item.metrics["trust_score.answer_correctness"] for item in rated] == [0.5, 1]


def test_what_does_not_meet_is_said(tmp_path: Path) -> None:
    evaluated(tmp_path, "mine")
    with pytest.raises(PreflightError, match=r"no finished evaluation in .*/mime; did you mean mine\?"):
        join(items("small"), config(tmp_path, tmp_path, runs=["mime"]))
    with pytest.raises(PreflightError, match=r"x:1 by small, for one, the run demo:00000 by small.*data.name=NAME"):
        join([Item("x:1", "small", "g", "g")], config(tmp_path, tmp_path, runs=["mine"]))
    with pytest.raises(ConfigError, match=r"no run has trust_score.refusd; did you mean trust_score.refused\?"):
        join(items("small"), config(tmp_path, tmp_path, runs=["mine"], values=["trust_score.refusd"]))


def test_one_of_several_prompts_is_chosen(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", [response(0, RIGHT), response(0, WRONG, prompt="other")], "mine")
    with pytest.raises(ConfigError, match=r"several prompts: add prompt= \(em, other\)"):
        join(items("small"), config(tmp_path, tmp_path, runs=["mine"]))
    rated = items("small")
    join(rated, config(tmp_path, tmp_path, runs=["mine"], prompt="other"))
    assert rated[0].metrics["trust_score.answer_correctness"] == 0
    with pytest.raises(ConfigError, match="prompt=none: runs=mine has em, other"):
        join(rated, config(tmp_path, tmp_path, runs=["mine"], prompt="none"))
