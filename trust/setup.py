"""What metrics want done once a run, before any row is scored (G-Eval's written steps): a small job of one unit in front of
evaluate, with a manifest of its own, so that a run that is taken up again goes on with what was written first.
"""

import json
from typing import Any

from trust import metrics, tables
from trust.ask import judges
from trust.ask.runner import Ledger, Runner
from trust.config import AskingJobConfig
from trust.errors import JobStopped, RowError
from trust.execute import execute
from trust.runs import Plan, Run
from trust.storage import open_storage
from trust.units import Unit, UnitResult

_PASSED_ON = ("metrics", "compat", "storage", "root", "budget")


def run_setup(plan: Plan, run: Run, config: AskingJobConfig) -> dict[str, Any]:
    """Metric -> what its `setup` gave (plain JSON types), done now or by an earlier try of the run.

    Args:
        plan: of the evaluation.

    Raises:
        JobStopped: a metric could not be set up.
    """
    made = metrics.to_set_up(metrics.build(plan.worker_config["metrics"], plan.worker_config["compat"]))
    if not made:
        return {}
    asks = {ask for metric in made for ask in metric.asks}
    judge = {ask: values for ask, values in plan.worker_config["judge"].items() if ask in asks}
    options = {metric.name: plan.identity["metrics"][metric.name] for metric in made}
    manifest = execute(
        Plan(
            job="setup",
            identity={
                "judge": {ask: plan.identity["judge"][ask] for ask in judge},
                "metrics": options,
                "compat": plan.identity["compat"],
            },
            units=[Unit("setup", {}, 1)],
            worker="trust.setup:SetupWorker",
            worker_config={key: plan.worker_config.get(key) for key in _PASSED_ON} | {"judge": judge},
            config=plan.config,
            cpus=plan.cpus,
            gpus=plan.gpus,
        ),
        run,
        config,
    )
    rows = [
        row for part in manifest.tables["setup"] for row in run.storage.read_table(run.path(part["path"])).to_pylist()
    ]
    return {row["metric"]: json.loads(row["value"]) for row in rows}


class SetupWorker:
    """Sets the metrics up (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        storage = open_storage(config["root"], config["storage"])
        self._metrics = metrics.build(config["metrics"], config["compat"])
        self._backends = judges.load(config["judge"], storage, config["budget"])
        self._runner = Runner(self._backends)

    async def close(self) -> None:
        for backend in self._backends.values():
            backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        ledger, rows = Ledger(), []
        for metric in metrics.to_set_up(self._metrics):
            try:
                value = await metric.setup(self._runner.ask_for("setup", ledger))
            except RowError as error:
                raise JobStopped(f"metrics.{metric.name} cannot be set up: {error.reason}: {error.detail}") from error
            rows.append({"metric": metric.name, "value": json.dumps(value, ensure_ascii=False)})
        return UnitResult({"setup": tables.to_table("setup", rows)}, {"ok": 1}, dict(ledger.totals))
