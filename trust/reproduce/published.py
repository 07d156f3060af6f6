"""What the papers print: tables of rows, the models, data sets and recipes behind them."""

import fnmatch
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from trust.config import build, nearest, one_of
from trust.errors import ConfigError

COLUMNS = ("answered_ratio", "f1_ac", "f1_gr", "f1_gc", "trust_score")  # of a row on a data set, 0-100, as printed
LABELS = dict(zip(COLUMNS, ("AR %", "F1_AC", "F1_GR", "F1_GC", "TRUST"), strict=True))

_HERE = Path(__file__).parent

T = TypeVar("T")


@dataclass(frozen=True)
class Model:
    """A model of the tables.

    Attributes:
        path: its public name; None where its weights are not open.
        max_model_len: context in tokens; None is the model's own.
    """

    path: str | None = None
    max_model_len: int | None = None


@dataclass(frozen=True)
class Dataset:
    """An evaluation set.

    Attributes:
        task: how correctness is measured (trust.prepare.config).
        prompt: of conf/prompt.
        language: of its rows, where they do not say.
        path: where it lies, for one that comes with the project.
        answerable, questions: its published counts.
    """

    task: str
    prompt: str
    language: str | None = None
    path: str | None = None
    answerable: int | None = None
    questions: int | None = None


@dataclass(frozen=True)
class Recipe:
    """How a row was made.

    Attributes:
        label: in words.
        shots: demonstrations.
        checkpoint: whether the row has a trained model of its own.
        elsewhere: why `jobs.reproduce` cannot make it; empty where it can.
    """

    label: str
    shots: int = 0
    temperature: float = 0.1
    max_tokens: int = 300
    checkpoint: bool = False
    elsewhere: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        model: the model, or for a checkpoint the one that it was trained from.
        printed: data set -> what is printed, in the order of `COLUMNS`; None is not printed.
        note: what else is to be said of what is printed.
    """

    model: str
    recipe: str
    printed: dict[str, list[float | None]] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A published table (or several that belong together).

    Attributes:
        version: of the paper.
        place: the table in it.
    """

    title: str
    paper: str
    version: str
    place: str
    datasets: list[str]
    rows: dict[str, Row]

    @property
    def source(self) -> str:
        """Where the printed numbers stand."""
        return ", ".join(filter(None, (self.paper, self.version, self.place)))

    def printed(self, row: str, dataset: str) -> dict[str, float | None] | None:
        """Column -> printed number; None where the row has nothing on that data set."""
        values = self.rows[row].printed.get(dataset)
        return None if values is None else dict(zip(COLUMNS, values, strict=True))


def names() -> list[str]:
    """What `table=` may name."""
    return sorted(file.stem for file in (_HERE / "tables").glob("*.yaml"))


@cache
def table(name: str) -> Table:
    """A table by name.

    Raises:
        ConfigError: there is none; the nearest right name is given.
    """
    one_of("table", name, names())
    return build(Table, _read(f"tables/{name}"), f"tables/{name}")


def models() -> dict[str, Model]:
    return _all("models", Model)


def datasets() -> dict[str, Dataset]:
    return _all("datasets", Dataset)


def recipes() -> dict[str, Recipe]:
    return _all("recipes", Recipe)


def model_keys() -> list[str]:
    """What `models.` may name: models, and rows of any table with a checkpoint of their own."""
    trained = {key for name in names() for key, row in table(name).rows.items() if recipes()[row.recipe].checkpoint}
    return sorted({*models(), *trained})


def select(key: str, wanted: list[str], known: list[str]) -> list[str]:
    """Those of `known` that one of `wanted` names, as a name or a pattern (`*_icl`); all where nothing is wanted.

    Args:
        key: the option, for messages.

    Raises:
        ConfigError: one of `wanted` names nothing; says what is near.
    """
    for pattern in wanted:
        if not fnmatch.filter(known, pattern):
            plain = pattern.replace("*", "")
            raise ConfigError(
                f"{key}: nothing here is called {pattern}{nearest(plain, known)} (known: {', '.join(known)})"
            )
    return [name for name in known if not wanted or any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)]


@cache
def _read(name: str) -> Any:
    return yaml.safe_load((_HERE / f"{name}.yaml").read_text())


@cache
def _all(name: str, kind: type[T]) -> dict[str, T]:
    return {key: build(kind, values, f"{name}.{key}") for key, values in _read(name).items()}
