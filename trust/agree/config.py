"""What people said, what metrics said, and how the two are compared."""

import math
from dataclasses import dataclass, field

from trust.config import one_of, run_name
from trust.errors import ConfigError
from trust.prepare.config import DataConfig
from trust.prepare.rated import KINDS as RATED
from trust.storage import StorageConfig

MEASUREMENTS = ("nominal", "ordinal", "interval")

Columns = dict[str, str | list[str]]


@dataclass
class PairsConfig:
    """Rows that say which of two outputs people prefer.

    Attributes:
        first, second: columns with the two systems' names.
        preferred: column with the better one: its name, the name of the column that holds it, or `first` or `second`; anything
            that begins with `tie`, or null, is no preference.
    """

    first: str = "model_a"
    second: str = "model_b"
    preferred: str = "winner"


@dataclass
class AgreeConfig:
    """`jobs.agree`.

    Attributes:
        run: where the results go: `{storage.root}/{run}`.
        data: the file of what people said; null where only `labels` are given.
        ratings: dimension -> the column of people's ratings, or several, one an annotator; a column may hold a list. Empty takes
            the object `ratings` of each row, as the published forms have it.
        metrics: name -> the column of a metric's score (in pairs two columns: of the first and of the second). Empty takes the
            object `metrics` of each row, where there is one.
        annotator: column that says whose rating a row is, where each annotator has rows of their own; null where all
            ratings of an output stand in one row.
        group: column by whose values systems are compared (a document, a conversation); null is the row's id.
        scale: what people's words stand for as numbers, as in `{complete: 1, partial: 0.5}`.
        pairs: the columns of pairwise preferences, where rows hold those instead of ratings.
        runs: evaluated runs whose scores are compared with people, joined by id and model.
        values: which of their scores, as `metric.value`; empty takes all.
        prompt: which of a run's prompts, where it has several.
        alpha: how ratings are measured, for Krippendorff's alpha: nominal, ordinal or interval.
        labels: file of people's values for a sample of the scores of `runs`, by which these are corrected.
        width: of a 95 % interval, for which the labels it takes are counted; in the unit of the values (0.1 is 10 points).
        replicates: bootstrap replicates behind every interval.
        max_failed: share of the file's rows that may be unreadable.
        dry_run: say what is read and would be compared and written (trust.dry_run), and write nothing.
    """

    run: str = "run"
    storage: StorageConfig = field(default_factory=StorageConfig)
    data: DataConfig = field(default_factory=DataConfig)
    ratings: Columns = field(default_factory=dict)
    metrics: Columns = field(default_factory=dict)
    annotator: str | None = None
    group: str | None = None
    scale: dict[str, float] = field(default_factory=dict)
    pairs: PairsConfig | None = None
    runs: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    prompt: str | None = None
    alpha: str = "ordinal"
    labels: str | None = None
    width: float = 0.1
    replicates: int = 1000
    max_failed: float = 0.01
    dry_run: bool = False

    def __post_init__(self) -> None:
        run_name("run", self.run)
        one_of("alpha", self.alpha, MEASUREMENTS)
        if not self.data.path and not self.labels:
            raise ConfigError("data.path is not set: add data.path=FILE with what people said (or labels=FILE)")
        if self.labels and not self.runs:
            raise ConfigError("labels correct the scores of evaluated runs: name them with runs=[NAME]")
        if not self.runs and (self.values or self.prompt):
            raise ConfigError("values and prompt choose among the scores of runs: name these with runs=[NAME]")
        if twice := [name for name in self.runs if self.runs.count(name) > 1]:
            raise ConfigError(f"runs names {twice[0]} twice")
        if self.pairs and (self.ratings or self.data.kind in RATED):
            raise ConfigError("pairs and ratings are two ways to say what people prefer: give one of them")
        if self.pairs and self.annotator:
            raise ConfigError("annotator does nothing with pairs: each row is a preference of its own")
        for name, columns in self.metrics.items():
            wanted = 2 if self.pairs else 1
            if len(listed(columns)) != wanted:
                raise ConfigError(f"metrics.{name}: {wanted} column(s) are needed, not {len(listed(columns))}")
        if self.replicates < 100:
            raise ConfigError(f"replicates={self.replicates}: an interval needs at least 100")
        if not (math.isfinite(self.width) and self.width > 0):
            raise ConfigError(f"width={self.width:g}: must be above 0")
        if not 0 <= self.max_failed <= 1:
            raise ConfigError(f"max_failed={self.max_failed}: a share between 0 and 1")
        if wrong := [word for word, number in self.scale.items() if not math.isfinite(number)]:
            raise ConfigError(f"scale.{wrong[0]}: must be a number")


def listed(columns: str | list[str]) -> list[str]:
    """One column or several, as a list."""
    return [columns] if isinstance(columns, str) else columns
