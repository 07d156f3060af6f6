"""A dry run of `jobs.curate`."""

from trust.align.curate_job import CurateConfig, check
from trust.align.curate_plans import plan_embed
from trust.align.rows import source
from trust.dry_run import show
from trust.dry_run.evaluate import show_judge
from trust.runs import Run


def show_curate(config: CurateConfig) -> None:
    """Prints what `jobs.curate` would do. Later jobs than the first can only be told of once that is done."""
    run = Run.of(config)
    show.look(run)
    check(config, run)
    plan = plan_embed(config, run, cpus=1, gpus=0)
    rows = sum(part["rows"] for part in source(config)[0])
    show.head("curate", run)
    show.line(config.from_table, f"of run {config.from_run or config.run}: {rows:,} rows")
    if config.exclude:
        others = sum(unit.rows for unit in plan.units) - rows
        show.line("exclude", f"{', '.join(config.exclude)}: {others:,} questions")
    show.line("first", "embed_questions:")
    done = run.manifest(plan.job)
    if done is None or done.fingerprint != plan.fingerprint or not config.overwrite:
        show.progress(plan, run, config)
    judges = config.judge.chosen()
    shares = [judge.gpus for judge in judges.values()]
    show.actors(
        config.cluster,
        len(plan.units),
        max((share for share in shares if share is not None), default=0),
        all_cpus=any(judge.all_cpus for judge in judges.values()),
        if_any=int(None in shares),
    )
    steps = ["cluster_questions", *(["rate_clusters"] if config.clusters else []), "select_seeds", "curate"]
    show.line("then", f"{', '.join(steps)}; one worker holds the vectors of all questions: rows x width x 4 bytes")
    for ask, judge in judges.items():
        show_judge(ask, judge, run)
    if config.clusters:
        most = config.rating.tries
        show.line("asks", f"one to {most} a cluster; how many clusters there are, the second job finds out")
    made = ["clusters", "clusters.svg"] if config.clusters else []
    show.tables(run, "seeds", "failed", *made, "cards/curate.json")
