"""A dry run of `jobs.cite`."""

from trust.cite import CiteConfig, check, plan_cite, responses
from trust.dry_run import show
from trust.dry_run.evaluate import show_judge
from trust.runs import Run


def show_cite(config: CiteConfig) -> None:
    """Prints what `jobs.cite` would do."""
    run = Run.of(config)
    show.look(run)
    check(config, run)
    plan = plan_cite(config, run, cpus=1, gpus=0)
    show.head("cite", run)
    show.line("responses", f"of run {config.from_run}: {sum(part['rows'] for part in responses(config)[0]):,} rows")
    show.progress(plan, run, config, config.retry_failed)
    share = config.backend.gpus
    show.actors(
        config.cluster, len(plan.units), share or 0, all_cpus=config.backend.all_cpus, if_any=int(share is None)
    )
    show_judge(config.ask, config.backend, run)
    show.tables(run, "responses", "citations", *(["verdicts"] if config.ask == "entails" else []))
