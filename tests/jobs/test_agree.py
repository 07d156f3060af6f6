"""jobs.agree from the command line to its files."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.agree import agree
from tests.trust.agree.helpers import config, lines, rated
from tests.trust.report.helpers import response, write_run
from trust.agree import AgreeConfig, run_agree
from trust.cli import main
from trust.config import load
from trust.errors import PreflightError


def test_real_ratings_and_a_published_metrics_scores(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "meta_eval"
    read = load(
        "agree",
        AgreeConfig,
        [
            "data=unieval",
            f"data.path={folder}/unieval_sfhot_first60.json",
            f"storage.root={tmp_path}",
            "replicates=200",
        ],
    )
    run_agree(read)
    found = {
        (row["dimension"], row["level"], row["statistic"]): row
        for row in pq.read_table(tmp_path / "run" / "agreement.parquet").to_pylist()
        if row["dimension"] == row["metric"]
    }
    with open(folder / "unieval_sfhot_first60_expected.csv") as file:
        expected = [*csv.DictReader(file)]
    assert len(expected) == 3
    for line in expected:
        for statistic in ("pearson", "spearman", "kendall_tau_b"):
            row = found[line["dimension"], line["level"], statistic]
            assert f"{row['value']:.6f}" == line[statistic]
            assert row["n"] == int(line["n"])
            assert row["low"] < row["value"] < row["high"]


def test_files_and_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [rated(n, system, [n % 5, (n + k) % 5], (n % 5) + k) for n in range(12) for k, system in enumerate("ab")]
    path = lines(tmp_path / "rows.jsonl", rows)
    agree(config(tmp_path, path))
    printed = capsys.readouterr().out
    folder = tmp_path / "runs" / "agreement"
    assert sorted(file.name for file in folder.iterdir()) == [
        "agreement.csv",
        "agreement.json",
        "agreement.parquet",
        "agreement.svg",
    ]
    assert "24 rated outputs of 12 groups and 2 systems" in printed
    assert "(between annotators)" in printed
    assert "not applicable: level system: 2 system(s); a correlation needs 3" in printed
    with open(folder / "agreement.csv") as file:
        table = [*csv.DictReader(file)]
    assert {row["level"] for row in table} == {"sample", "summary", "system", "pairs", "annotators"}
    assert "nan" not in (folder / "agreement.csv").read_text().lower()
    assert json.loads((folder / "agreement.json").read_text())["config"]["alpha"] == "ordinal"
    agree(config(tmp_path, path, alpha="nominal"))  # another config replaces what there was
    assert json.loads((folder / "agreement.json").read_text())["config"]["alpha"] == "nominal"


def test_labels_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = "The Angara flows out of Lake Baikal [1].", "The Murray does [2]."
    write_run(tmp_path / "runs", [response(n, wrong if n % 3 == 0 else right) for n in range(40)], "mine")
    labels = lines(
        tmp_path / "l.jsonl", [{"sample_id": f"demo:{n:05d}", "answer_correctness": n % 2} for n in range(20)]
    )
    agree(config(tmp_path, run="mine", runs=["mine"], labels=str(labels)))
    (row,) = pq.read_table(tmp_path / "runs" / "mine" / "corrected.parquet").to_pylist()
    assert (row["labels"], row["rows"], row["status"]) == (20, 40, "scored")
    assert not (tmp_path / "runs" / "mine" / "agreement.csv").exists()
    assert "20 of 40" in capsys.readouterr().out


def test_nothing_to_compare_with_is_said(tmp_path: Path) -> None:
    path = lines(tmp_path / "rows.jsonl", [rated(n, "a", n) for n in range(12)])
    with pytest.raises(PreflightError, match=r"metrics.NAME=COLUMN"):
        run_agree(config(tmp_path, path))


def test_a_wrong_key_ends_with_code_2(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["agree", "raitings.q=c"])
    with pytest.raises(SystemExit) as ended:
        main("agree", AgreeConfig, agree, "")
    assert ended.value.code == 2
    assert "unknown key raitings; did you mean ratings?" in capsys.readouterr().err


def test_ratings_and_results_on_s3(s3: str, tmp_path: Path) -> None:
    from trust.storage import Storage

    rows = [rated(n, "a", n % 4, n % 3) for n in range(12)]
    Storage().write_bytes(f"{s3}/rows.json", json.dumps(rows).encode())
    words = ["data=trust", f"data.path={s3}/rows.json", f"storage.root={s3}/runs", "replicates=100"]
    found = run_agree(load("agree", AgreeConfig, words))
    assert found.paths == [f"{s3}/runs/run/agreement.csv", f"{s3}/runs/run/agreement.svg"]
    assert Storage().exists(found.paths[0])
