"""python -m jobs.recombine run=labelled

Makes variants of questions whose documents are labelled: the same question with other documents, so that every pattern of
supported answers occurs, and none at all. Writes the table variants and the card cards/recombine.json.
"""

from trust.align.card import write_card
from trust.align.recombine_job import RecombineConfig, run_recombine
from trust.cli import main
from trust.dry_run.recombine import show_recombine
from trust.outcome import check_failed, print_counts
from trust.runs import Run


def recombine(config: RecombineConfig) -> None:
    """Makes variants; prints what became of the questions."""
    if config.dry_run:
        show_recombine(config)
        return
    manifest, run = run_recombine(config), Run.of(config)
    print_counts(manifest, run)
    answerable, unanswerable, patterns, covered = (
        manifest.totals.get(key, 0)
        for key in ("variants_answerable", "variants_unanswerable", "patterns", "patterns_covered")
    )
    print(f"  variants: {answerable:.0f} answerable, {unanswerable:.0f} unanswerable")
    print(f"  patterns: {covered:.0f} of {patterns:.0f} occur")
    write_card(manifest, run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("recombine", RecombineConfig, recombine, __doc__ or "")
