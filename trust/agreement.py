"""Several judges on the same responses: how far they agree, and what each of them does to the scores.

Each judge evaluates the responses in a run of its own, `{run}-{judge}`, through `trust.evaluate`, so that known verdicts are
reused. Two judges are compared on the pairs that both were asked about: some asks follow from earlier answers (whether a
citation alone entails a sentence is asked only where all cited documents together do), so that one judge's pairs need not be
the other's.
"""

import asyncio
import itertools
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trust import config as configs
from trust import results, stats, summary, tables
from trust.ask import judges
from trust.config import AskingJobConfig
from trust.errors import ConfigError
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.execute import execute
from trust.metrics import Stat
from trust.metrics.ratios import BIG
from trust.runs import Manifest, Plan, Run
from trust.storage import Storage, open_storage
from trust.sums import group_named, name_of
from trust.units import Unit, UnitResult, read_rows, row_units

UNIT_ROWS = 1024  # at most
ALL = "all"
RESULT = "judges.json"

_CELLS = ("both", "first", "second", "neither")  # who of the two said yes
_TERMS = (*_CELLS, "questions")


@dataclass(kw_only=True)
class JudgesConfig(AskingJobConfig):
    """`jobs.judges`.

    Attributes:
        from_run: the run whose responses are judged.
        judges: name -> a judge's options (conf/judge/entails), `backend` first; two or more.
        metrics: metric name -> its options.
        replicates: bootstrap replicates behind every interval.
    """

    from_run: str
    judges: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    replicates: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.run == self.from_run:
            raise ConfigError(f"run={self.run}: give this comparison a name of its own, beside the run that it reads")
        if len(self.judges) < 2:
            raise ConfigError("judges: name two or more, as in judges.a.backend=lexical judges.b.backend=t5")
        self.judges = {name: judges.build(values, f"judges.{name}") for name, values in self.judges.items()}
        for name in self.judges:
            self.of(name)

    def of(self, name: str) -> EvaluateConfig:
        """The evaluation by one of the judges."""
        common = {key: getattr(self, key) for key in AskingJobConfig.__dataclass_fields__ if key != "run"}
        return EvaluateConfig(
            **common,
            run=f"{self.run}-{name}",
            from_run=self.from_run,
            judge=judges.JudgeConfig(self.judges[name]),
            metrics=self.metrics,
            replicates=self.replicates,
        )


def run_judges(config: JudgesConfig) -> dict[str, Any]:
    """Evaluates by each judge and compares their verdicts; writes `{run}/judges.json` and returns what it holds:

    - `judges`: name -> the judge in words;
    - `summaries`: name -> the summaries under it (trust.summary);
    - `agreement`: for each two judges, role of the ask and language (and `all` of either): `pairs` both were asked about,
      who of them said yes (`both`, `first`, `second`, `neither`), `agreement` in percent and Cohen's `kappa`, with
      `_low`, `_high` (95 %, bootstrap over questions) beside each; null is not applicable.

    Raises:
        PreflightError: no responses, or one of the judges is not there; none has been asked then.
    """
    run = Run.of(config)
    for judge in config.judges.values():
        judge.preflight(run.storage)
    summaries: dict[str, list[dict[str, Any]]] = {}
    manifests: dict[str, Manifest] = {}
    for name in config.judges:
        evaluation = config.of(name)
        manifests[name], made = run_evaluate(evaluation), Run.of(evaluation)
        summaries[name] = results.write(made, manifests[name], evaluation).summaries
    manifest = execute(plan_judges(config, manifests), run, config)
    result = {
        "judges": {name: judge.describe() for name, judge in config.judges.items()},
        "summaries": summaries,
        "agreement": agreement(run.sums(manifest.job)),
    }
    run.storage.write_bytes(
        run.path(RESULT), json.dumps(result, ensure_ascii=False, indent=1, allow_nan=False).encode()
    )
    return result


def plan_judges(config: JudgesConfig, manifests: dict[str, Manifest]) -> Plan:
    """How verdicts are compared once all judges have judged. Units are rows of the first judge's scores: the others have
    scored the same responses."""
    parts: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, manifest in manifests.items():
        made = Run.of(config.of(name))
        tabled = {table: manifest.tables.get(table, []) for table in ("scores", "verdicts")}
        parts[name] = {t: [part | {"path": made.path(part["path"])} for part in found] for t, found in tabled.items()}
    first = next(iter(parts.values()))["scores"]
    return Plan(
        job="judges",
        identity={
            "judges": {name: [manifest.fingerprint, manifest.finished] for name, manifest in manifests.items()},
            "replicates": config.replicates,
        },
        units=row_units(first, config.unit_rows, UNIT_ROWS),
        worker="trust.agreement:AgreementWorker",
        worker_config={
            "parts": {
                name: {t: [p["path"] for p in found] for t, found in made.items()} for name, made in parts.items()
            },
            "replicates": config.replicates,
            "storage": configs.plain(config.storage),
        },
        config=configs.plain(config),
    )


class AgreementWorker:
    """Compares the judges on the rows of a unit (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["storage"]["root"], config["storage"])
        self._parts: dict[str, dict[str, list[str]]] = config["parts"]
        self._replicates = config["replicates"]

    async def close(self) -> None:
        """Nothing to end."""

    async def work(self, unit: Unit) -> UnitResult:
        return await asyncio.to_thread(self._compare, unit)

    def _compare(self, unit: Unit) -> UnitResult:
        rows = read_rows(unit, self._storage)
        ids = sorted({row["sample_id"] for row in rows})
        said = {name: _Said(self._storage, parts, ids) for name, parts in self._parts.items()}
        groups: dict[tuple[str, ...], list[tuple[str, dict[str, float]]]] = {}
        for row in rows:
            for one, other in itertools.combinations(said, 2):
                for role, cells in _cells(said[one].of(row), said[other].of(row)).items():
                    terms = {cell: count * BIG for cell, count in cells.items()}
                    terms["questions"] = float(row["draw"] == 0)
                    groups.setdefault((one, other, role, row["language"]), []).append((row["sample_id"], terms))
        sums = {}
        for group, members in groups.items():
            matrix = np.array([[terms.get(name, 0.0) for name in _TERMS] for _, terms in members])
            weights = stats.question_weights([sample_id for sample_id, _ in members], self._replicates)
            sums[name_of(group)] = stats.sum_terms(matrix, weights)
        return UnitResult({}, {"ok": len(rows)}, sums=sums)


class _Said:
    """What one judge said of the asks of some samples' rows."""

    def __init__(self, storage: Storage, parts: dict[str, list[str]], sample_ids: list[str]) -> None:
        only = tables.of_samples(sample_ids)

        def read(table: str) -> list[dict[str, Any]]:
            return [row for path in parts[table] for row in tables.to_rows(storage.read_table(path, filters=only))]

        self._asks = {tables.row_key(row, "scores"): row["asks"] for row in read("scores")}
        self._labels = {
            (row["sample_id"], row["hash"]): row["answer"] == "1"
            for row in read("verdicts")
            if row["status"] == "ok" and row["ask"] == "entails"
        }

    def of(self, row: dict[str, Any]) -> dict[tuple[str, str], bool]:
        """(role, pair) -> label."""
        labels = {}
        for ask in self._asks.get(tables.row_key(row, "scores")) or []:
            label = self._labels.get((row["sample_id"], ask["hash"]))
            if label is not None:
                labels[ask["role"], ask["hash"]] = label
        return labels


def _cells(one: dict[tuple[str, str], bool], other: dict[tuple[str, str], bool]) -> dict[str, Counter[str]]:
    """Role -> how often who of the two said yes, on the pairs that both were asked about."""
    found: dict[str, Counter[str]] = {}
    names = {(True, True): "both", (True, False): "first", (False, True): "second", (False, False): "neither"}
    for key in one.keys() & other.keys():
        found.setdefault(key[0], Counter())[names[one[key], other[key]]] += 1
    return found


def agreement(sums: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Agreement of each two judges by role and language out of the units' sums, as `run_judges` says."""
    groups: dict[tuple[str, ...], Any] = {}
    for key, array in sums.items():
        one, other, role, language = group_named(key)
        for group in itertools.product([one], [other], {role, ALL}, {language, ALL}):
            groups[group] = groups.get(group, 0) + array
    return [
        dict(zip(("one", "other", "role", "language"), group, strict=True)) | _measure(stats.from_fixed(array))
        for group, array in sorted(groups.items())
    ]


def _measure(sums: np.ndarray) -> dict[str, Any]:
    cells = {name: sums[:, i] / (BIG if name in _CELLS else 1.0) for i, name in enumerate(_TERMS)}
    both, first, second, neither = (cells[name] for name in _CELLS)
    pairs = both + first + second + neither
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = (both + neither) / pairs
        chance = ((both + first) * (both + second) + (neither + first) * (neither + second)) / pairs**2
        kappa = np.where(chance < 1, (observed - chance) / (1 - chance), np.nan)
    n, questions = round(pairs[0]), round(cells["questions"][0])
    found: dict[str, Any] = {"pairs": n, **{name: round(cells[name][0]) for name in _CELLS}}
    agreed = round(both[0] + neither[0])
    for name, stat in {
        "agreement": Stat(100.0 * observed, n, agreed),
        "kappa": Stat(kappa, n, bounds=(-1.0, 1.0)),
    }.items():
        point = float(stat.value[0])
        known = math.isfinite(point)
        low, high = (stats.interval(stat, questions) if known else None) or (None, None)
        found |= {name: point if known else None, f"{name}_low": low, f"{name}_high": high}
    return found


def show(result: dict[str, Any]) -> None:
    """Prints the agreement of the judges, and the main numbers under each."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=130)
    for name, described in result["judges"].items():
        console.print(f"{name}: {described}", highlight=False)
    table = Table(title="Agreement of judges, on the pairs both were asked about", title_justify="left")
    for column in ("judges", "asked for", "language", "pairs", "agreement, %", "Cohen's kappa"):
        table.add_column(column, justify="left" if column in ("judges", "asked for", "language") else "right")
    for row in result["agreement"]:
        cells = [_cell(row, "agreement", 1), _cell(row, "kappa", 2)]
        table.add_row(f"{row['one']}, {row['other']}", row["role"], row["language"], str(row["pairs"]), *cells)
    console.print(table)
    for name, summaries in result["summaries"].items():
        console.print(f"\nunder {name}:", highlight=False)
        summary.show(summaries)


def _cell(row: dict[str, Any], key: str, digits: int) -> str:
    if row[key] is None:
        return "n.a."
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    return f"{row[key]:.{digits}f}" + (f" [{low:.{digits}f}, {high:.{digits}f}]" if low is not None else "")
