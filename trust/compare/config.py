"""What is compared, and what is too much of a loss."""

import math
from dataclasses import dataclass, field

from trust.config import one_of
from trust.errors import ConfigError
from trust.storage import StorageConfig

QUESTIONS = ("same", "shared")
FAIL_ON = ("difference", "low", "high")
LEAD = "trust_score"  # the number that a `fail_below` without a key is about


@dataclass
class CompareConfig:
    """`jobs.compare`.

    Attributes:
        base: the run compared against: a name under `storage.root`, or the address of a run's folder.
        new: the run that may be worse.
        storage: where runs given by name lie.
        base_model, base_prompt, new_model, new_prompt: which of several models or prompts of a run; null where there is
            one, or where both runs have those of the same name.
        questions: `same` refuses runs over different questions; `shared` compares over those that both have, for which
            it reads their scores.
        by: slices (of both evaluations' `slices`) whose differences are given as well.
        fail_below: key -> the least difference (new minus base, in points) that passes, or one number for
            `trust_score`; null lets everything pass.
        fail_on: what has to reach it: the `difference`; its interval's `low` end, which fails where a loss cannot be ruled
            out; or the `high` end, which fails only where one is certain.
        fail_slices: whether each slice has to reach it too.
        out: folder or s3:// address for the Markdown and the table; null is `compare` in the folder of `new`.
        dry_run: say what is compared and would be written (trust.dry_run), and write nothing.
    """

    base: str
    new: str
    storage: StorageConfig = field(default_factory=StorageConfig)
    base_model: str | None = None
    base_prompt: str | None = None
    new_model: str | None = None
    new_prompt: str | None = None
    questions: str = "same"
    by: list[str] = field(default_factory=list)
    fail_below: float | dict[str, float] | None = None
    fail_on: str = "difference"
    fail_slices: bool = False
    out: str | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        one_of("questions", self.questions, QUESTIONS)
        one_of("fail_on", self.fail_on, FAIL_ON)
        if any(not math.isfinite(least) for least in self.limits.values()):
            raise ConfigError("fail_below: must be a number of points, such as -1")
        if not self.limits and (self.fail_slices or self.fail_on != FAIL_ON[0]):
            raise ConfigError("fail_on and fail_slices do nothing without fail_below: set fail_below=-1, say")
        if self.fail_slices and not self.by:
            raise ConfigError("fail_slices does nothing without slices: name them with by=[language], say")
        if twice := [name for name in self.by if self.by.count(name) > 1]:
            raise ConfigError(f"by names {twice[0]} twice")

    @property
    def limits(self) -> dict[str, float]:
        """Key -> least difference that passes."""
        if isinstance(self.fail_below, dict):
            return self.fail_below
        return {} if self.fail_below is None else {LEAD: self.fail_below}
