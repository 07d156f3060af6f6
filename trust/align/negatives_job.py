"""The job that labels the errors of responses: the table `errors`, and the same as JSON lines."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from trust import cluster, cost, metrics, tables
from trust.align import negatives, rows
from trust.align.export import export_errors
from trust.align.negatives import COLUMNS, Labeller, Weights
from trust.ask import judges
from trust.ask.runner import Ledger, RowAsk, Runner
from trust.compat import choices
from trust.config import AskingJobConfig, plain
from trust.config import build as build_config
from trust.errors import ConfigError, RowError
from trust.evaluate import ASKS
from trust.execute import execute
from trust.metrics.trust_score import TrustScoreConfig
from trust.retry import changed, failed_before
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.text import sentences
from trust.units import Unit, UnitResult, read_rows, row_units
from trust.verdicts import UNREADABLE, VerdictStore, care_for, used_verdicts

UNIT_ROWS = 256  # at most

_METRIC = "trust_score"


@dataclass
class NegativesConfig(AskingJobConfig):
    """`jobs.negatives`.

    Attributes:
        from_run: the run whose responses are labelled; null is this run.
        judge: who says whether a document entails a sentence.
        metrics: `trust_score` and its options: how responses are read.
        weights: what an error of each type counts in the severity.
        splits: splits that may be built from (`meta.split`); rows that say of none may.
        export: whether the table is written as JSON lines too, to `{run}/export`.
    """

    from_run: str | None = None
    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)
    metrics: dict[str, Any] = field(default_factory=lambda: {_METRIC: {}})
    weights: Weights = field(default_factory=Weights)
    splits: list[str] = field(default_factory=lambda: ["train"])
    export: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.metrics) != [_METRIC]:
            raise ConfigError(f"metrics={list(self.metrics)}: errors are told by {_METRIC} alone")
        metrics.build(self.metrics, self.compat)
        self.judge = self.judge.only(["entails"])
        self.metrics = metrics.resolve(
            self.metrics, lambda path: open_storage(config=self.storage).read_bytes(absolute(path))
        )


def run_negatives(config: NegativesConfig) -> Manifest:
    """Labels every response of a run; the table `errors`, and `{run}/export/errors-*.jsonl`.

    A response is `ok` whether it has an error or not, and `failed` where it failed already, or cannot be labelled.

    Raises:
        PreflightError: no responses, no judge, no room; nothing has been loaded then.
        JobStopped: the judge's `cost_limit` was reached before every row was labelled.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    check(config, run)
    rows.check_target(config, "negatives", "errors")
    cluster.connect(config.cluster)
    backend = config.judge.entails
    plan = plan_negatives(config, run, *cluster.actor_resources([backend], config.cluster))
    plan.worker_config["budget"] = cost.share(backend.cost_limit, plan, run, config)
    manifest = execute(plan, run, config, config.retry_failed)
    care_for(VerdictStore(run.storage, absolute(config.storage.root), plan.identity["judge"]["entails"]), manifest)
    if config.export:
        export_errors(manifest, run, config.cluster)
    cost.check(backend.cost_limit, manifest)
    return manifest


def check(config: NegativesConfig, run: Run) -> None:
    """Whether responses, judge and language data are there; nothing is loaded. Raises PreflightError."""
    responses(config)
    config.judge.entails.preflight(run.storage)
    sentences.preflight(choices(config.compat).sentences)


def responses(config: NegativesConfig) -> tuple[list[dict[str, Any]], str]:
    """Parts of the table that is labelled, and a hash over their manifests. Raises PreflightError."""
    return Run.of(config, config.from_run).inputs("responses", "jobs.respond")


def plan_negatives(config: NegativesConfig, run: Run, cpus: float, gpus: float) -> Plan:
    """What is to be done.

    Args:
        cpus, gpus: what one actor takes.
    """
    parts, inputs = responses(config)
    reading = {"metrics": config.metrics, "compat": config.compat, "weights": plain(config.weights)}
    return Plan(
        job="negatives",
        identity={
            "inputs": inputs,
            "judge": judges.identity(config.judge, run.storage),
            "splits": sorted(config.splits),
            **reading,
        },
        units=row_units(parts, config.unit_rows, UNIT_ROWS),
        worker="trust.align.negatives_job:NegativesWorker",
        worker_config={
            "judge": {"entails": config.judge.entails.for_actor(int(cpus))},
            "splits": config.splits,
            "storage": plain(config.storage),
            "root": absolute(config.storage.root),
            **reading,
        },
        config=plain(config),
        cpus=cpus,
        gpus=gpus,
        rows_in_flight=64,
    )


class NegativesWorker:
    """Labels units of the responses table (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        options = build_config(TrustScoreConfig, config["metrics"][_METRIC] or {}, f"metrics.{_METRIC}")
        self._labeller = Labeller(options, config["compat"])
        self._weights = Weights(**config["weights"])
        self._splits = config["splits"]
        self._backend = judges.load(config["judge"], self._storage, config.get("budget"))["entails"]
        self._runner = Runner({"entails": self._backend})
        self._verdicts = VerdictStore(self._storage, config["root"], self._backend.fingerprint)

    async def close(self) -> None:
        self._backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        responses = await asyncio.to_thread(read_rows, unit, self._storage)
        ids = [row["sample_id"] for row in responses]
        again = await asyncio.to_thread(failed_before, unit, self._storage, "errors", ids)
        if again is not None:
            here = set(map(tables.row_key, responses))  # not the draws of the same questions in the next unit
            again = [row for row in again if tables.row_key(row) in here]
            wanted = set(map(tables.row_key, again))
            responses = [row for row in responses if tables.row_key(row) in wanted]
        ledger = Ledger({"entails": self._backend.fingerprint})
        known = await asyncio.to_thread(self._verdicts.load, ids)
        for verdict in known:
            ledger.know(verdict)
        asks = [self._runner.ask_for(row["sample_id"], ledger) for row in responses]
        labelled = await asyncio.gather(*(self._label(row, ask) for row, ask in zip(responses, asks, strict=True)))
        trails = [{"sample_id": row["sample_id"], "asks": ask.trail} for row, ask in zip(responses, asks, strict=True)]
        old = {(verdict["sample_id"], verdict["hash"]) for verdict in known}
        used = used_verdicts(trails, ledger.verdicts)
        await asyncio.to_thread(self._verdicts.add, [v for v in used if (v["sample_id"], v["hash"]) not in old])
        return self._result(labelled, ledger, again)

    async def _label(self, row: dict[str, Any], ask: RowAsk) -> dict[str, Any]:
        """The row of the table errors for one response."""
        if row["status"] != "ok":
            return row
        try:
            rows.check_split(row, self._splits)
            found = await self._labeller.label(row, ask)
        except RowError as error:
            return row | {"status": "failed", "reason": error.reason, "detail": error.detail}
        return row | {
            "answerable": found.answerable,
            **dict(zip(COLUMNS, found.sizes, strict=True)),
            "severity": found.severity(self._weights),
            "primary_type": found.primary(self._weights),
        }

    def _result(self, labelled: list[dict[str, Any]], ledger: Ledger, again: list[dict[str, Any]] | None) -> UnitResult:
        counts, found = dict(Counter(row["status"] for row in labelled)), Counter(_found(labelled))
        if again is not None:
            counts = changed(counts, again)
            found.subtract(_found(again))
        return UnitResult(
            {"errors": tables.to_table("errors", labelled)},
            counts,
            {f"asks_{key}": float(ledger.counts[key]) for key in ASKS}
            | ledger.totals
            | {"judge_seconds": ledger.seconds}
            | {f"{UNREADABLE}{path}": 1.0 for path in self._verdicts.unreadable}
            | dict(found),
        )


def _found(labelled: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Counts of errors, and of rows that failed by reason."""
    labelled = list(labelled)
    good = [row for row in labelled if row["status"] == "ok"]
    answerable = sum(row["answerable"] for row in good)
    return (
        {"answerable": float(answerable), "unanswerable": float(len(good) - answerable)}
        | negatives.totals(good)
        | rows.tally("failed", (row["reason"] for row in labelled if row["status"] != "ok"))
    )
