"""What dies on the way: an actor, an engine, the driver, or the hand of the user on Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from tests.nodes import below
from tests.trust.test_execute import make
from trust.config import load
from trust.errors import JobStopped, PreflightError
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.execute import execute
from trust.runs import Run
from trust.storage import StorageConfig, open_storage

ROWS, UNIT = 16, 1


def items() -> list[dict[str, Any]]:
    docs = [
        [{"title": f"T{number}", "text": f"Fact {number} is about item {number}. " * 10, "answers_found": [1]}] * 2
        for number in range(ROWS)
    ]
    return [
        {"id": f"{number:03d}", "question": f"What is fact {number}?", "language": "en", "docs": docs[number]}
        | {"answers": [[f"item {number}"]], "output": f"Fact {number} is about item {number} [1][2]."}
        for number in range(ROWS)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(items()))
    return path


def evaluate_words(root: Path, data: Path, shared: Path) -> list[str]:
    judge = [f"judge.entails.model={shared}/models/tiny_true_nli", "judge.entails.batch_size=4"]
    job = [f"unit_rows={UNIT}", "cluster.units_in_flight=1", "replicates=100", "report=false"]
    return [f"data.path={data}", "task=em", *judge, *job, f"storage.root={root}", "run=r"]


def table(root: Path, name: str) -> pa.Table:
    storage = open_storage(config=StorageConfig())
    return pa.concat_tables([storage.read_table(part["path"]) for part in Run(storage, str(root), "r").parts(name)])


def receipts(root: Path, job: str) -> int:
    return len(list((root / "r" / "_units" / job).glob("*/*.json")))


def until(done: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.mark.usefixtures("ray_session")
class TestActors:
    def test_a_killed_judge_is_replaced_and_the_tables_are_the_same(
        self, tmp_path: Path, data: Path, shared: Path
    ) -> None:
        def run(name: str) -> None:
            run_evaluate(load("evaluate", EvaluateConfig, evaluate_words(tmp_path / name, data, shared)))

        def kill() -> None:
            until(lambda: receipts(tmp_path / "killed", "evaluate") >= 2)
            for actor in below(os.getpid(), "UnitActor"):
                actor.kill()
                killed.append(receipts(tmp_path / "killed", "evaluate"))

        killed: list[int] = []
        thread = threading.Thread(target=kill)
        thread.start()
        run("killed")
        thread.join()
        assert len(killed) == 1
        assert killed[0] < ROWS // UNIT, "killed too late to show anything"
        run("whole")
        one, other = tmp_path / "killed", tmp_path / "whole"
        same = [column for column in table(one, "scores").column_names if column != "trace"]  # it holds raw scores
        assert table(one, "scores").num_rows == ROWS
        assert table(one, "scores").select(same).equals(table(other, "scores").select(same))
        columns = ["hash", "sample_id", "answer", "status"]
        assert table(one, "verdicts").select(columns).equals(table(other, "verdicts").select(columns))

    def test_one_that_always_dies_ends_with_one_message_and_can_be_resumed(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path, units=4, seconds=1.0)
        config = replace(config, cluster=replace(config.cluster, max_restarts=1))
        ended = threading.Event()

        def kill() -> None:
            while not ended.wait(0.1):
                for actor in below(os.getpid(), "UnitActor"):
                    actor.kill()

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            with pytest.raises(JobStopped, match=r"the job stopped: .*start it again with the same words") as error:
                execute(plan, run, config)
        finally:
            ended.set()
            thread.join()
        assert "\n" not in str(error.value)
        assert error.value.exit_code == 1
        assert execute(plan, run, config).counts == {"ok": 40}


HOLDER = """
import sys
from pathlib import Path
from tests.nodes import below
from tests.trust.test_execute import make
from trust.execute import execute
execute(*make(Path(sys.argv[1]), units=6, seconds=5.0))
"""


@pytest.mark.usefixtures("ray_session")
def test_a_second_run_is_refused_while_the_first_lives_and_takes_over_when_it_is_dead(
    tmp_path: Path, repo: Path
) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], cwd=repo, start_new_session=True)
    plan, run, config = make(tmp_path)
    until(lambda: run.storage.exists(run.path("_units", "count.lease")))
    with pytest.raises(PreflightError, match=f"another run is writing here: process {first.pid} on"):
        execute(plan, run, config)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert execute(plan, run, config).counts == {"ok": 60}


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, data: Path, shared: Path, repo: Path) -> None:
    words = [sys.executable, "-m", "jobs.evaluate", *evaluate_words(tmp_path / "runs", data, shared)]
    job = subprocess.Popen(words, cwd=repo, start_new_session=True, stderr=subprocess.PIPE, text=True)
    until(lambda: receipts(tmp_path / "runs", "evaluate") >= 2)  # what the fingerprint stands for, and a unit
    os.killpg(job.pid, signal.SIGINT)  # a terminal sends it to all that the job has started
    _, told = job.communicate(timeout=60)
    assert job.returncode == 130
    assert told.splitlines()[-1] == ("stopped; what is finished is kept: start it again with the same words to go on")
    assert "Traceback" not in told
    assert not (tmp_path / "runs" / "r" / "_units" / "evaluate.lease").exists()
    assert not (tmp_path / "runs" / "r" / "manifests" / "evaluate.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("smollm2")
class TestEngines:
    def prepared(self, root: Path, data: Path, repo: Path) -> list[str]:
        """The words of a respond job whose samples are prepared."""
        place = [f"storage.root={root}", "run=r"]
        prepare = [sys.executable, "-m", "jobs.prepare", f"data.path={data}", "task=em", *place]
        subprocess.run(prepare, cwd=repo, check=True, stdout=subprocess.DEVNULL)
        engine = ["model=smollm2", "engine=cpu", "model.max_model_len=2048", "cluster.units_in_flight=1"]
        sampling = ["prompt.shots=1", "sampling.temperature=0", "sampling.max_tokens=16", f"unit_rows={UNIT}"]
        return [sys.executable, "-m", "jobs.respond", *engine, *sampling, *place]

    def test_a_dead_engine_and_a_dead_actor_are_replaced(self, tmp_path: Path, data: Path, repo: Path) -> None:
        root = tmp_path / "runs"
        job = subprocess.Popen(self.prepared(root, data, repo), cwd=repo, stderr=subprocess.PIPE, text=True)
        for title, after in (("VLLM::EngineCore", 2), ("UnitActor", 5)):
            until(lambda after=after: receipts(root, "respond") >= after)
            actors, victims = below(job.pid, "UnitActor"), below(job.pid, title)
            assert victims, title
            for victim in victims:
                victim.kill()
            until(lambda actors=actors: not any(actor.is_running() for actor in actors))
        _, told = job.communicate(timeout=500)
        assert job.returncode == 0, told
        made = table(root, "responses")
        assert made["sample_id"].to_pylist() == [f"data:{number:03d}" for number in range(ROWS)]
        assert set(made["status"].to_pylist()) == {"ok"}

    def test_a_killed_driver_leaves_no_engine_behind(self, tmp_path: Path, data: Path, repo: Path) -> None:
        words = self.prepared(tmp_path / "runs", data, repo)
        job = subprocess.Popen(words, cwd=repo, stderr=subprocess.DEVNULL)
        until(lambda: receipts(tmp_path / "runs", "respond") >= 1)
        left = [*below(job.pid, "VLLM"), *below(job.pid, "UnitActor")]
        assert len(left) >= 2
        job.kill()
        job.wait()
        _, alive = psutil.wait_procs(left, timeout=60)
        assert not alive, [process.name() for process in alive]
