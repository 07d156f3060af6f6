"""A dry run of `jobs.judges`."""

from trust.agreement import RESULT, JudgesConfig, plan_judges
from trust.dry_run import show
from trust.dry_run.evaluate import plan_one
from trust.evaluate import check
from trust.runs import Manifest, Run


def show_judges(config: JudgesConfig) -> None:
    """Prints what `jobs.judges` would do: an evaluation by each judge, then the comparison of their verdicts."""
    run = Run.of(config)
    show.look(run)
    evaluations = {name: config.of(name) for name in config.judges}
    for evaluation in evaluations.values():
        check(evaluation, run)
    show.head("judges", run)
    manifests: dict[str, Manifest] = {}
    for name, evaluation in evaluations.items():
        made = Run.of(evaluation)
        print()
        show.line("evaluation", f"by judge {name}, in {made.root}")
        if done := plan_one(evaluation, made):
            manifests[name] = done
    print()
    show.line("comparison", "of the judges' verdicts")
    if len(manifests) == len(config.judges):
        plan = plan_judges(config, manifests)
        show.progress(plan, run, config)
        show.actors(config.cluster, len(plan.units), 0, all_cpus=False)
    else:
        waits = [name for name in config.judges if name not in manifests]
        show.line(
            "units", f"follow from the scores of the first judge, once all have judged ({', '.join(waits)} have not)"
        )
    show.tables(run, RESULT)
