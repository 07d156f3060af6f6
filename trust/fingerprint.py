"""One hash for everything that must be told apart by content."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any


def fingerprint(identity: Any) -> str:
    """16 hex digits of a sha256 over plain JSON types."""
    text = json.dumps(identity, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each key of nested objects that is not the same in both, dotted, with both values (None where it is missing)."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(set(old) | set(new)):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))
    elif old != new:
        yield path, old, new
