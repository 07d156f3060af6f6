"""The k-th most severe response, beside sorted()."""

import hashlib
import json
import math
import random
from typing import Any

import numpy as np
import pytest

from trust.align import select
from trust.align.select import DIGITS, KEY_BYTES, collect, count, key, keys, kth, size


def rows_of(severities: list[float]) -> list[list[Any]]:
    return [[f"d:{number}", "m", "p", number % 3] for number in range(len(severities))]


def found(severities: list[float], k: int, few: int) -> bytes:
    """Over two parts, as the job adds them up."""
    rows, half = rows_of(severities), len(severities) // 2
    parts = [keys(severities[:half], rows[:half]), keys(severities[half:], rows[half:])]
    return kth(
        k,
        lambda prefix: sum((count(part, prefix) for part in parts), np.zeros(DIGITS, np.int64)),
        lambda prefix: [one for part in parts for one in collect(part, prefix)],
        few,
    )


def in_words(severity: float, row: list[Any]) -> tuple[float, str]:
    return -severity, hashlib.sha256(json.dumps(row).encode()).hexdigest()


@pytest.mark.parametrize("few", [1, 7, select.FEW])
def test_against_sorted_with_many_ties(few: int) -> None:
    draw = random.Random(few)
    severities = [draw.choice([0.5, 0.5, 0.5, 0.34, 0.26, 1.0, draw.random() + 1e-9, 1e-300]) for _ in range(500)]
    rows = rows_of(severities)
    order = sorted(range(500), key=lambda i: in_words(severities[i], rows[i]))
    every = keys(severities, rows)
    for k in (1, 2, 250, 499, 500):
        threshold = found(severities, k, few)
        chosen = {i for i in range(500) if every[i].tobytes() <= threshold}
        assert chosen == set(order[:k])


def test_all_the_same_severity_is_cut_by_the_hash() -> None:
    severities = [0.5] * 101
    threshold = found(severities, size(101, 0.5), 1)
    kept = sum(one.tobytes() <= threshold for one in keys(severities, rows_of(severities)))
    assert kept == 51


def test_the_key_of_one_row_is_that_of_many() -> None:
    row = {"severity": 0.3, "sample_id": "d:0", "model": "m", "prompt": "p", "draw": 0, "more": 1}
    assert key(row) == keys([0.3], [["d:0", "m", "p", 0]])[0].tobytes()
    assert len(key(row)) == KEY_BYTES
    assert key(row | {"severity": math.nextafter(0.3, 1)}) < key(row) < key(row | {"severity": 0.2})


@pytest.mark.parametrize(("rows", "keep", "wanted"), [(10, 0.5, 5), (11, 0.5, 6), (1, 0.5, 1), (30, 0.1, 3), (7, 1, 7)])
def test_the_share_is_rounded_up(rows: int, keep: float, wanted: int) -> None:
    assert size(rows, keep) == wanted
