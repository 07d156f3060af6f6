"""The evaluate job killed with -9 at about half and started again with the same words."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa

from trust.runs import Run
from trust.storage import StorageConfig, open_storage

ROWS, UNIT = 120, 10


def command(root: Path, judge: Path, data: Path) -> list[str]:
    words = [
        f"data.path={data}",
        "task=em",
        f"judge.entails.model={judge}",
        "judge.entails.batch_size=4",
        f"storage.root={root}",
        "run=r",
        f"unit_rows={UNIT}",
        "cluster.units_in_flight=1",
        "replicates=100",
        "report=false",
    ]
    return [sys.executable, "-m", "jobs.evaluate", *words]


def items() -> list[dict]:
    made = []
    for number in range(ROWS):
        docs = [{"title": f"T{number}", "text": f"Fact {number} is about item {number}. " * 12, "answers_found": [1]}]
        answer = {"answers": [[f"item {number}"]], "docs": docs, "output": f"Fact {number} is about item {number} [1]."}
        made.append({"id": f"{number:03d}", "question": f"What is fact {number}?", "language": "en"} | answer)
    return made


def tables(root: Path) -> dict[str, pa.Table]:
    storage = open_storage(config=StorageConfig())
    run = Run(storage, str(root), "r")
    return {
        name: pa.concat_tables([storage.read_table(part["path"]) for part in run.parts(name)])
        for name in ("responses", "scores", "verdicts")
    }


def asked(log: Path) -> list[str]:
    return [json.loads(line)["hash"] for file in log.glob("*.jsonl") for line in file.read_text().splitlines()]


def test_same_tables_and_only_what_had_no_receipt_is_done(tmp_path: Path, shared: Path, repo: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text(json.dumps(items()))
    judge = shared / "models" / "tiny_true_nli"
    logs = {name: tmp_path / f"log_{name}" for name in ("killed", "whole")}
    for log in logs.values():
        log.mkdir()

    def environment(name: str) -> dict[str, str]:
        return os.environ | {"TRUST_CALL_LOG": str(logs[name])}

    words = command(tmp_path / "killed", judge, data)
    first = subprocess.Popen(
        words, cwd=repo, env=environment("killed"), start_new_session=True, stdout=subprocess.DEVNULL
    )
    receipts = tmp_path / "killed" / "r" / "_units" / "evaluate"
    deadline = time.time() + 240
    while time.time() < deadline and len(list(receipts.glob("*/*.json"))) < ROWS // UNIT // 2:
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert not (tmp_path / "killed" / "r" / "manifests" / "evaluate.json").exists()
    assert not list((tmp_path / "killed" / "r").glob("scores/*.parquet")), "no half-made table"
    subprocess.run(words, cwd=repo, env=environment("killed"), check=True, stdout=subprocess.DEVNULL)
    whole = command(tmp_path / "whole", judge, data)
    subprocess.run(whole, cwd=repo, env=environment("whole"), check=True, stdout=subprocess.DEVNULL)

    resumed, unbroken = tables(tmp_path / "killed"), tables(tmp_path / "whole")
    for name in ("responses", "scores"):
        assert resumed[name].num_rows == ROWS
        same = [column for column in resumed[name].column_names if column != "trace"]  # it holds raw scores
        assert resumed[name].select(same).equals(unbroken[name].select(same)), name
    columns = ["hash", "sample_id", "answer", "status"]
    assert resumed["verdicts"].select(columns).equals(unbroken["verdicts"].select(columns))
    summaries = [json.loads((tmp_path / name / "r" / "summary.json").read_text()) for name in ("killed", "whole")]
    assert summaries[0] == summaries[1]

    repeated = len(asked(logs["killed"])) - len(asked(logs["whole"]))
    assert len(set(asked(logs["killed"]))) == len(set(asked(logs["whole"])))
    assert repeated <= 2 * UNIT, "more than the unit in flight was asked twice"
