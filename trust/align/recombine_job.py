"""The job that recombines documents: from labelled samples the table `variants`."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from trust import cluster, tables
from trust.align.recombine import COUNTS, Recombined, Recombiner
from trust.align.rows import SampleSource, check_split, check_target, failed, source, tally
from trust.align.variants import VariantOptions
from trust.config import JobConfig, plain
from trust.errors import ConfigError, RowError
from trust.execute import execute
from trust.runs import Manifest, Plan, Run
from trust.storage import open_storage
from trust.units import Unit, UnitResult, read_rows, row_units

JOB = "recombine"
UNIT_ROWS = 64  # at most


@dataclass(kw_only=True)
class RecombineConfig(SampleSource, JobConfig):
    """`jobs.recombine`.

    Rows are counted once each, as questions: `ok` (at least one variant), `dropped` (`no_support`, `no_combination`) or
    `failed`. How many variants they have is in the totals (trust.align.recombine.COUNTS).

    Attributes:
        variants: what variants a question gets.
        splits: of rows that say of which split they are (`meta.split`), those that may be built from.
    """

    variants: VariantOptions = field(default_factory=VariantOptions)
    splits: list[str] = field(default_factory=lambda: ["train"])

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_source()
        if self.from_table == "variants":
            raise ConfigError(
                "from_table=variants: variants are made of the samples that jobs.label left, not of variants"
            )


def run_recombine(config: RecombineConfig) -> Manifest:
    """Makes variants of every labelled sample; the tables `variants` and `failed`.

    Raises:
        PreflightError: no samples, or no room.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    check(config)
    cluster.connect(config.cluster)
    return execute(plan_recombine(config), run, config)


def check(config: RecombineConfig) -> None:
    """Whether there are samples and the run may hold the table. Raises PreflightError."""
    check_target(config, JOB, "variants")
    source(config)


def plan_recombine(config: RecombineConfig) -> Plan:
    """What is to be done.

    Raises:
        PreflightError: there are no samples.
    """
    parts, inputs = source(config)
    options = {"variants": asdict(config.variants), "splits": sorted(config.splits), "compat": config.compat}
    return Plan(
        job=JOB,
        identity=inputs | options,
        units=row_units(parts, config.unit_rows, UNIT_ROWS),
        worker="trust.align.recombine_job:RecombineWorker",
        worker_config=options | {"storage": plain(config.storage)},
        config=plain(config),
        cpus=config.cluster.actor_cpus or 1,
    )


class RecombineWorker:
    """Makes variants of units of samples (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["storage"]["root"], config["storage"])
        self._recombiner = Recombiner(VariantOptions(**config["variants"]), config["compat"])
        self._splits: list[str] = config["splits"]

    async def close(self) -> None:
        """Nothing to end."""

    async def work(self, unit: Unit) -> UnitResult:
        rows = await asyncio.to_thread(read_rows, unit, self._storage)
        return await asyncio.to_thread(self._result, rows)

    def _result(self, rows: Iterable[dict[str, Any]]) -> UnitResult:
        counts = Counter(dict.fromkeys(COUNTS, 0))
        variants: list[dict[str, Any]] = []
        bad: list[dict[str, Any]] = []
        dropped: list[str] = []
        ok = 0
        for row in rows:
            try:
                made = self._recombine(row, counts)
            except RowError as error:
                bad.append(failed(JOB, row["sample_id"], error))
                continue
            variants += made.variants
            ok += made.dropped is None
            dropped += [made.dropped] if made.dropped else []
        return UnitResult(
            tables={"variants": tables.to_table("variants", variants), "failed": tables.to_table("failed", bad)},
            counts={"ok": ok, "dropped": len(dropped), "failed": len(bad)},
            totals={key: float(number) for key, number in counts.items()}
            | tally("failed", (row["reason"] for row in bad))
            | tally("dropped", dropped),
        )

    def _recombine(self, row: dict[str, Any], counts: Counter[str]) -> Recombined:
        check_split(row, self._splits)
        return self._recombiner.recombine({name: row[name] for name in tables.SCHEMAS["samples"].names}, counts)
