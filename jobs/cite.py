"""python -m jobs.cite from_run=closed run=postcite cite=embedding

Cites the responses of a run afterwards: each sentence gets the best of the row's documents, by sentence embeddings
(cite=embedding) or by a judge of entailment (cite=entailment). Writes the tables responses and citations.
"""

from trust.cite import CiteConfig, run_cite
from trust.cli import main
from trust.dry_run.cite import show_cite
from trust.outcome import check_failed, print_counts
from trust.runs import Run


def cite(config: CiteConfig) -> None:
    """Cites responses; prints what became of the rows."""
    if config.dry_run:
        show_cite(config)
        return
    manifest, run = run_cite(config), Run.of(config)
    print_counts(manifest, run)
    cited, sentences = (manifest.totals.get(key, 0) for key in ("sentences_cited", "sentences"))
    print(f"  {cited:.0f} of {sentences:.0f} sentences got a citation")
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("cite", CiteConfig, cite, __doc__ or "")
