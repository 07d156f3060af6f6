"""What every job's command line shares: config in, one call, clear errors and exit codes out."""

import logging
import os
import sys
from collections.abc import Callable
from typing import TypeVar

from trust.config import load
from trust.errors import TrustError

T = TypeVar("T")


def main(job: str, schema: type[T], run: Callable[[T], None], about: str) -> None:
    """Runs a job from the command line.

    Exit codes: 0 fine, 1 stopped before its end (start it again to go on), 2 config or preflight, 3 too many rows failed,
    4 (jobs.compare) worse than allowed.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("trust").setLevel(logging.INFO)
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(_help(job, about))
        sys.exit(0)
    try:
        run(load(job, schema, arguments))
    except TrustError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except FileNotFoundError as error:
        print(
            f"error: {str(error)[:500]}: a file that was written is gone; start the job that wrote it again, with "
            "overwrite=true",
            file=sys.stderr,
        )
        sys.exit(1)
    except KeyboardInterrupt:
        print("stopped; what is finished is kept: start it again with the same words to go on", file=sys.stderr)
        sys.exit(130)


def say(words: str) -> None:
    """Prints `words`. A reader that has seen enough (`| head`) changes nothing about how the job ends."""
    try:
        print(words, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help(job: str, about: str) -> str:
    """What the job does, its groups with their choices, and its keys with their defaults."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from trust.config import CONF, job_groups

    groups = []
    for group in job_groups(job):
        options = sorted(file.stem for file in (CONF / group).glob("*.yaml"))
        groups.append(f"  {group}={'|'.join(options)}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        keys = OmegaConf.to_yaml(compose(config_name=job))
    lines = [about.strip(), "", "Groups:", *groups, "", "Keys and defaults (set with key=value):"]
    return "\n".join([*lines, *(f"  {line}" for line in keys.splitlines())])
