"""What of the GPU's measurements can be checked without one."""

from typing import Any

import pytest

from tests.gpu import run


def test_without_a_gpu_it_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert run.main([]) == 2
    assert capsys.readouterr().err.strip().splitlines() == [
        "tests.gpu.run: torch sees no GPU on this machine; run it where there is one"
    ]


@pytest.mark.parametrize("gpus", [1, 2])
def test_every_step_is_a_command_line_of_its_own(gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(run, "gpu_count", lambda: gpus)
    monkeypatch.setattr(run, "judge_step", lambda size: called.append(("judge", size)))
    monkeypatch.setattr(run, "respond_step", lambda n, words: called.append(("respond", n, words)))
    monkeypatch.setattr(run, "arguments_step", lambda n, words: called.append(("arguments", n, words)))
    for step in run.steps(gpus):
        assert run.main([*step.words, "model=hf"]) == 0
    judges = [call[1] for call in called if call[0] == "judge"]
    assert sorted(judges) == sorted(run.judge_model.SHAPES)
    over_two = ("respond", 2, ["model=hf"]) if gpus > 1 else ("arguments", 2, ["model=hf"])
    assert [call for call in called if call[0] != "judge"] == [("respond", 1, ["model=hf"]), over_two]


def test_steps_that_do_not_fit_are_left_out_and_named(capsys: pytest.CaptureFixture) -> None:
    plan = [run.Step("short", (), 1), run.Step("long", (), 1000), run.Step("short too", (), 1)]
    lines = run.run(plan, 1.0, lambda step, left: f"measured with {left:.0f} s left")
    assert lines[0] == "short: measured with 60 s left"
    assert lines[1] == "long: left out, 60 s left and it may need 1000"
    assert lines[2].startswith("short too: measured")
    assert capsys.readouterr().out.splitlines() == lines


def test_all_steps_fit_into_eight_minutes() -> None:
    assert sum(step.seconds for step in run.steps(1)) <= 8 * 60
