import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trust.prepare.helpers import Rows, lines, prepare, sample, write
from trust.errors import PreflightError
from trust.storage import open_storage

# What strict mode makes of the inputs that the published evaluator was run on: row number -> reason.
CRASHES = {
    "asqa_answers_found_missing": {0: "missing_field"},
    "asqa_answers_found_ragged": {0: "length_mismatch"},
    "asqa_answers_found_short": {0: "length_mismatch"},
    "asqa_empty_alias": dict.fromkeys(range(4), "empty_answer"),
    "asqa_output_missing": {0: "missing_output"},
    "asqa_output_null": {0: "missing_output"},
}


def test_outputs_ignore_require_split(tmp_path: Path) -> None:
    path = write(tmp_path / "towns.jsonl", lines([sample(0), sample(1, output=None), sample(2, output=3)]))
    ignore = prepare(path, outputs="ignore")
    assert [row["sample_id"] for row in ignore["samples"]] == ["towns:q0", "towns:q1", "towns:q2"]
    assert not any("output" in row["meta"] for row in ignore["samples"])
    require = prepare(path, outputs="require")
    assert [row["sample_id"] for row in require["responses"]] == ["towns:q0"]
    assert [row["reason"] for row in require["failed"]] == ["missing_output", "invalid_type"]
    split = prepare(path, outputs="split")
    assert [row["sample_id"] for row in split["responses"]] == ["towns:q0"]
    assert [row["sample_id"] for row in split["samples"]] == ["towns:q1"]
    assert [row["reason"] for row in split["failed"]] == ["invalid_type"]


def test_an_empty_cell_is_an_empty_answer_where_each_row_is_to_have_one(tmp_path: Path) -> None:
    path = write(tmp_path / "towns.csv", "id,question,output\na,Where?,\nb,Where?,There\n")
    require = prepare(path, outputs="require", task="none")
    assert [(row["sample_id"], row["output"]) for row in require["responses"]] == [
        ("towns:a", ""),
        ("towns:b", "There"),
    ]
    split = prepare(path, outputs="split", task="none")
    assert [row["sample_id"] for row in split["samples"]] == ["towns:a"]
    other = write(tmp_path / "other.csv", "id,question\na,Where?\n")
    assert [row["reason"] for row in prepare(other, outputs="require", task="none")["failed"]] == ["missing_output"]


def test_failed_rows_say_where_and_why(tmp_path: Path) -> None:
    bad = sample(1)
    bad["docs"][1]["answers_found"] = [0, 0.5]
    path = write(tmp_path / "towns.jsonl", lines([sample(0), bad]) + '{"question": "x"\n')
    failed = prepare(path)["failed"]
    assert failed[0] == {
        "job": "prepare",
        "row": f"{path}#1",
        "file": str(path),
        "line": 2,
        "field": "docs[1].answers_found[1]",
        "reason": "invalid_label",
        "detail": "docs[1].answers_found[1] is 0.5; it must be 0 or 1",
    }
    assert (failed[1]["line"], failed[1]["reason"], failed[1]["field"]) == (3, "invalid_json", None)


def test_a_rows_own_task_stands_over_the_datas(tmp_path: Path) -> None:
    path = write(tmp_path / "towns.jsonl", lines([sample(0), sample(1, task="em5")]))
    assert [row["task"] for row in prepare(path, task="cm")["samples"]] == ["cm", "em5"]


def _mixed() -> list:
    """Good rows of many forms, some without an id, and bad ones."""
    rows: list = [sample(i, id=... if i % 3 else f"q{i}") for i in range(23)]
    rows += [sample(50, question=""), sample(51, answers=[["x"]]), sample(52, docs="no"), 5]
    rows += [sample(60, answers="Norway", docs=[]), sample(61, answers=..., docs=...), sample(62, output=["a", "b"])]
    return rows


def _content(found: Rows) -> dict[str, list[str]]:
    """Tables without places, which do follow the files."""
    places = {"row", "file", "line"}
    return {
        name: sorted(json.dumps({k: v for k, v in row.items() if k not in places}, sort_keys=True) for row in rows)
        for name, rows in found.items()
    }


def test_the_same_tables_on_any_order_sharding_and_format(tmp_path: Path) -> None:
    rows = _mixed()
    options = {"outputs": "split", "name": "towns", "language": "en"}
    expected = _content(prepare(write(tmp_path / "all.jsonl", lines(rows)), **options))
    assert [len(expected[name]) for name in ("samples", "responses", "failed")] == [0, 27, 4]
    for seed, unit_rows, ending in [(1, 1, "jsonl"), (2, 5, "json.gz"), (3, 1000, "jsonl.zst"), (4, 2, "json")]:
        shuffled = rows[:]
        random.Random(seed).shuffle(shuffled)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for shard in range(seed):
            piece = shuffled[shard::seed]
            text = lines(piece) if "jsonl" in ending else json.dumps({"data": piece}, indent=seed)
            write(folder / f"{9 - shard}.{ending}", text)
        assert _content(prepare(folder, unit_rows=unit_rows, **options)) == expected


def test_parquet_gives_the_same_tables(tmp_path: Path) -> None:
    rows = [sample(i, id=... if i % 2 else f"q{i}") for i in range(9)]
    write(tmp_path / "towns.jsonl", lines(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "towns.parquet", row_group_size=4)
    options = {"outputs": "require", "task": "em"}
    made = _content(prepare(tmp_path / "towns.parquet", **options))
    assert made == _content(prepare(tmp_path / "towns.jsonl", **options))


def test_an_object_store_gives_the_same_tables(s3: str, tmp_path: Path) -> None:
    text = lines(_mixed())
    storage = open_storage(s3)
    for name in ("towns.jsonl", "towns.jsonl.gz"):
        storage.write_bytes(f"{s3}/in/{name}", write(tmp_path / name, text).read_bytes())
        options = {"outputs": "split", "language": "en"}
        found = prepare(f"{s3}/in/{name}", unit_rows=5, **options)
        assert _content(found) == _content(prepare(tmp_path / name, **options))
        assert found["failed"][0]["file"] == f"{s3}/in/{name}"
    with pytest.raises(PreflightError, match=r"did you mean s3://.*/in/towns\.jsonl"):
        prepare(f"{s3}/in/twons.jsonl")
    assert len(prepare(f"{s3}/in/*.gz", name="towns")["samples"]) == 27 - 1


@pytest.mark.parametrize("name", sorted(CRASHES))
def test_inputs_that_crash_the_published_evaluator(shared: Path, tmp_path: Path, name: str) -> None:
    given = json.loads((shared / "data/trust_golden/crashes" / f"{name}.json").read_text())
    path = write(tmp_path / "in.json", json.dumps({"data": given["input"]}))
    found = prepare(path, outputs="require", task="em")
    assert {int(row["row"].split("#")[1]): row["reason"] for row in found["failed"]} == CRASHES[name]
    assert len(found["responses"]) == len(given["input"]) - len(CRASHES[name])


def test_all_other_odd_inputs_are_read_in_full(shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "data/trust_golden/crashes").glob("*.json"))
    assert len(files) == 28
    for file in files:
        given = json.loads(file.read_text())
        if file.stem in CRASHES:
            continue
        path = write(tmp_path / "in.json", json.dumps(given["input"]))
        if not given["input"]:
            with pytest.raises(PreflightError, match="there is no row"):
                prepare(path, outputs="require", task="em")
            continue
        found = prepare(path, outputs="require", task="em")
        assert not found["failed"], file
        by_id = {row["sample_id"]: row for row in found["responses"]}
        for row in given["input"]:
            made = by_id[f"in:{row['id']}"]
            assert made["output"] == row["output"]
            assert made["answers"] == (row.get("answers") or [])
            assert [doc["answers_found"] for doc in made["docs"]] == [
                [int(mark) for mark in doc["answers_found"]] for doc in row.get("docs", [])
            ]


@pytest.mark.parametrize(("name", "task", "empty"), [("asqa", "em", 2), ("qampari", "em5", 6), ("eli5", "cm", 0)])
def test_real_trust_data(shared: Path, name: str, task: str, empty: int) -> None:
    path = shared / f"data/trust_golden/{name}/input.json"
    rows = json.loads(path.read_text())["data"]
    found = prepare(path, compat="upstream", unit_rows=20, outputs="require", name=name, task=task, language="en")
    assert not found["failed"]
    by_id = {row["sample_id"]: row for row in found["responses"]}
    assert by_id.keys() == {f"{name}:{row['id']}" for row in rows}
    for row in rows:
        made = by_id[f"{name}:{row['id']}"]
        assert (made["question"], made["output"], made["answers"]) == (row["question"], row["output"], row["answers"])
        assert [doc["text"] for doc in made["docs"]] == [doc.get("sent", doc["text"]) for doc in row["docs"]]
        assert (made["task"], made["meta"]["kind"], made["context"]["source"]) == (task, row["kind"], row["source"])
    strict = prepare(path, unit_rows=20, outputs="require", name=name, task=task, language="en")
    assert [row["reason"] for row in strict["failed"]] == ["empty_answer"] * empty
    assert len(strict["responses"]) == len(rows) - empty


def test_real_rag_data(shared: Path) -> None:
    found = prepare(shared / "data/rag/expertqa_rand_val_40.json", outputs="split", task="cm", language="en")
    assert (len(found["responses"]), found["failed"]) == (40, [])
    assert all(row["docs"][0]["answers_found"] is None for row in found["responses"])
    assert json.loads(found["responses"][0]["meta"]["human"])[0]["support"]
    options = {"columns": {"docs": "ctxs"}, "language": "en"}
    found = prepare(shared / "data/rag/nq_open_oracle_first60.jsonl", task="em", **options)
    assert (len(found["samples"]), found["failed"]) == (60, [])
    rontgen = next(row for row in found["samples"] if row["question"].endswith("nobel prize in physics"))
    assert rontgen["answers"] == [["Wilhelm Conrad Röntgen"]]
    assert rontgen["docs"][0]["title"] == "List of Nobel laureates in Physics"
