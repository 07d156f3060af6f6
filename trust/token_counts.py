"""How common tokens are over all responses of a run, for metrics that weigh them (BERTScore's idf): a job in front of evaluate,
over the same units, whose sums evaluate's actors read.
"""

import asyncio
from typing import Any

import numpy as np

from trust import metrics
from trust.ask import judges
from trust.ask.token import TokenConfig
from trust.config import AskingJobConfig
from trust.errors import ConfigError
from trust.execute import execute
from trust.runs import Plan, Run
from trust.storage import open_storage
from trust.units import Unit, UnitResult, read_rows

JOB = "counts"


def run_counts(plan: Plan, run: Run, config: AskingJobConfig) -> str | None:
    """Counts tokens, where a metric wants it; the fingerprint of the counts.

    Args:
        plan: of the evaluation.

    Raises:
        ConfigError: the model for `embed` gives no vectors of tokens.
    """
    made = metrics.to_count(metrics.build(plan.worker_config["metrics"], plan.worker_config["compat"]))
    if not made:
        return None
    if plan.worker_config["judge"]["embed"]["backend"] != TokenConfig.backend:
        raise ConfigError(f"metrics.{made[0].name} weighs tokens, which judge/embed=token tells apart: choose it")
    options = {metric.name: plan.identity["metrics"][metric.name] for metric in made}
    passed = ("compat", "storage", "root")
    counting = Plan(
        job=JOB,
        identity={
            "inputs": plan.identity["inputs"],
            "judge": plan.identity["judge"]["embed"],
            "metrics": options,
            "compat": plan.identity["compat"],
        },
        units=plan.units,
        worker="trust.token_counts:CountsWorker",
        worker_config={key: plan.worker_config[key] for key in passed}
        | {"metrics": options, "judge": {"embed": plan.worker_config["judge"]["embed"]}},
        config=plan.config,
        cpus=plan.cpus,
        gpus=plan.gpus,
    )
    return execute(counting, run, config).fingerprint


def take(made: list[metrics.Metric], run: Run) -> None:
    """Gives each metric that wants them the counts of the run."""
    wanted = metrics.to_count(made)
    found = run.sums(JOB) if wanted else {}
    for metric in wanted:
        texts, *holding = found[metric.name].astype(np.int64)
        metric.take_counts(int(texts), np.array(holding))


class CountsWorker:
    """Counts the tokens of units of the responses table (trust.units.Worker). The sums of a metric are how many texts there are,
    then how many of them hold each token, shape (1 + vocabulary,)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._metrics = metrics.to_count(metrics.build(config["metrics"], config["compat"]))
        self._backend = judges.load(config["judge"], self._storage)["embed"]

    async def close(self) -> None:
        self._backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        found = await asyncio.to_thread(read_rows, unit, self._storage)
        rows = [row for row in found if row["status"] == "ok"]
        sums = {}
        for metric in self._metrics:
            holding = np.zeros(1 + self._backend.vocabulary, dtype=np.int64)
            for row in rows:
                for ids in self._backend.token_ids(metric.counted(row)):
                    holding[0] += 1
                    holding[1 + np.unique(ids)] += 1
            sums[metric.name] = holding
        return UnitResult({}, {"ok": unit.rows}, sums=sums)
