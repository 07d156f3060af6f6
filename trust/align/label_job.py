"""The job that labels documents: samples of another run with `answers_found` and `rec_score`, and their oracle sets."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trust import cluster, cost, tables
from trust.align.asking import Asking
from trust.align.claims import ClaimsOptions
from trust.align.label import COUNTS, Labelled, Labeller
from trust.align.rows import SampleSource, check_target, failed, source, tally
from trust.ask import judges
from trust.ask.runner import RowAsk
from trust.config import JobConfig, plain
from trust.errors import ConfigError, RowError
from trust.evaluate import KEPT
from trust.execute import execute
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.units import Unit, UnitResult, read_rows, row_units
from trust.verdicts import VerdictStore, care_for

JOB = "label"
UNIT_ROWS = 16  # at most: each may ask about five hundred pairs

_ROWS_IN_FLIGHT = 8
_NO_LABELS = "task_none"


@dataclass(kw_only=True)
class LabelConfig(SampleSource, JobConfig):
    """`jobs.label`.

    Rows are counted once each: `ok` (labelled), `dropped` (`task_none`: such a row has no gold answers to label for) or
    `failed`. A finished run is done again with overwrite=true, which asks only what was not answered before.

    Attributes:
        judge: who says whether a document entails an answer (`entails`), and who writes claims (`complete`; may be null).
        claims: how claims are written where a row of task cm has long answers alone.
        oracle_docs: documents of an oracle set.
    """

    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)
    claims: ClaimsOptions = field(default_factory=ClaimsOptions)
    oracle_docs: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_source()
        if self.oracle_docs < 1:
            raise ConfigError(f"oracle_docs={self.oracle_docs}: must be at least 1")
        self.judge = self.judge.only(["entails", *(ask for ask in self.judge.chosen() if ask == "complete")])
        if "complete" in self.judge.chosen():
            self.judge.complete.logprobs = False  # claims need none, and not every endpoint tells them

    @property
    def claims_by(self) -> str | None:
        """Name of the model that writes claims."""
        chosen = self.judge.chosen().get("complete")
        return None if chosen is None else str(chosen.model.name)


def run_label(config: LabelConfig) -> Manifest:
    """Labels the documents of every sample; the tables `samples`, `oracle` and `failed`.

    Raises:
        PreflightError: no samples, no model, no room; nothing has been loaded then.
        JobStopped: the judge's `cost_limit` was reached before every row was labelled.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    limit = config.judge.cost_limit()
    check(config, run)
    cluster.connect(config.cluster)
    chosen = config.judge.chosen()
    plan = plan_label(config, run, *cluster.actor_resources(chosen.values(), config.cluster))
    plan.worker_config["budget"] = cost.share(limit, plan, run, config)
    manifest = execute(plan, run, config)
    for ask in (ask for ask in KEPT if ask in chosen):
        care_for(VerdictStore(run.storage, absolute(config.storage.root), plan.identity["judge"][ask]), manifest)
    cost.check(limit, manifest, "overwrite=true")
    return manifest


def check(config: LabelConfig, run: Run) -> None:
    """Whether samples and models are there and the run may hold the tables; nothing is loaded. Raises PreflightError."""
    for table in ("samples", "oracle"):
        check_target(config, JOB, table)
    source(config)
    for judge in config.judge.chosen().values():
        judge.preflight(run.storage)


def plan_label(config: LabelConfig, run: Run, cpus: float, gpus: float) -> Plan:
    """What is to be done.

    Args:
        cpus, gpus: what one actor takes.

    Raises:
        PreflightError: there are no samples.
    """
    parts, inputs = source(config)
    options = {"claims": asdict(config.claims), "oracle_docs": config.oracle_docs, "compat": config.compat}
    return Plan(
        job=JOB,
        identity={**inputs, **options, "judge": judges.identity(config.judge, run.storage)},
        units=row_units(parts, config.unit_rows, UNIT_ROWS),
        worker="trust.align.label_job:LabelWorker",
        worker_config={
            **options,
            "judge": {ask: judge.for_actor(int(cpus)) for ask, judge in config.judge.chosen().items()},
            "claims_by": config.claims_by,
            "storage": plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=plain(config),
        cpus=cpus,
        gpus=gpus,
        rows_in_flight=_ROWS_IN_FLIGHT,
    )


def labeller(config: Mapping[str, Any]) -> Labeller:
    """What labels rows, by a plan's worker config."""
    claims = ClaimsOptions(**config["claims"])
    return Labeller(config["oracle_docs"], claims, config["compat"], config["claims_by"])


class LabelWorker:
    """Labels units of samples (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._labeller = labeller(config)
        self._asking = Asking(config["judge"], self._storage, config["root"], config.get("budget"))

    async def close(self) -> None:
        self._asking.close()

    async def work(self, unit: Unit) -> UnitResult:
        rows = await asyncio.to_thread(read_rows, unit, self._storage)
        wanted = [row for row in rows if row["task"] != "none"]
        session = await self._asking.begin([row["sample_id"] for row in wanted])
        asks = {row["sample_id"]: self._asking.ask_for(row["sample_id"], session) for row in wanted}
        counts = Counter(dict.fromkeys(COUNTS, 0))
        made = await asyncio.gather(*(self._label(row, asks[row["sample_id"]], counts) for row in wanted))
        totals = {key: float(number) for key, number in counts.items()} | await self._asking.end(asks, session)
        return _result(made, len(rows) - len(wanted), totals)

    async def _label(self, row: dict[str, Any], ask: RowAsk, counts: Counter[str]) -> Labelled | dict[str, Any]:
        """The sample with its labels, or a row of the table failed."""
        columns = {name: row[name] for name in tables.SCHEMAS["samples"].names}
        try:
            return await self._labeller.label(columns, ask, counts)
        except RowError as error:
            return failed(JOB, row["sample_id"], error)


def _result(made: list[Labelled | dict[str, Any]], dropped: int, totals: dict[str, float]) -> UnitResult:
    good = [one for one in made if isinstance(one, Labelled)]
    bad = [one for one in made if not isinstance(one, Labelled)]
    return UnitResult(
        tables={
            "samples": tables.to_table("samples", [one.sample for one in good]),
            "oracle": tables.to_table("oracle", [one.oracle for one in good]),
            "failed": tables.to_table("failed", bad),
        },
        counts={"ok": len(good), "dropped": dropped, "failed": len(bad)},
        totals=totals | tally("failed", (row["reason"] for row in bad)) | tally("dropped", [_NO_LABELS] * dropped),
    )
