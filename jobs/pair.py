"""python -m jobs.pair sft_run=oracle positives_run=variants errors_run=sft model=hf model.path=FOLDER run=pairs

Makes training rows: the table sft (prompt, completion) from the positives of sft_run, and the table pairs (prompt, chosen,
rejected) from the positives of positives_run and the most severe errors of errors_run. Also writes an audit of lengths
(audit/pair.json) and a folder for Hugging Face's load_dataset (hub/).
"""

from trust.align.audit import write_audit
from trust.align.card import write_card
from trust.align.pair_export import export_hub
from trust.align.pair_job import PairConfig, run_pair
from trust.cli import main, say
from trust.dry_run.pair import show_pair
from trust.outcome import check_failed, print_counts
from trust.runs import Run


def pair(config: PairConfig) -> None:
    """Makes training rows; prints what became of the positives, how long the rows are, and where everything lies."""
    if config.dry_run:
        show_pair(config)
        return
    manifest, run = run_pair(config), Run.of(config)
    print_counts(manifest, run)
    for name, found in (manifest.config.get("selected") or {}).items():
        say(f"  {name}: {found['kept']} most severe of {found['with_error']} responses with an error")
    lengths = write_audit(manifest, run)
    for what, found in lengths.items():
        say(f"  {what} tokens: " + ", ".join(f"{name} {value:g}" for name, value in found.items()))
    write_card(manifest, run)
    say(f"  load_dataset: {export_hub(manifest, run, config, lengths)}")
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("pair", PairConfig, pair, __doc__ or "")
