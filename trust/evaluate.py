"""Evaluation: metrics over responses, in units; sums, not rows, go to the driver."""

import asyncio
import json
import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trust import cluster, cost, metrics, slices, tables, token_counts
from trust import config as configs
from trust.ask import judges, languages
from trust.ask.runner import Ledger, RowAsk, Runner
from trust.config import AskingJobConfig, JobConfig
from trust.errors import ConfigError, RowError, TrustError
from trust.execute import execute
from trust.metrics.own import last_lines
from trust.outcome import check_failed
from trust.prepare.config import DataConfig
from trust.prepare.job import PrepareConfig, on_cluster, run_prepare
from trust.retry import changed, failed_before
from trust.runs import Manifest, Plan, Run
from trust.setup import run_setup
from trust.storage import absolute, open_storage
from trust.sums import sum_scores
from trust.units import Unit, UnitResult, read_rows, row_units
from trust.verdicts import UNREADABLE, VerdictStore, care_for, used_verdicts

UNIT_ROWS = 256  # at most

log = logging.getLogger("trust")

ASKS = ("asked", "repeated", "reused", "failed", "truncated")  # as `asks_*` in the manifest's totals

KEPT = ("entails", "complete", "logprob")  # asks whose answers are kept as verdicts

_MOST_REPLICATES = 20_000


@dataclass
class EvaluateConfig(AskingJobConfig):
    """`jobs.evaluate`.

    Attributes:
        data: a file that already holds outputs (`data.path`); null evaluates what `jobs.respond` left in the run.
        task: em, em5, cm or none, for rows that do not say; overrides the data's.
        from_run: the run whose responses are evaluated; null is this run.
        judge: who answers the asks; none where no metric asks.
        metrics: metric name -> its options.
        slices: `language`, and columns of the user's own, by whose values numbers are given as well.
        replicates: bootstrap replicates behind every interval.
        report: whether `report.html` is written.
    """

    data: DataConfig = field(default_factory=DataConfig)
    task: str | None = None
    from_run: str | None = None
    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)
    metrics: dict[str, Any] = field(default_factory=dict)
    slices: list[str] = field(default_factory=lambda: [slices.LANGUAGE])
    replicates: int = 1000
    report: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data.path and self.from_run:
            raise ConfigError("data.path and from_run both say where the responses are: give one of them")
        if not self.metrics:
            raise ConfigError(f"metrics is empty: choose from {', '.join(metrics.names())}")
        if self.replicates < 100:
            raise ConfigError(f"replicates={self.replicates}: an interval needs at least 100")
        if self.replicates > _MOST_REPLICATES:
            raise ConfigError(
                f"replicates={self.replicates}: more than {_MOST_REPLICATES:,} only take memory; 1000 will do"
            )
        if twice := [name for name, count in Counter(self.slices).items() if count > 1]:
            raise ConfigError(f"slices names {twice[0]} twice")
        made = metrics.build(self.metrics, self.compat)
        self.judge = self.judge.only({ask for metric in made for ask in metric.asks})
        self.metrics = metrics.resolve(
            self.metrics, lambda path: open_storage(config=self.storage).read_bytes(absolute(path))
        )


def run_evaluate(config: EvaluateConfig) -> Manifest:
    """Scores every response of a run, or of the file at `data.path`: the tables `scores` and `verdicts`, and the sums
    behind the summary.

    Raises:
        PreflightError: no responses, no judge, no room; nothing has been loaded then.
        JobStopped: the judge's `cost_limit` was reached before every row was scored.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    limit = config.judge.cost_limit()
    check(config, run)
    if config.data.path:
        prepared = run_prepare(prepare_config(config))
        if not prepared.tables.get("responses"):
            check_failed(prepared, run, config)
    parts, inputs = responses(config)
    cluster.connect(config.cluster)
    found = ((run.storage, part["path"], config.slices) for part in parts)
    slices.check(config.slices, on_cluster(config.cluster, config.cluster.actor_cpus or 1, slices.find, found))
    chosen = config.judge.chosen()
    plan = plan_evaluate(config, run, parts, inputs, *cluster.actor_resources(chosen.values(), config.cluster))
    plan.worker_config["budget"] = cost.share(limit, plan, run, config)
    if done := run_setup(plan, run, config):
        plan.worker_config["setup"] = done
        plan.config["setup"] = done
    if token_counts.run_counts(plan, run, config):
        plan.worker_config["run"] = run.name
    manifest = execute(plan, run, config, config.retry_failed)
    for ask in KEPT:
        if ask in chosen:
            care_for(VerdictStore(run.storage, absolute(config.storage.root), plan.identity["judge"][ask]), manifest)
    cost.check(limit, manifest)
    return manifest


def check(config: EvaluateConfig, run: Run) -> None:
    """Whether responses, judge and metrics are there; nothing is loaded. Raises PreflightError."""
    if not config.data.path:
        responses(config)
    for judge in config.judge.chosen().values():
        judge.preflight(run.storage)
    for metric in metrics.build(config.metrics, config.compat):
        metric.preflight()


def prepare_config(config: EvaluateConfig) -> PrepareConfig:
    """How the file at `data.path` is prepared first."""
    common = {name: getattr(config, name) for name in JobConfig.__dataclass_fields__}
    return PrepareConfig(**common, data=replace(config.data, outputs="require"), task=config.task)


def responses(config: EvaluateConfig) -> tuple[list[dict[str, Any]], str]:
    """Parts of the table that is evaluated, and a hash over their manifests. Raises PreflightError."""
    source = Run.of(config, config.from_run)
    return source.inputs("responses", "jobs.respond (or give data.path=FILE with outputs)")


def plan_evaluate(
    config: EvaluateConfig, run: Run, parts: list[dict[str, Any]], inputs: str, cpus: float, gpus: float
) -> Plan:
    """What is to be done.

    Args:
        parts, inputs: see `responses`.
        cpus, gpus: what one actor takes.
    """
    chosen = config.judge.chosen()
    units = row_units(parts, config.unit_rows, UNIT_ROWS)
    return Plan(
        job="evaluate",
        identity={
            "inputs": inputs,
            "judge": judges.identity(config.judge, run.storage),
            "metrics": config.metrics,
            "compat": config.compat,
            "slices": config.slices,
            "replicates": config.replicates,
        },
        units=units,
        worker="trust.evaluate:EvaluateWorker",
        worker_config={
            "judge": {ask: judge.for_actor(int(cpus)) for ask, judge in chosen.items()},
            "metrics": config.metrics,
            "compat": config.compat,
            "slices": config.slices,
            "replicates": config.replicates,
            "storage": configs.plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=configs.plain(config),
        cpus=cpus,
        gpus=gpus,
        # Enough asks for full batches of like length, but few enough rows that a kill loses little.
        rows_in_flight=min(128, max(8, sum(unit.rows for unit in units) // 32)),
    )


class EvaluateWorker:
    """Scores units of the responses table (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._metrics = metrics.build(config["metrics"], config["compat"])
        for metric in metrics.to_set_up(self._metrics):
            metric.take(config["setup"][metric.name])
        if "run" in config:
            token_counts.take(self._metrics, Run(self._storage, config["root"], config["run"]))
        self._slices = sorted({slices.LANGUAGE, *config["slices"]})  # summaries tell of languages in any case
        self._replicates = config["replicates"]
        self._backends = judges.load(config["judge"], self._storage, config.get("budget"))
        self._runner = Runner(self._backends)
        self._stores = {
            ask: VerdictStore(self._storage, config["root"], self._backends[ask].fingerprint)
            for ask in KEPT
            if ask in self._backends
        }

    async def close(self) -> None:
        for backend in self._backends.values():
            backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        rows = await asyncio.to_thread(read_rows, unit, self._storage)
        stores = self._stores
        ledger = Ledger({ask: store.judge for ask, store in stores.items()})
        ids = [row["sample_id"] for row in rows]
        known = [row for store in stores.values() for row in await asyncio.to_thread(store.load, ids)]
        for verdict in known:
            ledger.know(verdict)
        wanted = [(metric, row) for metric in self._metrics for row in rows]
        again = await asyncio.to_thread(
            failed_before, unit, self._storage, "scores", [row["sample_id"] for row in rows]
        )
        if again is not None:
            here = set(map(tables.row_key, rows))  # not the draws of the same questions in the next unit
            again = [score for score in again if tables.row_key(score) in here]
            keys = {(score["metric"], tables.row_key(score)) for score in again}
            wanted = [(metric, row) for metric, row in wanted if (metric.name, tables.row_key(row)) in keys]
        scores = await asyncio.gather(*(self._score(metric, row, ledger) for metric, row in wanted))
        used = used_verdicts(scores, ledger.verdicts)
        old = {(verdict["sample_id"], verdict["hash"]) for verdict in known}
        new = [verdict for verdict in used if (verdict["sample_id"], verdict["hash"]) not in old]
        for ask, store in stores.items():
            await asyncio.to_thread(store.add, [verdict for verdict in new if verdict["ask"] == ask])
        counts, reasons, sums = _counts(scores), _reasons(scores), self._sums(scores)
        if again is not None:
            counts = changed(counts, again)
            reasons.subtract(_reasons(again))
            for name, array in self._sums(again).items():
                sums[name] = sums.get(name, np.zeros_like(array)) - array
        return UnitResult(
            tables={
                "scores": tables.to_table("scores", scores),
                "verdicts": tables.to_table("verdicts", used),
            },
            counts=counts,
            totals={f"asks_{key}": float(ledger.counts[key]) for key in ASKS}
            | ledger.totals
            | {"judge_seconds": ledger.seconds}
            | {f"{UNREADABLE}{path}": 1.0 for store in stores.values() for path in store.unreadable}
            | dict(reasons),
            sums=sums,
        )

    async def _score(self, metric: metrics.Metric, row: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
        ask = self._runner.ask_for(row["sample_id"], ledger)
        score = {key: row[key] for key in ("sample_id", "model", "prompt", "draw", "dataset", "language", "task")}
        score |= {"metric": metric.name, "slices": slices.slices_of(row, self._slices)}
        try:
            if row["status"] != "ok":
                raise RowError("no_response", f"the response failed: {row['reason']}: {row['detail']}")
            result = metrics.checked(await metric.row(row, ask), metric)
        except TrustError:  # ends the job
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # exit() in a metric from outside would end the actor, row by row, for ever
            if not isinstance(error, RowError):
                error = RowError("metric_error", f"{metric.name}: {last_lines(error)}")
            return score | self._asked(row, ask) | {"status": "failed", "reason": error.reason, "detail": error.detail}
        return (
            score
            | self._asked(row, ask)
            | {
                "values": result.values,
                "terms": result.terms,
                "trace": json.dumps(result.trace, ensure_ascii=False),
                "status": result.status,
                "reason": result.reason,
                "detail": result.detail,
            }
        )

    def _asked(self, row: dict[str, Any], ask: RowAsk) -> dict[str, Any]:
        """What the row asked, and whether the judge was asked in a language that it is not for."""
        asked = ask.asked & set(KEPT)
        strange = any(languages.outside(row["language"], self._backends[name].languages) for name in asked)
        return {"asks": _in_order(ask.trail), "outside_judge_languages": strange}

    def _sums(self, scores: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        return sum_scores(scores, self._metrics, self._replicates)


def _in_order(trail: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row's asks in an order that does not depend on which answer came first."""
    return sorted(trail, key=lambda ask: (ask["sentence"] or 0, ask["role"], ask["doc"] or 0, ask["hash"]))


def _counts(scores: list[dict[str, Any]]) -> dict[str, int]:
    return dict(Counter(score["status"] for score in scores))


def _reasons(scores: list[dict[str, Any]]) -> Counter[str]:
    return Counter(f"failed:{score['reason']}" for score in scores if score["status"] == "failed")
