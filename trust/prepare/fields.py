"""Typed access to the fields of a row; what is wrong is said with the field's full name."""

import json
import math
from collections.abc import Mapping
from typing import Any

from trust.errors import RowError

_ABSENT = object()


def take(row: dict[str, Any], path: str) -> tuple[Any, dict[str, Any]]:
    """The value at a dotted path (null where there is none), and the row without it.

    A key that holds dots itself goes first.
    """
    value, rest = _take(row, path)
    return (None if value is _ABSENT else value), rest


def has(row: Mapping[str, Any], path: str) -> bool:
    """Whether the row has something, be it null, at the dotted path."""
    return _take(dict(row), path)[0] is not _ABSENT


def text(value: Any, field: str) -> str:
    """A string that can be written as UTF-8."""
    if not isinstance(value, str):
        raise wrong_type(value, "text", field)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RowError(
            "invalid_unicode", f"{field} holds half of a surrogate pair at character {error.start + 1}", field
        ) from None
    return value


def optional_text(value: Any, field: str) -> str | None:
    """As `text`; null and blank give null."""
    if value is None:
        return None
    return text(value, field).strip() or None


def number(value: Any, field: str) -> float | None:
    """A finite number, also one written as text (retrievers do that); null gives null."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong_type(value, "a number", field)
    try:
        found = float(value)
    except (ValueError, OverflowError):
        raise wrong_type(value, "a number", field) from None
    if not math.isfinite(found):
        raise RowError("not_finite", f"{field} is {found}; use null where there is no number", field)
    return found


def count(value: Any, field: str) -> int | None:
    """A whole number from 0 that fits 32 bits; null gives null."""
    if isinstance(value, str):
        raise wrong_type(value, "a whole number", field)
    found = number(value, field)
    if found is None:
        return None
    if found < 0 or found != int(found) or found >= 2**31:
        raise RowError("out_of_range", f"{field} is {show(value)}; it must be a whole number from 0", field)
    return int(found)


def items(value: Any, field: str) -> list[Any]:
    """A list; null gives an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_type(value, "a list", field)
    return value


def texts(value: Any, field: str) -> list[str]:
    """A list of strings, or one string; null gives an empty one."""
    if isinstance(value, str):
        value = [value]
    return [text(item, f"{field}[{i}]") for i, item in enumerate(items(value, field))]


def as_text(value: Any, field: str) -> str:
    """Any value as text: strings as they are, all else as JSON."""
    if isinstance(value, str):
        return text(value, field)
    return text(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str), field)


def as_map(value: Any, field: str) -> dict[str, str]:
    """An object as a map of texts, without its nulls; null gives an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong_type(value, "an object", field)
    return {text(key, field): as_text(item, f"{field}.{key}") for key, item in value.items() if item is not None}


def wrong_type(value: Any, wanted: str, field: str) -> RowError:
    return RowError("invalid_type", f"{field} must be {wanted}, not {_kind(value)}: {show(value)}", field)


def show(value: Any) -> str:
    """A value for an error message, cut short."""
    found = repr(value)
    return found if len(found) <= 60 else f"{found[:57]}..."


def _take(row: dict[str, Any], path: str) -> tuple[Any, dict[str, Any]]:
    if path in row:
        return row[path], {key: value for key, value in row.items() if key != path}
    head, _, tail = path.partition(".")
    inner = row.get(head)
    if not tail or not isinstance(inner, dict):
        return _ABSENT, row
    value, rest = _take(inner, tail)
    if value is _ABSENT:
        return _ABSENT, row
    return value, {key: rest if key == head else item for key, item in row.items() if key != head or rest}


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)
