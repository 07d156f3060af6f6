"""What the jobs inside `jobs.retrieve` share."""

from dataclasses import dataclass, replace
from typing import Any

from trust.execute import execute
from trust.fingerprint import fingerprint
from trust.retrieve.config import RetrieveConfig
from trust.runs import Manifest, Plan, Run
from trust.storage import join, open_storage
from trust.tables import SCHEMA_VERSION

FOLDER = "_corpora"
WORK_S = "work_seconds"  # in totals: of the work itself. A unit's own seconds count those in which it waits for the next one too


@dataclass(frozen=True)
class Search:
    """Whose questions are searched for in which corpus.

    Attributes:
        run: that is written.
        corpus: the run of the corpus.
        parts, inputs: of the questions (trust.align.rows.source).
    """

    config: RetrieveConfig
    run: Run
    corpus: Run
    parts: list[dict[str, Any]]
    inputs: dict[str, str]

    @property
    def corpus_parts(self) -> list[dict[str, Any]]:
        """Parts of the corpus, in the order in which `part` counts them."""
        return self.corpus.parts("corpus")


def side_run(config: RetrieveConfig, name: str, identity: dict[str, Any]) -> Run:
    """The folder of a corpus or of one of its indexes, beside the runs: `_corpora/{name}{hash of identity}`."""
    storage = open_storage(config.storage.root, config.storage)
    known_by = fingerprint(identity | {"schema": SCHEMA_VERSION})
    return Run(storage, join(config.storage.root, FOLDER), f"{name}{known_by}")


def execute_aside(plan: Plan, run: Run, config: RetrieveConfig) -> Manifest:
    """Makes a corpus or an index; what is there already is never replaced."""
    return execute(plan, run, replace(config, overwrite=False))


def execute_step(plan: Plan, run: Run, config: RetrieveConfig) -> Manifest:
    """Executes a job in front of `retrieve`. `overwrite=true` does not repeat what this very config has left: killed in a later
    step and started again with the same words, a run goes on there."""
    before = run.manifest(plan.job)
    done = before is not None and before.fingerprint == plan.fingerprint
    return execute(plan, run, replace(config, overwrite=config.overwrite and not done))
