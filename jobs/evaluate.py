"""python -m jobs.evaluate judge/entails=t5 judge.entails.model=DIR run=demo

Scores the responses of a run, or with data.path=FILE a file that already holds outputs. Writes the tables scores and
verdicts, `summary.json` (one model on one data set) or `summary.parquet` (several), the same numbers by slice
(`slices.csv`, `slices.parquet`), NoMIRACL's rates by language (`rates.csv`, `rates.parquet`), and `report.html`.
"""

from trust import results, summary
from trust.cli import main
from trust.dry_run.evaluate import show_evaluate
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.outcome import check_failed
from trust.runs import Run


def evaluate(config: EvaluateConfig) -> None:
    """Scores responses; writes the summary and the report, prints the table and where everything lies."""
    if config.dry_run:
        show_evaluate(config)
        return
    manifest, run = run_evaluate(config), Run.of(config)
    made = results.write(run, manifest, config)
    summary.show(made.summaries)
    if config.report:
        from trust.report import write_report

        print(f"report:   {write_report(run)}")
    for name, path in made.paths.items():
        print(f"{name + ':':<10}{path}")
    for table in sorted(manifest.tables):
        print(f"{table + ':':<10}{run.path(table)}")
    if config.data.path and (prepared := run.manifest("prepare")):
        check_failed(prepared, run, config)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("evaluate", EvaluateConfig, evaluate, __doc__ or "")
