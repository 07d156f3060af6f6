"""No judge at all, for metrics that ask none: what takes the judge's place, so that no model is looked for or loaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trust import config as configs
from trust.ask import AskFailed
from trust.storage import Storage


@dataclass
class NoneConfig:
    """Chosen by `jobs.evaluate` itself where no metric asks a judge."""

    backend: str = "none"

    languages: ClassVar[list[str] | None] = None
    gpus: ClassVar[float] = 0.0
    all_cpus: ClassVar[bool] = False
    cost_limit: ClassVar[float | None] = None

    def describe(self) -> str:
        return "none asked"

    def preflight(self, storage: Storage | None = None) -> None:
        """Nothing is needed."""

    def fingerprint(self, storage: Storage | None = None) -> str:
        return "none"

    def for_actor(self, cpus: int) -> dict[str, Any]:
        return configs.plain(self)

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "NoJudge":
        return NoJudge()


class NoJudge:
    """Fails whatever is asked."""

    batch_size = lanes = 1
    languages = None
    fingerprint = "none"

    def close(self) -> None:
        """Nothing to end."""

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[AskFailed]:
        return [AskFailed("no_judge", "the metric asks a judge, and says in `asks` that it does not") for _ in inputs]
