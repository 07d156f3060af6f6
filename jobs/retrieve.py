"""python -m jobs.retrieve from_run=demo run=found retriever=bm25 corpus.path=FILE_OR_URI

Finds the documents of a corpus that fit each question best, by words (bm25), by vectors of texts (dense) or of tokens (late), or
by several of them together (hybrid, rrf). Writes the table samples with `docs`; corpus and index are kept for other runs.
"""

from trust.align.card import write_card
from trust.cli import main, say
from trust.dry_run.retrieve import show_retrieve
from trust.outcome import check_failed, print_counts
from trust.retrieve.config import RetrieveConfig
from trust.retrieve.job import run_retrieve, with_steps
from trust.retrieve.steps import WORK_S
from trust.runs import Run


def retrieve(config: RetrieveConfig) -> None:
    """Retrieves; prints what became of passages and questions."""
    if config.dry_run:
        show_retrieve(config)
        return
    manifest, steps = run_retrieve(config)
    run = Run.of(config)
    for name, step in steps.items():
        say(f"  {name}: {step.rows} rows, {step.totals.get(WORK_S, 0.0):.1f} s of work")
    print_counts(manifest, run)
    none, fewer = (manifest.totals.get(f"questions_{key}", 0.0) for key in ("without_docs", "with_fewer_docs"))
    say(f"  {none:.0f} questions got no document, {fewer:.0f} fewer than {config.k}")
    write_card(with_steps(manifest, steps), run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("retrieve", RetrieveConfig, retrieve, __doc__ or "")
