"""How long training rows are, in tokens, before a training is launched: exact quantiles from sums of histograms."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trust.runs import Manifest, Run

BINS = 16_384  # one a token; the last one is for all that are longer
FOLDER = "audit"

_PREFIX = "tokens"
_SHARES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "most": 1.0}


def histograms(table: str, lengths: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Sums of a unit: how many rows are how long.

    Args:
        lengths: what is counted -> tokens of each row.

    Returns:
        `tokens:{table}:{what}` -> int64, shape (BINS,); nothing of what has no rows.
    """
    return {
        f"{_PREFIX}:{table}:{name}": np.bincount(np.minimum(found, BINS - 1), minlength=BINS).astype(np.int64)
        for name, found in lengths.items()
        if found
    }


def quantiles(counts: np.ndarray) -> dict[str, float]:
    """Rows, mean, and the tokens that a share of the rows has at most: `median`, `90%`, `99%`, `most`."""
    counts = counts.astype(np.int64)
    sums = np.cumsum(counts)
    rows = int(sums[-1])
    found = {name: int(np.searchsorted(sums, int(np.ceil(share * rows)))) for name, share in _SHARES.items()}
    return {"rows": rows, "mean": round(float(counts @ np.arange(len(counts))) / rows, 1), **found}


def write_audit(manifest: Manifest, run: Run) -> dict[str, dict[str, float]]:
    """Writes `{run}/audit/pair.json`: the limits, what was done to keep them, and the lengths of what is left.

    Returns:
        `{table}:{what}` -> quantiles.
    """
    tokens = {
        name.removeprefix(f"{_PREFIX}:"): quantiles(array)
        for name, array in run.each_sum(manifest.job, lambda name: name.startswith(f"{_PREFIX}:"))
    }
    made: dict[str, Any] = {
        "limits": manifest.config["lengths"],
        "prompts_shortened": round(manifest.totals.get("prompts_shortened", 0)),
        "docs_dropped": round(manifest.totals.get("docs_dropped", 0)),
        "too_long": round(manifest.totals.get("failed:too_long", 0)),
        "tokens": tokens,
    }
    run.storage.write_bytes(run.path(FOLDER, f"{manifest.job}.json"), json.dumps(made, indent=1).encode())
    return tokens
