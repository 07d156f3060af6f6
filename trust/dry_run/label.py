"""A dry run of `jobs.label`."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from trust.align.label import Labeller
from trust.align.label_job import LabelConfig, check, labeller, plan_label
from trust.align.rows import source
from trust.ask import Ask
from trust.dry_run import show
from trust.dry_run.asks import count
from trust.dry_run.evaluate import show_judge
from trust.dry_run.sample import sample
from trust.metrics import RowScore
from trust.runs import Run


def show_label(config: LabelConfig) -> None:
    """Prints what `jobs.label` would do, and how often it would ask."""
    run = Run.of(config)
    show.look(run)
    check(config, run)
    plan = plan_label(config, run, cpus=1, gpus=0)
    parts, _ = source(config)
    show.head(plan.job, run)
    rows = f"{sum(part['rows'] for part in parts):,} rows"
    show.line(config.from_table, f"of run {config.from_run or config.run}: {rows}")
    left = show.progress(plan, run, config)
    judges = config.judge.chosen()
    shares = [judge.gpus for judge in judges.values()]
    show.actors(
        config.cluster,
        len(plan.units),
        sum(share for share in shares if share is not None),
        all_cpus=any(judge.all_cpus for judge in judges.values()),
        if_any=shares.count(None),
    )
    for ask, judge in judges.items():
        show_judge(ask, judge, run)
    chosen = sample(parts, run.storage)
    wanted = [row | {"status": "ok"} for row in chosen.rows if row["task"] != "none"]
    asked = [one["entails"] for one in count(wanted, [_AsMetric(labeller(plan.worker_config))])]
    least, most = (sum(getattr(one, key) for one in asked) / max(1, len(chosen.rows)) for key in ("least", "most"))
    show.line(
        "asks",
        f"about {least * left.rows:,.0f} to {most * left.rows:,.0f} different pairs for {left.rows:,} rows, an estimate over "
        f"{chosen.how}; about claims that have yet to be written it says nothing",
    )
    show.tables(run, "samples", "oracle", "failed", "cards/label.json", "verdicts")


class _AsMetric:
    """Labelling in the form in which asks are counted (trust.metrics.Metric)."""

    name = "label"
    asks: tuple[str, ...] = ("entails",)
    terms: tuple[str, ...] = ()

    def __init__(self, made: Labeller) -> None:
        self._labeller = made

    def preflight(self) -> None:
        """Needs nothing but the judge."""

    async def row(self, row: Mapping[str, Any], ask: Ask) -> RowScore:
        await self._labeller.label(row, ask, Counter())
        return RowScore()

    def final(self, sums: Mapping[str, Any], task: str) -> dict[str, Any]:
        return {}
