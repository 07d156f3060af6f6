"""python -m jobs.respond model=smollm2 prompt=auto run=demo

Generates cited answers to the prepared samples of a run, with vLLM or from an endpoint (engine=openai), and writes the table
responses.
"""

from trust.cli import main
from trust.dry_run.respond import show_respond
from trust.outcome import check_failed, print_counts
from trust.respond import RespondConfig, run_respond
from trust.runs import Run


def respond(config: RespondConfig) -> None:
    """Generates answers; prints what became of the rows."""
    if config.dry_run:
        show_respond(config)
        return
    manifest, run = run_respond(config), Run.of(config)
    print_counts(manifest, run)
    check_failed(manifest, run, config)


if __name__ == "__main__":
    main("respond", RespondConfig, respond, __doc__ or "")
