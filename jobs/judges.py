"""python -m jobs.judges from_run=demo run=demo_judges judges.words.backend=lexical judges.true.backend=t5

Has several judges judge the responses of a run: how far they agree, and what each does to the scores.
"""

from trust.agreement import RESULT, JudgesConfig, run_judges, show
from trust.cli import main
from trust.dry_run.judges import show_judges
from trust.runs import Run


def judges(config: JudgesConfig) -> None:
    """Compares judges; prints their agreement and the scores under each."""
    if config.dry_run:
        show_judges(config)
        return
    show(run_judges(config))
    print(f"judges:   {Run.of(config).path(RESULT)}")


if __name__ == "__main__":
    main("judges", JudgesConfig, judges, __doc__ or "")
