"""python -m jobs.positives run=R2 from_table=variants judge/complete=openai judge/entails=t5

Makes the positive of every labelled sample: a cited answer that a model writes (em, cm) or that is assembled (em5), or the
refusal where no document holds an answer. Writes the table positives, and the card of what became of the rows.
"""

from trust.align.card import write_card
from trust.align.positives_job import PositivesConfig, run_positives
from trust.cli import main
from trust.dry_run.positives import show_positives
from trust.outcome import check_failed, print_counts
from trust.runs import Run


def positives(config: PositivesConfig) -> None:
    """Makes positives; prints what became of the rows."""
    if config.dry_run:
        show_positives(config)
        return
    manifest, run = run_positives(config), Run.of(config)
    print_counts(manifest, run)
    for key, number in sorted(manifest.totals.items()):
        if key.startswith(("positives_", "refused_texts:", "texts_written", "sentences_deleted")):
            print(f"  {key.replace('_', ' ')}: {number:.0f}")
    write_card(manifest, run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("positives", PositivesConfig, positives, __doc__ or "")
