"""Which columns make slices, and what is said of those that do not."""

from pathlib import Path
from typing import Any

import pytest

from tests.trust.report.helpers import response
from trust import tables
from trust.errors import PreflightError
from trust.slices import MAX_VALUES, check, find, slices_of
from trust.storage import Storage


def rows(values: list[Any], column: str = "domain") -> list[dict[str, Any]]:
    return [response(n, "x", meta={} if value is None else {column: value}) for n, value in enumerate(values)]


def checked(root: Path, columns: list[str], *parts: list[dict[str, Any]]) -> None:
    storage = Storage()
    found = []
    for number, part in enumerate(parts):
        path = str(root / f"{number}.parquet")
        storage.write_table(path, tables.to_table("responses", part))
        found.append(find(storage, path, columns))
    check(columns, found)


def test_a_row_belongs_to_one_slice_a_column() -> None:
    row = response(1, "x", language="de", meta={"domain": " law ", "blank": " "})
    columns = ["language", "domain", "blank", "other"]
    assert slices_of(row, columns) == {"language": "de", "domain": "law", "blank": "(none)", "other": "(none)"}


def test_columns_that_some_part_has_values_of_are_fine(tmp_path: Path) -> None:
    checked(tmp_path, ["language", "domain"], rows([None, None]), rows(["law", None]))
    checked(tmp_path, [], rows([None]))
    checked(tmp_path, ["domain"], rows([f"d{n}" for n in range(MAX_VALUES - 1)]), rows([None, "d0"]))


def test_an_unknown_column_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"no row has a value in a column domian; did you mean domain\?") as error:
        checked(tmp_path, ["language", "domian"], rows(["law"]), rows(["art"], "genre"))
    assert "there are domain, genre, language" in str(error.value)


def test_a_column_of_blanks_is_no_slice(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="no row has a value in a column domain"):
        checked(tmp_path, ["domain"], rows(["", None]))


def test_too_many_values_over_all_parts_are_refused_with_what_to_do(tmp_path: Path) -> None:
    values = [f"https://example.org/{n}" for n in range(MAX_VALUES + 1)]
    with pytest.raises(PreflightError, match=r"domain has more than 250 different values .*coarser column"):
        checked(tmp_path, ["domain"], rows(values[:200]), rows(values[200:]))


def test_long_texts_are_no_names_of_slices(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="domain holds texts of more than 200 characters"):
        checked(tmp_path, ["domain"], rows(["law", "x" * 201]))


def test_what_is_found_is_bounded(tmp_path: Path) -> None:
    storage, path = Storage(), str(tmp_path / "many.parquet")
    storage.write_table(path, tables.to_table("responses", rows([f"v{n}" for n in range(3000)])))
    assert len(find(storage, path, ["domain"]).values["domain"]) <= 2 * (MAX_VALUES + 1)
