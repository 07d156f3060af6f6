"""Where the numbers of a run come from: its jobs, what became of their rows, and what could not be read."""

import json
from collections import Counter
from itertools import islice
from typing import Any

from trust.report.sample import Group, Tally, stream
from trust.runs import Manifest, Run

_UNREADABLE = 50
_RESPONSES = ("responses", ["status", "reason"])
_REASONS = {"prepare": ("failed", ["reason"]), "respond": _RESPONSES, "cite": _RESPONSES}

Made = list[tuple[Run, Manifest]]


def beside(run: Run, name: str | None) -> Run:
    """The run `name` under the same root; `run` itself for None."""
    return Run(run.storage, run.root.rsplit("/", 1)[0], name) if name else run


def jobs(run: Run, from_run: str | None) -> Made:
    """The jobs behind an evaluation, first to last, each with the run that holds it.

    Args:
        from_run: the run whose responses were evaluated; None for `run`.
    """
    scored = beside(run, from_run)
    cite = scored.manifest("cite")
    answered = beside(scored, cite.config["from_run"]) if cite else scored
    respond = answered.manifest("respond")
    prepared = beside(answered, respond.config.get("from_run")) if respond else answered
    found = [(prepared, prepared.manifest("prepare")), (answered, respond)]
    found += [(scored, cite), (run, run.manifest("evaluate"))]
    return [(where, manifest) for where, manifest in found if manifest]


def describe(run: Run, manifest: Manifest, tallies: dict[Group, Tally]) -> dict[str, Any]:
    """A job for the page: when, with what, and what became of its rows."""
    counts = manifest.counts
    return {
        "job": manifest.job,
        "run": run.name,
        "finished": manifest.finished,
        "units": manifest.units,
        "done": counts.get("ok", 0) + counts.get("scored", 0),
        "na": counts.get("na", 0),
        "failed": counts.get("failed", 0),
        "reasons": _reasons(run, manifest, tallies),
        "versions": manifest.versions,
        "fingerprint": manifest.fingerprint,
        "config": json.dumps(manifest.config, ensure_ascii=False, indent=1),
    }


def unreadable(made: Made) -> dict[str, Any]:
    """The first rows that could not be read at all, and how many there are."""
    parts = [(run, part) for run, manifest in made for part in manifest.tables.get("failed", [])]
    read = (row for run, part in parts for row in stream(run.storage, run.path(part["path"])))
    return {"rows": list(islice(read, _UNREADABLE)), "all": sum(part["rows"] for _, part in parts)}


def _reasons(run: Run, manifest: Manifest, tallies: dict[Group, Tally]) -> list[tuple[str, int]]:
    """Why rows failed or are not applicable, most frequent first."""
    found: Counter[str] = Counter()
    if manifest.job == "evaluate":
        for counted in tallies.values():
            for (_, status, reason), number in counted.outcomes.items():
                if status != "scored":
                    found[reason or status] += number
        return _ordered(found)
    table, columns = _REASONS[manifest.job]
    for part in manifest.tables.get(table, []) if manifest.counts.get("failed") else []:
        for row in stream(run.storage, run.path(part["path"]), columns):
            if row.get("status", "failed") == "failed":
                found[row["reason"]] += 1
    return _ordered(found)


def _ordered(found: Counter[str]) -> list[tuple[str, int]]:
    """Most frequent first; equals by name, since the order they were met in depends on files."""
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
