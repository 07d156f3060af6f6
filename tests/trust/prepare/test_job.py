"""`jobs.prepare` on a cluster: files are planned where tasks run, faults come back as they were raised."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trust.prepare.helpers import lines, sample, write
from trust.config import ClusterConfig, load
from trust.errors import PreflightError
from trust.prepare.job import PrepareConfig, on_cluster, run_prepare
from trust.runs import Run
from trust.tables import to_rows


def half(number: int, add: int) -> int:
    if number == 13:
        raise PreflightError("unlucky")
    return number // 2 + add


def prepare(root: Path, path: Path, *words: str) -> Run:
    config = load("prepare", PrepareConfig, [f"storage.root={root}", f"data.path={path}", "data.name=d", *words])
    run_prepare(config)
    return Run.of(config)


def rows(run: Run, table: str) -> list[dict[str, Any]]:
    return [row for part in run.parts(table) for row in to_rows(run.storage.read_table(part["path"]))]


@pytest.mark.usefixtures("ray_session")
class TestOnCluster:
    def test_results_come_in_order_however_many(self) -> None:
        made = on_cluster(ClusterConfig(), 0.1, half, ((number, 100) for number in range(14, 200)))
        assert list(made) == [number // 2 + 100 for number in range(14, 200)]

    def test_an_error_comes_as_it_was_raised(self) -> None:
        made = on_cluster(ClusterConfig(), 1, half, [(12, 0), (13, 0)])
        assert next(made) == 6
        with pytest.raises(PreflightError) as error:
            next(made)
        assert str(error.value) == "unlucky"


@pytest.mark.usefixtures("ray_session")
def test_a_broken_file_among_many_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(5):
        write(tmp_path / "in" / f"{number}.json", json.dumps([sample(number)]))
    write(tmp_path / "in" / "3.json", "[1,\n 2 3]")
    with pytest.raises(PreflightError) as error:
        prepare(tmp_path / "runs", tmp_path / "in", "run=r")
    assert str(error.value) == f"{tmp_path}/in/3.json, line 2, column 4: expected a comma or `]`, found `3`"


@pytest.mark.usefixtures("ray_session")
def test_repeated_ids_over_files_fail_with_their_places_and_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a.jsonl", lines([sample(1), sample(2), sample(3)]))
    write(tmp_path / "in" / "b.jsonl", lines([sample(4), sample(2), sample(3, question="Another?")]) + "{\n")
    run = prepare(tmp_path / "runs", tmp_path / "in", "run=r", "max_failed=1", "unit_rows=2")
    manifest = run.manifest("prepare")
    assert manifest.counts == {"ok": 4, "failed": 3}
    assert len(rows(run, "samples")) == 4
    failed = {row["row"]: row for row in rows(run, "failed")}
    assert len(failed) == 3
    kept = {row["sample_id"]: row for row in rows(run, "samples")}
    for name, question in (("d:q2#2", None), ("d:q3#2", "Another?")):
        row = failed[name]
        text = Path(row["file"]).read_text().splitlines()[row["line"] - 1]
        assert json.loads(text)["id"] == name[2:4]
        assert row["reason"] == "duplicate"
        if question:
            assert json.loads(text)["question"] != kept[name[:4]]["question"], "the one that failed is the one named"
