"""Means of a run corrected by labels of rows and of verdicts."""

from pathlib import Path
from typing import Any

import pytest

from tests.trust.agree.helpers import config, lines
from tests.trust.report.helpers import response, write_run
from trust import ppi, tables
from trust.agree.corrected import corrected, read_labels
from trust.errors import PreflightError
from trust.runs import Run
from trust.storage import open_storage

RIGHT, WRONG = "The Angara flows out of Lake Baikal [1].", "The Murray does [2]."
CORRECT = "trust_score.answer_correctness"


def made(root: Path, labels: list[dict[str, Any]] | str, **options: Any) -> tuple[list[dict[str, Any]], list[str]]:
    if isinstance(labels, str):
        path = root / "labels.csv"
        path.write_text(labels)
    else:
        path = lines(root / "labels.jsonl", labels)
    read = config(root, labels=str(path), **{"runs": ["mine"]} | options)
    return corrected(read, read_labels(read, open_storage()))


@pytest.fixture
def mine(tmp_path: Path) -> Run:
    """Sixty questions; the metric calls the answers to two in three right."""
    rows = [response(n, WRONG if n % 3 == 0 else RIGHT) for n in range(60)]
    return write_run(tmp_path / "runs", rows, "mine")


def test_a_rate_is_corrected_for_what_people_say(mine: Run, tmp_path: Path) -> None:
    # of the first 24 the metric calls 16 right, and people four fewer
    said = [float(n % 3 != 0 and n % 6 != 1) for n in range(24)]
    text = "sample_id,answer_correctness\n" + "".join(f"demo:{n:05d},{said[n]:g}\n" for n in range(24))
    ((row,), notes) = made(tmp_path, text)
    assert (row["run"], row["model"], row["prompt"], row["value"]) == ("mine", "small", "em", CORRECT)
    assert (row["rows"], row["labels"], row["status"], notes) == (60, 24, "scored", [])
    assert row["judge"] == pytest.approx(2 / 3)
    assert row["judge_bias"] == pytest.approx(4 / 24)
    assert row["labels_alone"] == pytest.approx(12 / 24)
    judged = [float(n % 3 != 0) for n in range(60)]
    expected = ppi.corrected_mean(judged, [*said, *[float("nan")] * 36])  # type: ignore[arg-type]
    assert row["corrected"] == pytest.approx(expected.corrected.value)
    assert row["corrected_high"] - row["corrected_low"] < row["labels_alone_high"] - row["labels_alone_low"]
    assert (row["labels_needed"], row["labels_needed_alone"]) == (expected.needed, expected.needed_alone)
    tables.to_table("corrected", [row])


def test_verdicts_are_corrected_by_role(mine: Run, tmp_path: Path) -> None:
    (part,) = mine.parts("verdicts")
    verdicts = tables.to_rows(mine.storage.read_table(part["path"]))
    labels = [
        {"hash": row["hash"], "sample_id": row["sample_id"], "label": row["answer"] == "1"} for row in verdicts[:30]
    ]
    rows, notes = made(tmp_path, labels)
    found = {row["value"]: row for row in rows}
    assert found["verdict.citation_recall"]["judge"] == pytest.approx(2 / 3)
    assert found["verdict.citation_recall"]["judge_bias"] == 0
    assert found["verdict.citation_recall"]["labels"] == 30
    assert notes == []


def test_few_labels_are_no_ground(mine: Run, tmp_path: Path) -> None:
    labels = [{"sample_id": f"demo:{n:05d}", "model": "small", CORRECT: n % 2} for n in range(5)]
    ((row,), _) = made(tmp_path, labels)
    assert (row["status"], row["reason"], row["detail"]) == ("na", "too_few", "5 labels; 10 are needed")
    assert row["judge"] == pytest.approx(2 / 3)
    half = [{"sample_id": f"demo:{n:05d}", "answer_correctness": 0.5} for n in range(12)]
    ((row,), _) = made(tmp_path, half)
    assert (row["status"], row["reason"]) == ("na", "constant")


def test_labels_that_meet_nothing_are_told_of(mine: Run, tmp_path: Path) -> None:
    labels = [{"sample_id": f"demo:{n:05d}", "answer_correctness": 1} for n in range(58, 62)]
    _, notes = made(tmp_path, labels)
    assert notes == ["answer_correctness: 2 of 4 labels meet no score, such as that of sample_id demo:00060"]
    with pytest.raises(
        PreflightError, match=r"no run has a value answer_corectness; did you mean answer_correctness\?"
    ):
        made(tmp_path, [{"sample_id": "demo:00001", "answer_corectness": 1}])
    with pytest.raises(PreflightError, match="no run has answer_correctness of any labelled row, such as sample_id x"):
        made(tmp_path, [{"sample_id": "x", "answer_correctness": 1}])
    with pytest.raises(PreflightError, match="no run has a verdict with the hash abc"):
        made(tmp_path, [{"hash": "abc", "label": 1}])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([{"refused": 1}, {"refused": "maybe"}], r"line 2: refused is 'maybe', which is no number; scale="),
        ([{"refused": 1}, {"sample_id": "demo:00000", "refused": 0}], "line 2: .*another label"),
    ],
)
def test_labels_that_cannot_be_read(mine: Run, labels: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=message):
        made(tmp_path, [{"sample_id": f"demo:{n:05d}"} | label for n, label in enumerate(labels)])


def test_other_columns_are_for_people(mine: Run, tmp_path: Path) -> None:
    labels = [{"sample_id": f"demo:{n:05d}", "answer_correctness": n % 2, "note": "why"} for n in range(12)]
    ((row,), notes) = made(tmp_path, labels)
    assert row["status"] == "scored"
    assert notes == [f"{tmp_path}/labels.jsonl: columns that are no value of the runs: note"]
    with pytest.raises(PreflightError, match=r"labels=.*/none.csv: no such file"):
        read_labels(config(tmp_path, runs=["mine"], labels=str(tmp_path / "none.csv")), open_storage())


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([{"answer_correctness": 1}], r"line 1: the row has neither a sample_id nor the hash"),
        (
            [{"sample_id": "a", "refused": 1}, {"sample_id": "a", "model": "m", "refused": 1}],
            "line 2: the row is named",
        ),
        ([{"sample_id": "a"}], "no row holds a label"),
    ],
)
def test_rows_that_cannot_be_used(labels: list[dict[str, Any]], message: str, tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=message):
        made(tmp_path, labels)


def test_a_label_of_one_draw_is_not_that_of_another(tmp_path: Path) -> None:
    rows = [response(n, RIGHT, draw=draw) for n in range(10) for draw in range(2)]
    write_run(tmp_path / "runs", rows, "mine")
    labels = [{"sample_id": f"demo:{n:05d}", "answer_correctness": n % 2} for n in range(10)]
    with pytest.raises(PreflightError, match="stands for several responses"):
        made(tmp_path, labels)
    ((row,), _) = made(tmp_path, [label | {"draw": 1} for label in labels])
    assert (row["rows"], row["labels"]) == (20, 10)
