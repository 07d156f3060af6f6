"""python -m jobs.retrieve from_run=demo run=found retriever=bm25 corpus.path=FILE_OR_URI

Finds the documents of a corpus that fit each question best, by words (bm25), by vectors of texts (dense) or of tokens (late), or
by several of them together (hybrid, rrf). Writes the table samples with `docs`; corpus and index are kept for other runs.
"""

from trust.align.card import write_card
from trust.cli import main, say
from trust.outcome import check_failed, print_counts
from trust.retrieve.config import RetrieveConfig
from trust.retrieve.job import run_retrieve
from trust.runs import Run


def retrieve(config: RetrieveConfig) -> None:
    """Retrieves; prints what became of passages and questions."""
    manifest, made = run_retrieve(config)
    run = Run.of(config)
    for name, part in made.items():
        seconds = part.totals.get("unit_seconds", 0.0)
        say(f"{name}: {part.rows} rows in {seconds:.1f} s of work")
    print_counts(manifest, run)
    write_card(manifest, run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("retrieve", RetrieveConfig, retrieve, __doc__ or "")
