"""Every table has one schema; rows go in and come out unchanged, sorted by key."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trust import tables


def sample(key: str, **more: object) -> dict:
    return {"sample_id": key, "dataset": "d", "language": "en", "task": "em", "question": "q"} | more


def test_rows_are_sorted_by_key_and_missing_columns_are_null() -> None:
    table = tables.to_table("samples", [sample("b"), sample("a")])
    assert table.schema.equals(tables.SCHEMAS["samples"])
    assert table["sample_id"].to_pylist() == ["a", "b"]
    assert table["docs"].null_count == 2


def test_maps_and_nested_values_come_back_as_they_went_in() -> None:
    docs = [{"doc_id": "1", "title": "t", "text": "x", "score": None, "answers_found": [0, 1], "rec_score": 50.0}]
    row = sample("a", meta={"b": "2", "a": "1"}, context={}, answers=[["x", "y"], []], docs=docs)
    (back,) = tables.to_rows(tables.to_table("samples", [row]))
    assert {key: back[key] for key in row} == row


def test_an_empty_table_keeps_its_types() -> None:
    assert tables.to_table("scores", []).schema.equals(tables.SCHEMAS["scores"])


def test_a_column_that_the_schema_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="no column"):
        tables.to_table("samples", [sample("a", anwsers=[])])


def test_a_value_that_does_not_fit_is_an_error() -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        tables.to_table("samples", [sample("a", answers=[[1.5]])])


@pytest.mark.parametrize("name", tables.SCHEMAS)
def test_every_table_has_a_key_of_its_own_columns(name: str) -> None:
    assert set(tables.SORT_KEYS[name]) <= set(tables.SCHEMAS[name].names)


def test_of_rows_with_the_same_key_the_first_stays() -> None:
    def verdict(sample_id: str, key: str, answer: str) -> dict[str, str]:
        row = {"judge": "j", "hash": key, "sample_id": sample_id, "ask": "entails", "status": "ok"}
        return row | {"answer": answer}

    rows = [verdict("a", "1", "first"), verdict("a", "1", "second"), verdict("a", "2", "x"), verdict("b", "2", "y")]
    halves = [tables.to_table("verdicts", rows[:1]), tables.to_table("verdicts", rows[1:])]
    made = tables.unrepeated("verdicts", pa.concat_tables(halves))
    assert made["answer"].to_pylist() == ["first", "x", "y"]
    assert tables.unrepeated("verdicts", made.slice(0, 0)).num_rows == 0


def test_rows_of_samples_and_their_keys(tmp_path: Path) -> None:
    made = [sample(key, model="m", prompt="p", draw=n, status="ok") for key in ("a", "c", "m", "z") for n in (0, 1)]
    pq.write_table(tables.to_table("responses", made), tmp_path / "part.parquet", row_group_size=2)
    found = tables.to_rows(pq.read_table(tmp_path / "part.parquet", filters=tables.of_samples(["m", "c"])))
    assert [tables.row_key(row) for row in found] == [(key, "m", "p", n) for key in ("c", "m") for n in (0, 1)]
    assert tables.row_key(made[0] | {"metric": "x"}, "scores") == ("a", "m", "p", 0, "x")
