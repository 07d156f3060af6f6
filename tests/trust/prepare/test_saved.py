"""Data sets that Hugging Face `datasets` saved to disk, by the library itself, and Arrow streams in general."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest

from tests.trust.prepare.helpers import in_order, lines, prepare, sample, write
from trust.errors import ConfigError, PreflightError
from trust.prepare import DataConfig
from trust.prepare.plan import plan
from trust.storage import open_storage

ROWS = [sample(n, year=2000 + n) for n in range(25)]


def stream(path: Path, rows: list[dict[str, Any]], batch: int) -> Path:
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)
    return path


def save(data: Any, path: Path, **options: Any) -> Path:
    datasets.disable_progress_bars()
    data.save_to_disk(str(path), **options)
    return path


@pytest.fixture
def expected(tmp_path: Path) -> Any:
    return in_order(prepare(write(tmp_path / "rows.jsonl", lines(ROWS)), outputs="require", name="d"))


@pytest.mark.parametrize("unit_rows", [1, 4, 10, 100])
@pytest.mark.parametrize("batch", [1, 3, 10, 100])
def test_units_of_any_size_over_batches_of_any_size(tmp_path: Path, unit_rows: int, batch: int, expected: Any) -> None:
    path = stream(tmp_path / "d.arrow", ROWS, batch)
    assert in_order(prepare(path, unit_rows=unit_rows, outputs="require")) == expected
    units = plan(DataConfig(path=str(path)), open_storage(), unit_rows).units
    assert [unit.source["first_row"] for unit in units] == list(range(0, 25, unit_rows))
    assert len({unit.name for unit in units}) == len(units)


def test_a_saved_data_set_gives_the_same_rows(tmp_path: Path, expected: Any) -> None:
    data = datasets.Dataset.from_list(ROWS)
    assert in_order(prepare(save(data, tmp_path / "one"), outputs="require", name="d")) == expected
    shards = save(data.select(range(24, -1, -1)), tmp_path / "many", num_shards=3)
    assert len(list(shards.glob("*.arrow"))) == 3
    assert in_order(prepare(shards, outputs="require", name="d")) == expected


def test_its_name_is_that_of_the_folder(tmp_path: Path) -> None:
    path = save(datasets.Dataset.from_list(ROWS[:1]), tmp_path / "support")
    assert prepare(path)["samples"][0]["sample_id"] == "support:q0"


def test_splits_are_chosen_by_name(tmp_path: Path) -> None:
    splits = {"train": datasets.Dataset.from_list(ROWS[:5]), "test": datasets.Dataset.from_list(ROWS[5:7])}
    path = save(datasets.DatasetDict(splits), tmp_path / "d")
    assert len(prepare(path, split="test")["samples"]) == 2
    assert len(prepare(path / "train")["samples"]) == 5
    with pytest.raises(ConfigError, match=r"several splits: add data\.split= \(train, test\)"):
        prepare(path)
    with pytest.raises(ConfigError, match=r"data\.split=tset: unknown value; did you mean test\?"):
        prepare(path, split="tset")
    with pytest.raises(ConfigError, match=r"data\.split=test: .*train holds no splits"):
        prepare(path / "train", split="test")
    only = save(datasets.DatasetDict({"test": splits["test"]}), tmp_path / "only")
    assert len(prepare(only)["samples"]) == 2


def test_files_that_are_missing_or_cut_short_are_named(tmp_path: Path) -> None:
    path = save(datasets.Dataset.from_list(ROWS), tmp_path / "d", num_shards=2)
    second = path / "data-00001-of-00002.arrow"
    whole = second.read_bytes()
    second.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PreflightError, match=r"data-00001-of-00002\.arrow: cannot be read"):
        prepare(path)
    second.unlink()
    with pytest.raises(PreflightError, match=r"data-00001-of-00002\.arrow: the file is missing, though state\.json"):
        prepare(path)


def test_other_arrow_files_say_what_they_are(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([{"question": "q"}])
    with pa.OSFile(str(tmp_path / "f.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(PreflightError, match=r"f\.arrow: cannot be read: it is an Arrow file \(Feather\)"):
        prepare(tmp_path / "f.arrow")
    (tmp_path / "x.arrow").write_bytes(b"something else altogether")
    with pytest.raises(PreflightError, match=r"x\.arrow: cannot be read"):
        prepare(tmp_path / "x.arrow")
    stream(tmp_path / "dict.arrow", [{"question": "q"}], 1)
    categories = pa.table({"question": pa.array(["q"]).dictionary_encode()})
    with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as sink, pa.ipc.new_stream(sink, categories.schema) as writer:
        writer.write_table(categories)
    with pytest.raises(PreflightError, match="a dictionary is among its batches"):
        prepare(tmp_path / "c.arrow")


def test_a_file_that_changed_after_planning_is_noticed(tmp_path: Path) -> None:
    path = stream(tmp_path / "d.arrow", ROWS, 5)
    units = plan(DataConfig(path=str(path)), open_storage(), 10).units
    assert json.loads(json.dumps(units[1].source)) == units[1].source
    again = stream(tmp_path / "again.arrow", ROWS, 5)
    assert [u.name for u in plan(DataConfig(path=str(again)), open_storage(), 10).units] == [u.name for u in units]
    other = stream(tmp_path / "other.arrow", ROWS[:-1], 5)
    assert units[0].name not in {u.name for u in plan(DataConfig(path=str(other)), open_storage(), 10).units}
