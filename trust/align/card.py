"""The card of a building job: how many rows went in, came out, and were left out, by reason."""

import json
from typing import Any

from trust.cli import say
from trust.runs import Manifest, Run

FOLDER = "cards"
_SHOWN = ("dropped", "failed")


def card(manifest: Manifest) -> dict[str, Any]:
    """What became of a job's rows.

    Returns:
        `rows_in`, `ok`; `dropped` and `failed`: reason -> rows; `tables`: name -> rows; `numbers`: the other totals.
    """
    split = {kind: _with(manifest, f"{kind}:") for kind in _SHOWN}
    numbers = {
        key: value for key, value in manifest.totals.items() if not any(key.startswith(f"{kind}:") for kind in _SHOWN)
    }
    return {
        "job": manifest.job,
        "run": manifest.run,
        "finished": manifest.finished,
        "fingerprint": manifest.fingerprint,
        "rows_in": manifest.rows,
        "ok": manifest.counts.get("ok", 0),
        **split,
        "tables": {name: sum(part["rows"] for part in parts) for name, parts in sorted(manifest.tables.items())},
        "numbers": numbers,
    }


def write_card(manifest: Manifest, run: Run, **more: Any) -> None:
    """Writes `{run}/cards/{job}.json` and prints what it says of rows that were left out.

    Args:
        more: what else the card is to hold (plain JSON types).
    """
    made = card(manifest) | more
    path = run.path(FOLDER, f"{manifest.job}.json")
    run.storage.write_bytes(path, json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True).encode())
    for kind in _SHOWN:
        for reason, rows in sorted(made[kind].items(), key=lambda item: (-item[1], item[0])):
            say(f"  {kind}: {rows} {reason}")
    say(f"  card: {path}")


def _with(manifest: Manifest, prefix: str) -> dict[str, int]:
    return {
        key.removeprefix(prefix): round(value)
        for key, value in sorted(manifest.totals.items())
        if key.startswith(prefix) and value
    }
