"""Evaluation: metrics over responses, in units; sums, not rows, go to the driver."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from trust import cluster, metrics, stats, tables
from trust import config as configs
from trust.ask import judges
from trust.ask.runner import Ledger, Runner
from trust.config import JobConfig
from trust.errors import ConfigError, RowError
from trust.outcome import check_failed
from trust.prepare.config import DataConfig
from trust.prepare.job import PrepareConfig, run_prepare
from trust.runs import Manifest, Plan, Run, execute
from trust.storage import absolute, open_storage
from trust.units import Unit, UnitResult, read_rows, row_units
from trust.verdicts import VerdictStore

GROUP = ("metric", "dataset", "task", "model", "prompt", "language")


@dataclass
class EvaluateConfig(JobConfig):
    """`jobs.evaluate`.

    Attributes:
        data: a file that already holds outputs (`data.path`); null evaluates what `jobs.respond` left in the run.
        task: em, em5, cm or none, for rows that do not say; overrides the data's.
        from_run: the run whose responses are evaluated; null is this run.
        judge: who answers the asks.
        metrics: metric name -> its options.
        replicates: bootstrap replicates behind every interval.
        report: whether `report.html` is written.
    """

    data: DataConfig = field(default_factory=DataConfig)
    task: str | None = None
    from_run: str | None = None
    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)
    metrics: dict[str, Any] = field(default_factory=dict)
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
        metrics.build(self.metrics, self.compat)


def run_evaluate(config: EvaluateConfig) -> Manifest:
    """Scores every response of a run, or of the file at `data.path`: the tables `scores` and `verdicts`, and the sums
    behind the summary.

    Raises:
        PreflightError: no responses, no judge, no room; nothing has been loaded then.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    judge = config.judge.entails
    if not config.data.path:
        _responses(config)
    judges.preflight(judge)
    for metric in metrics.build(config.metrics, config.compat):
        metric.preflight()
    if config.data.path:
        common = {name: getattr(config, name) for name in JobConfig.__dataclass_fields__}
        data = replace(config.data, outputs="require")
        prepared = run_prepare(PrepareConfig(**common, data=data, task=config.task))
        if not prepared.tables.get("responses"):
            check_failed(prepared, run, config)
    parts, inputs = _responses(config)
    cluster.connect(config.cluster)
    cpus, gpus = _resources(config)
    plan = Plan(
        job="evaluate",
        identity={
            "inputs": inputs,
            "judge": judges.identity(config.judge),
            "metrics": config.metrics,
            "compat": config.compat,
            "replicates": config.replicates,
        },
        units=row_units(parts, config.unit_rows),
        worker="trust.evaluate:EvaluateWorker",
        worker_config={
            "judge": judges.for_actor(judge, int(cpus)),
            "metrics": config.metrics,
            "compat": config.compat,
            "replicates": config.replicates,
            "storage": configs.plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=configs.plain(config),
        cpus=cpus,
        gpus=gpus,
    )
    return execute(plan, run, config)


def _responses(config: EvaluateConfig) -> tuple[list[dict[str, Any]], str]:
    source = Run.of(config, config.from_run)
    return source.inputs("responses", "jobs.respond (or give data.path=FILE with outputs)")


def _resources(config: EvaluateConfig) -> tuple[float, float]:
    """CPUs and GPUs of one actor."""
    judge = config.judge.entails
    if isinstance(judge, judges.LexicalConfig):
        return config.cluster.actor_cpus or 1.0, 0.0
    gpus = float(cluster.offers_gpu()) if judge.gpus is None else judge.gpus
    return config.cluster.actor_cpus or (1.0 if gpus else cluster.node_cpus(config.cluster)), gpus


class EvaluateWorker:
    """Scores units of the responses table (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._metrics = metrics.build(config["metrics"], config["compat"])
        self._replicates = config["replicates"]
        self._judge = judges.build_entails(config["judge"])
        self._runner = Runner({"entails": self._judge})
        self._verdicts = VerdictStore(self._storage, config["root"], self._judge.fingerprint)

    async def close(self) -> None:
        """Nothing to end: the judge goes with the actor."""

    async def work(self, unit: Unit) -> UnitResult:
        rows = await asyncio.to_thread(read_rows, unit, self._storage)
        ledger = Ledger(judge=self._judge.fingerprint)
        for known in await asyncio.to_thread(self._verdicts.load, [row["sample_id"] for row in rows]):
            ledger.know(known)
        scores = await asyncio.gather(*(self._score(metric, row, ledger) for metric in self._metrics for row in rows))
        used = [self._clean(row) for row in ledger.verdicts.values() if row.get("used")]
        new = [row for row in used if row["hash"] in ledger.new]
        await asyncio.to_thread(self._verdicts.add, new)
        counts = Counter(score["status"] for score in scores)
        for score in scores:
            if score["status"] == "failed":
                counts[f"failed:{score['reason']}"] += 1
        reasons = {key: float(counts.pop(key)) for key in list(counts) if ":" in key}
        return UnitResult(
            tables={
                "scores": tables.to_table("scores", scores),
                "verdicts": tables.to_table("verdicts", used),
            },
            counts=dict(counts),
            totals={f"asks_{key}": value for key, value in ledger.counts.items()}
            | {"judge_seconds": ledger.seconds}
            | reasons,
            sums=self._sums(scores),
        )

    async def _score(self, metric: metrics.Metric, row: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
        ask = self._runner.ask_for(row["sample_id"], ledger)
        score = {key: row[key] for key in ("sample_id", "model", "prompt", "draw", "dataset", "language", "task")}
        score |= {"metric": metric.name}
        try:
            if row["status"] != "ok":
                raise RowError("no_response", f"the response failed: {row['reason']}: {row['detail']}")
            result = await metric.row(row, ask)
        except RowError as error:
            return score | {"asks": ask.trail, "status": "failed", "reason": error.reason, "detail": error.detail}
        return score | {
            "values": result.values,
            "terms": result.terms,
            "trace": json.dumps(result.trace, ensure_ascii=False),
            "asks": ask.trail,
            "status": result.status,
            "reason": result.reason,
            "detail": result.detail,
        }

    def _sums(self, scores: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Per group: terms and outcome counts, weighted for every bootstrap replicate; exact in fixed point."""
        by_name = {metric.name: metric for metric in self._metrics}
        groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for score in scores:
            groups.setdefault(tuple(score[key] for key in GROUP), []).append(score)
        sums = {}
        for group, members in groups.items():
            column = {name: i for i, name in enumerate(term_names(by_name[group[0]]))}
            matrix = np.zeros((len(members), len(column)))
            for i, score in enumerate(members):
                extra = {f"rows_{score['status']}": 1.0, "questions": float(score["draw"] == 0)}
                for name, value in ((score.get("terms") or {}) | extra).items():
                    matrix[i, column[name]] = value
            weights = stats.question_weights([score["sample_id"] for score in members], self._replicates)
            sums[quote(json.dumps(group), safe="")] = stats.sum_terms(matrix, weights)
        return sums

    def _clean(self, row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key != "used"}


def term_names(metric: metrics.Metric) -> list[str]:
    """The order of a metric's summed vector: its own terms, then outcome counts and questions."""
    return [*metric.terms, "rows_scored", "rows_na", "rows_failed", "questions"]


def group_of(key: str) -> dict[str, str]:
    """The group that a name in a unit's sums stands for."""
    return dict(zip(GROUP, json.loads(unquote(key)), strict=True))
