"""The most severe share of many responses, exactly and in bounded memory.

Responses are ranked by severity, the most severe first; of equal ones the one comes first whose sha256 over sample_id, model,
prompt and draw is lower. That order is the same on any sharding, and says nothing about the content. Many are equal: all wrong
answers to unanswerable questions have the same severity (facts.md B1).

Rank and hash are written as one key of 24 bytes whose order as bytes is that of the ranks. The k-th lowest key is found from
its first bytes on: a pass counts what the next two bytes of the keys are that begin like it, until few enough are left to be
read and sorted. A pass holds 65,536 counts, whatever the number of rows.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

KEY_BYTES = 24
DIGITS = 2**16
FEW = 65_536  # keys that are sorted at once

_COLUMNS = ("sample_id", "model", "prompt", "draw")


def keys(severities: Sequence[float], rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """The rows' keys, lowest for the most severe.

    Args:
        severities: above 0, finite.
        rows: sample_id, model, prompt and draw of each.

    Returns:
        uint8, shape (rows, 24).
    """
    # Bits of positive floats are in the order of the floats.
    ranks = ~np.asarray(severities, dtype=">f8").view(">u8")
    hashes = b"".join(_hash(row) for row in rows)
    return np.concatenate(
        [ranks.astype(">u8").view(np.uint8).reshape(-1, 8), np.frombuffer(hashes, np.uint8).reshape(-1, KEY_BYTES - 8)],
        axis=1,
    )


def key(row: Mapping[str, Any]) -> bytes:
    """The key of one row of the table errors that has an error."""
    return keys([row["severity"]], [[row[column] for column in _COLUMNS]]).tobytes()


def count(found: np.ndarray, prefix: bytes) -> np.ndarray:
    """What the two bytes behind `prefix` are in the keys that begin with it: int64, shape (65536,)."""
    at = len(prefix)
    rest = found[_begin(found, prefix)][:, at : at + 2].astype(np.int64)
    return np.bincount(rest[:, 0] * 256 + rest[:, 1], minlength=DIGITS)


def collect(found: np.ndarray, prefix: bytes) -> list[bytes]:
    """The keys that begin with `prefix`."""
    return [row.tobytes() for row in found[_begin(found, prefix)]]


def kth(k: int, count: Callable[[bytes], np.ndarray], collect: Callable[[bytes], list[bytes]], few: int = FEW) -> bytes:
    """The k-th lowest key.

    Args:
        k: from 1 to the number of keys.
        count, collect: the functions of these names, over all keys there are.
        few: keys that are sorted at once.
    """
    prefix, left = b"", k
    while True:
        sums = np.cumsum(count(prefix))
        digit = int(np.searchsorted(sums, left))
        before = int(sums[digit - 1]) if digit else 0
        inside = int(sums[digit]) - before
        left -= before
        prefix += digit.to_bytes(2)
        if len(prefix) == KEY_BYTES:
            return prefix
        if inside <= few:
            return sorted(collect(prefix))[left - 1]


def size(rows: int, keep: float) -> int:
    """How many of `rows` are the most severe share `keep`, rounded up."""
    return math.ceil(Fraction(repr(keep)) * rows)


def _hash(row: Sequence[Any]) -> bytes:
    return hashlib.sha256(json.dumps(list(row), ensure_ascii=False).encode()).digest()[: KEY_BYTES - 8]


def _begin(found: np.ndarray, prefix: bytes) -> np.ndarray:
    mask: np.ndarray = (found[:, : len(prefix)] == np.frombuffer(prefix, np.uint8)).all(axis=1)
    return mask
