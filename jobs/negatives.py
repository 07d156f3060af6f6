"""python -m jobs.negatives run=sft judge/entails=t5 judge.entails.model=DIR

Labels the responses of a run (those of the model after SFT, to `variants`) with the five types of hallucination and their
severity. Writes the table errors, and the same as JSON lines (export/errors-*.jsonl); jobs.pair takes the most severe ones.
"""

from trust.align.card import write_card
from trust.align.negatives import TYPES
from trust.align.negatives_job import NegativesConfig, run_negatives
from trust.cli import main, say
from trust.dry_run.negatives import show_negatives
from trust.outcome import check_failed, print_counts
from trust.runs import Run


def negatives(config: NegativesConfig) -> None:
    """Labels responses; prints what became of them, and how many have an error of each type."""
    if config.dry_run:
        show_negatives(config)
        return
    manifest, run = run_negatives(config), Run.of(config)
    print_counts(manifest, run)
    totals = manifest.totals
    say(
        f"  {totals.get('with_error', 0):.0f} of {manifest.counts.get('ok', 0)} have an error; by type, and as the worst:"
    )
    for name in TYPES:
        say(f"    {name}: {totals.get(f'type:{name}', 0):.0f}, {totals.get(f'primary:{name}', 0):.0f}")
    write_card(manifest, run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("negatives", NegativesConfig, negatives, __doc__ or "")
