"""python -m jobs.label from_run=retrieved run=labelled judge/entails=t5 judge.entails.model=FOLDER_OR_HUB_ID

Labels which documents of a question support which of its gold answers. Writes the tables samples (each document with
answers_found and rec_score) and oracle (the documents that hold most answers together), and the card cards/label.json.
"""

from trust.align.card import write_card
from trust.align.label_job import LabelConfig, run_label
from trust.cli import main
from trust.dry_run.label import show_label
from trust.outcome import check_failed, print_counts
from trust.runs import Run


def label(config: LabelConfig) -> None:
    """Labels samples; prints what became of the rows and pairs."""
    if config.dry_run:
        show_label(config)
        return
    manifest, run = run_label(config), Run.of(config)
    print_counts(manifest, run)
    pairs, skipped, asked, reused = (
        manifest.totals.get(key, 0) for key in ("pairs", "pairs_skipped_by_string", "asks_asked", "asks_reused")
    )
    print(f"  {pairs:.0f} pairs of document and answer: {skipped:.0f} decided by their words")
    print(f"  {asked:.0f} asks answered now, {reused:.0f} known before")
    write_card(manifest, run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("label", LabelConfig, label, __doc__ or "")
