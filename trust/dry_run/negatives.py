"""A dry run of `jobs.negatives`."""

from trust.align import rows
from trust.align.negatives_job import NegativesConfig, check, plan_negatives, responses
from trust.dry_run import show
from trust.dry_run.evaluate import show_judge
from trust.runs import Run


def show_negatives(config: NegativesConfig) -> None:
    """Prints what `jobs.negatives` would do."""
    run = Run.of(config)
    show.look(run)
    check(config, run)
    rows.check_target(config, "negatives", "errors")
    plan = plan_negatives(config, run, cpus=1, gpus=0)
    show.head("negatives", run)
    source = Run.of(config, config.from_run)
    show.line("responses", f"of run {source.name}: {sum(part['rows'] for part in responses(config)[0]):,} rows")
    show.progress(plan, run, config, config.retry_failed)
    judge = config.judge.entails
    show.actors(
        config.cluster, len(plan.units), judge.gpus or 0, all_cpus=judge.all_cpus, if_any=int(judge.gpus is None)
    )
    show_judge("entails", judge, run)
    exported = ["export/errors-*.jsonl"] if config.export else []
    show.tables(run, "errors", "verdicts", "cards/negatives.json", *exported)
