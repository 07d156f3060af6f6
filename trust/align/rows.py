"""What all building jobs do with rows alike: which samples they read, what becomes of bad ones, what may be built from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trust.config import JobConfig, one_of
from trust.errors import PreflightError, RowError
from trust.runs import Run
from trust.tables import SAMPLE_TABLES


@dataclass
class SampleSource:
    """Whose samples a job reads; a base of its config.

    Attributes:
        from_run: the run that holds them; null is this run.
        from_table: `samples`, or what a building job made of them: `seeds`, `oracle`, `variants`.
    """

    from_run: str | None = None
    from_table: str = "samples"

    def check_source(self) -> None:
        """Raises ConfigError where there is no such table."""
        one_of("from_table", self.from_table, SAMPLE_TABLES)


def source(config: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Parts of the table that a job with a SampleSource reads, and what its identity says of them.

    Raises:
        PreflightError: that run has no such table.
    """
    table: str = config.from_table
    parts, inputs = Run.of(config, config.from_run).inputs(table, SAMPLE_TABLES[table])
    return parts, {"inputs": inputs} | ({} if table == "samples" else {"from_table": table})


def check_target(config: JobConfig, job: str, table: str = "samples") -> None:
    """Whether no other job left `table` in the run already: it would hold both.

    Raises:
        PreflightError: one did.
    """
    others = [made.job for made in Run.of(config).manifests() if made.job != job and made.tables.get(table)]
    if others:
        raise PreflightError(
            f"run={config.run} holds the {table} of jobs.{others[0]} already: give what jobs.{job} makes of them a run of "
            "its own, with from_run= the one that is read"
        )


def failed(job: str, sample_id: str, error: RowError) -> dict[str, Any]:
    """The row of the table `failed` for a sample that could not be worked on."""
    return {"job": job, "row": sample_id, "field": error.field or None, "reason": error.reason, "detail": error.detail}


def tally(prefix: str, reasons: Iterable[str]) -> dict[str, float]:
    """`{prefix}:{reason}` -> how often, for the totals of a receipt: `dropped` and `failed` are what cards show."""
    found: dict[str, float] = {}
    for reason in reasons:
        key = f"{prefix}:{reason}"
        found[key] = found.get(key, 0.0) + 1.0
    return found


def check_split(row: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Whether a row may be built from. One that says of no split (`meta.split`) is the user's own, and may.

    Raises:
        RowError: `not_for_building`: it is of a split that models are measured on.
    """
    split = (row.get("meta") or {}).get("split")
    if split is not None and split not in set(allowed):
        raise RowError(
            "not_for_building",
            f"a row of the {split} split, which models are measured on; build from {', '.join(allowed)}",
            "meta.split",
        )
