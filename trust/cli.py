"""What every job's command line shares: config in, one call, clear errors and exit codes out."""

import logging
import sys
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from trust.config import JobConfig, load
from trust.errors import TooManyFailed, TrustError
from trust.runs import Manifest, Run

T = TypeVar("T", bound=JobConfig)


def main(job: str, schema: type[T], run: Callable[[T], None], about: str) -> None:
    """Runs a job from the command line.

    Exit codes: 0 fine, 1 stopped before its end (start it again to go on), 2 config or preflight, 3 too many rows failed.
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
    except KeyboardInterrupt:
        print("stopped; what is finished is kept: start it again with the same words to go on", file=sys.stderr)
        sys.exit(130)


def _help(job: str, about: str) -> str:
    """What the job does, its groups with their choices, and its keys with their defaults."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from trust.config import CONF

    groups = []
    for folder in sorted(path for path in CONF.rglob("*") if path.is_dir()):
        options = sorted(file.stem for file in folder.glob("*.yaml"))
        if options:
            groups.append(f"  {folder.relative_to(CONF).as_posix()}={'|'.join(options)}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        keys = OmegaConf.to_yaml(compose(config_name=job))
    lines = [about.strip(), "", "Groups:", *groups, "", "Keys and defaults (set with key=value):"]
    return "\n".join([*lines, *(f"  {line}" for line in keys.splitlines())])


def print_counts(manifest: Manifest, run: Run) -> None:
    """What became of the rows, and where the tables lie."""
    counts = ", ".join(f"{count} {status}" for status, count in sorted(manifest.counts.items(), reverse=True))
    print(f"{manifest.job}: {counts}")
    for table, parts in sorted(manifest.tables.items()):
        print(f"  {table}: {sum(part['rows'] for part in parts)} rows in {run.path(table)}")


def check_failed(manifest: Manifest, run: Run, config: JobConfig) -> None:
    """Raises TooManyFailed where more than `max_failed` of the rows failed."""
    if manifest.failed_share > config.max_failed:
        reasons = ", ".join(f"{name}: {count}" for name, count in _reasons(manifest, run).items())
        raise TooManyFailed(
            f"{manifest.job}: {manifest.counts['failed']} of {manifest.rows} rows failed ({reasons}), more than "
            f"max_failed={config.max_failed:g}; the rows and their reasons are in the tables of {run.root}"
        )


def _reasons(manifest: Manifest, run: Run) -> dict[str, int]:
    """The most frequent reasons of failed rows, from the reason columns alone."""
    found: Counter[str] = Counter()
    for table in ("failed", "responses", "scores"):
        for part in manifest.tables.get(table, []):
            columns = ["reason"] if table == "failed" else ["reason", "status"]
            for row in run.storage.read_table(run.path(part["path"]), columns).to_pylist():
                if row.get("status", "failed") == "failed":
                    found[row["reason"]] += 1
    return dict(found.most_common(5))
