"""python -m jobs.curate run=build judge/complete=openai judge.complete.engine.base_url=URL judge.complete.model.path=NAME

Chooses seed questions: repeats and questions of evaluation sets removed, the others clustered, clusters rated by a model, seeds
drawn. Writes the tables seeds, clusters and failed, clusters.svg and the card cards/curate.json.
"""

from trust.align.card import write_card
from trust.align.curate_job import CurateConfig, clusters, run_curate
from trust.cli import main
from trust.dry_run.curate import show_curate
from trust.outcome import check_failed, print_counts
from trust.runs import Run


def curate(config: CurateConfig) -> None:
    """Chooses seeds; prints what became of the questions."""
    if config.dry_run:
        show_curate(config)
        return
    manifest, run = run_curate(config), Run.of(config)
    print_counts(manifest, run)
    found = clusters(run) if config.clusters else []
    if config.clusters:
        bad = sum(cluster["status"] == "failed" for cluster in found)
        print(f"  clusters: {len(found)}, of {bad} the rating failed")
    write_card(manifest, run, clusters=found)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("curate", CurateConfig, curate, __doc__ or "")
