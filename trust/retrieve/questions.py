"""The questions of a run as retrievers take them: in blocks, one pass over an index shard for each."""

from typing import Any

from trust.storage import Storage
from trust.units import Unit, row_units

GROUPS = 32  # that a search is spread over, at most: each leaves its own best documents of each question
BLOCK = 512  # questions that one pass over a shard serves


def blocks(parts: list[dict[str, Any]], unit_rows: int | None) -> list[Unit]:
    """The questions in blocks. Not 1/200 of all: every block reads the whole index."""
    return row_units(parts, unit_rows or BLOCK, BLOCK)


def groups(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Neighbouring parts of an index together, in at most `GROUPS` groups."""
    size = max(1, -(-len(parts) // GROUPS))
    return [parts[start : start + size] for start in range(0, len(parts), size)]


def search_units(found: list[list[dict[str, Any]]], questions: list[Unit]) -> list[Unit]:
    """Every group of index parts with every block of questions; those of a group follow each other, so that it is read once.

    Args:
        found: groups of parts, as a manifest names them with full paths.
    """
    return [
        Unit(
            f"{number:05d}-{block.name}",
            {"parts": [part["path"] for part in group], "questions": block.source},
            block.rows,
        )
        for number, group in enumerate(found)
        for block in questions
    ]


def read_questions(unit: Unit, storage: Storage) -> tuple[list[str], list[str]]:
    """Ids and questions of the block of a search unit."""
    source = unit.source["questions"]
    rows = storage.read_range(source["path"], source["start"], unit.rows).select(["sample_id", "question"])
    return rows.column("sample_id").to_pylist(), rows.column("question").to_pylist()
