"""python -m jobs.prepare data=trust data.path=FILE task=em run=demo

Reads a data set in a published form, validates every row, and writes the tables samples and failed. Bad rows are named
with file, line, field and reason; the job exits with 3 where more than `max_failed` of the rows are bad.
"""

from trust.cli import main
from trust.dry_run.prepare import show_prepare
from trust.outcome import check_failed, print_counts
from trust.prepare.job import PrepareConfig, run_prepare
from trust.runs import Run


def prepare(config: PrepareConfig) -> None:
    """Reads and validates a data set; prints what became of its rows."""
    if config.dry_run:
        show_prepare(config)
        return
    manifest, run = run_prepare(config), Run.of(config)
    print_counts(manifest, run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("prepare", PrepareConfig, prepare, __doc__ or "")
