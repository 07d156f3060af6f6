"""python -m jobs.agree data=summeval data.path=FILE runs=[NAME] run=agreement

How far metrics agree with people: correlations over outputs, within documents and over systems, accuracy on pairs, AUROC,
agreement between annotators, each with a 95 % interval; and, with people's labels of some rows (`labels=FILE`), the means of
evaluated runs corrected for the judge's errors. Writes the tables `agreement` and `corrected` and a plot. Needs no cluster.
"""

from trust.agree import AgreeConfig, run_agree
from trust.agree.show import show
from trust.cli import main
from trust.dry_run.agree import show_agree


def agree(config: AgreeConfig) -> None:
    """Compares, and prints what was found."""
    if config.dry_run:
        show_agree(config)
        return
    show(run_agree(config))


if __name__ == "__main__":
    main("agree", AgreeConfig, agree, __doc__ or "")
