import pytest

from trust.units import row_units, unit_size


@pytest.mark.parametrize(
    ("rows", "configured", "most", "size"),
    [(0, None, 64, 1), (1, None, 64, 1), (200, None, 64, 1), (201, None, 64, 2), (10**6, None, 64, 64), (10, 7, 4, 7)],
)
def test_size_of_a_unit(rows: int, configured: int | None, most: int, size: int) -> None:
    assert unit_size(rows, configured, most) == size


def test_units_cover_parts_once_and_never_span_two() -> None:
    parts = [{"path": "a", "rows": 250}, {"path": "b", "rows": 1}, {"path": "c", "rows": 149}]
    units = row_units(parts, None, 64)
    assert len({unit.name for unit in units}) == len(units)
    covered = [(unit.source["path"], unit.source["start"] + i) for unit in units for i in range(unit.rows)]
    assert covered == [(part["path"], i) for part in parts for i in range(part["rows"])]
    assert max(unit.rows for unit in units) == 2
