"""python -m jobs.reproduce table=trust_score_2 rows=[*_icl] data.asqa=FILE engine=gpu run=paper

Does a published table again: rows whose data, model and judge are at hand are answered and evaluated, each in a run of its own;
ours is shown with 95 % intervals beside each printed number and its version. The others are shown as not run, with the reason.
What follows from counts alone (a model that always answers, or always refuses) needs nothing. Writes Parquet, CSV and Markdown
to `reproduce/` in the run's folder.
"""

from trust.cli import main
from trust.dry_run.reproduce import show_reproduce
from trust.errors import TooManyFailed
from trust.reproduce import ReproduceConfig, run_reproduce
from trust.reproduce.job import FOLDER
from trust.reproduce.lines import WITHHELD
from trust.runs import Run


def reproduce(config: ReproduceConfig) -> None:
    """Runs what can be run of a table; prints ours beside the printed numbers and where both lie."""
    if config.dry_run:
        show_reproduce(config)
        return
    table, words = run_reproduce(config)
    print(words)
    for ending in ("parquet", "csv", "md"):
        print(f"{ending + ':':<9}{Run.of(config).path(FOLDER, f'{config.table}.{ending}')}")
    if withheld := sorted({line["run"] for line in table.to_pylist() if line["status"] == WITHHELD}):
        raise TooManyFailed(f"too many rows failed in {', '.join(withheld)}: their numbers are withheld")


if __name__ == "__main__":
    main("reproduce", ReproduceConfig, reproduce, __doc__ or "")
