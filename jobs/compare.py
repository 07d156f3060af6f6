"""python -m jobs.compare base=RUN new=RUN fail_below=-1

Compares two evaluated runs over the same questions: differences (new minus base) of every published number with paired 95 %
intervals, in all and by slice. Prints short Markdown for a pull request and writes it, and a table of all differences, to
`compare/` in the folder of the new run. Needs no cluster.

Exit codes: 0 fine, 2 the runs cannot be compared (or the config is wrong), 4 a number is worse than `fail_below` allows.
"""

from trust.cli import main, say
from trust.compare import CompareConfig, run_compare
from trust.compare.gate import describe
from trust.dry_run.compare import show_compare
from trust.errors import Regression


def compare(config: CompareConfig) -> None:
    """Compares two runs; prints the Markdown."""
    if config.dry_run:
        show_compare(config)
        return
    made, words = run_compare(config)
    say(words)
    if made.lost:
        raise Regression(f"new={config.new} is worse than allowed: {describe(made.lost)}")


if __name__ == "__main__":
    main("compare", CompareConfig, compare, __doc__ or "")
