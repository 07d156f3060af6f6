"""A dry run of `jobs.recombine`."""

from collections import Counter

from trust.align.recombine import Recombiner
from trust.align.recombine_job import RecombineConfig, check, plan_recombine
from trust.align.rows import check_split, source
from trust.dry_run import show
from trust.dry_run.sample import sample
from trust.errors import RowError
from trust.runs import Run


def show_recombine(config: RecombineConfig) -> None:
    """Prints what `jobs.recombine` would do, and how many variants it would make."""
    run = Run.of(config)
    show.look(run)
    check(config)
    plan = plan_recombine(config)
    parts, _ = source(config)
    show.head(plan.job, run)
    rows = sum(part["rows"] for part in parts)
    show.line(config.from_table, f"of run {config.from_run or config.run}: {rows:,} rows")
    show.progress(plan, run, config)
    show.actors(config.cluster, len(plan.units), 0, all_cpus=False)
    chosen = sample(parts, run.storage)
    counts: Counter[str] = Counter()
    recombiner = Recombiner(config.variants, config.compat)
    for row in chosen.rows:
        try:
            check_split(row, config.splits)
            recombiner.recombine(row, counts)
        except RowError:  # a failed row of the run too
            continue
    share = rows / max(1, len(chosen.rows))
    answerable, unanswerable = (counts[f"variants_{kind}"] * share for kind in ("answerable", "unanswerable"))
    show.line(
        "variants",
        f"about {answerable:,.0f} answerable and {unanswerable:,.0f} unanswerable ones, an estimate over {chosen.how}",
    )
    show.tables(run, "variants", "failed", "cards/recombine.json")
