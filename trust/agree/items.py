"""Outputs with what people said of them, read from a file of any of the known forms."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from trust.agree.config import AgreeConfig, PairsConfig, listed
from trust.errors import PreflightError, RowError
from trust.prepare import rated
from trust.prepare.config import DataConfig, dataset_name
from trust.prepare.fields import has, show, take
from trust.prepare.ids import SOURCE_IDS, source_id
from trust.prepare.plan import plan
from trust.prepare.read import RawRow, UnitReader
from trust.prepare.trust_format import to_sample
from trust.storage import Storage

PREFERENCE = "preference"  # the dimension of pairs

_WORDS = {"true": 1.0, "false": 0.0}


@dataclass
class Item:
    """One output.

    Attributes:
        sample_id, model: by which scores of evaluated runs are found; the model is the system at system level.
        group: outputs of one group are compared with each other; at summary level a statistic is of one.
        cluster: what is resampled as a whole, the question or document.
        ratings: dimension -> one number an annotator, None where one said nothing.
        metrics: metric -> its score.
        place: file, and row within it, for messages.
        annotator: whose ratings these are, where rows say it.
    """

    sample_id: str
    model: str
    group: str
    cluster: str
    ratings: dict[str, list[float | None]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    place: str = ""
    annotator: str = ""

    def rating(self, dimension: str) -> float | None:
        """The mean over annotators; None where none said anything."""
        said = [value for value in self.ratings.get(dimension, ()) if value is not None]
        return sum(said) / len(said) if said else None


@dataclass
class Rated:
    """What a file holds.

    Attributes:
        items: in the order of the file.
        preferences: whether the ratings only say which of a group's outputs are better than which.
        ties: pairs without a preference; they are left out.
        failed: rows that could not be read, each with its place and why.
        fingerprint: of the file's content.
    """

    items: list[Item]
    preferences: bool
    ties: int
    failed: list[str]
    fingerprint: str


def read_rated(config: AgreeConfig, storage: Storage) -> Rated:
    """All outputs of the file at `data.path` that people rated.

    Raises:
        PreflightError: no such file, more than `max_failed` of its rows cannot be read (the first is named), two rows rate the
            same output, or nothing is rated.
    """
    failed: list[str] = []
    items: list[Item] = []
    made = _Maker(config)
    rows, fingerprint = read_rows(config.data, storage)
    total = 0
    for raw in rows:
        total += 1
        try:
            items += made.items(raw)
        except RowError as error:
            failed.append(f"{place(raw)}: {error.detail}")
    if len(failed) > config.max_failed * total:
        raise PreflightError(f"{len(failed)} of {total} rows cannot be used, more than max_failed: {failed[0]}")
    if not items:
        raise PreflightError(f"data.path={config.data.path}: no row says what people think")
    if not config.pairs:
        items = _merged(items)
    return Rated(items, config.data.kind == "wikieval" or bool(config.pairs), made.ties, failed, fingerprint)


def read_rows(data: DataConfig, storage: Storage) -> tuple[Iterator[RawRow], str]:
    """The rows of all files at `data.path`, one by one, and a fingerprint of them."""
    planned = plan(data, storage, None)
    reader = UnitReader(storage, data.columns)

    def rows() -> Iterator[RawRow]:
        try:
            for unit in planned.units:
                yield from reader.read(unit.source)
        finally:
            reader.close()

    return rows(), planned.fingerprint


def place(raw: RawRow) -> str:
    """Where a row stands, for people."""
    return f"{raw.file}, row {raw.index + 1}" if raw.line is None else f"{raw.file}, line {raw.line}"


def value_of(value: Any, column: str, scale: dict[str, float]) -> float | None:
    """A rating or score as a finite number; None where there is none.

    Raises:
        RowError: it is none, and `scale` does not say what it stands for.
    """
    if value is None or value == "":
        return None
    if str(value) in scale:
        return scale[str(value)]
    if isinstance(value, bool):
        return float(value)
    try:
        found = _WORDS[value.strip().lower()] if str(value).strip().lower() in _WORDS else float(value)
    except (TypeError, ValueError, OverflowError):
        raise RowError(
            "invalid_type",
            f"{column} is {show(value)}, which is no number; scale={{WORD: NUMBER, ...}} says what words stand for",
            column,
        ) from None
    if not -1e300 < found < 1e300:
        raise RowError("not_finite", f"{column} is {found}; leave it empty where there is no number", column)
    return found


class _Maker:
    """Makes items of rows."""

    def __init__(self, config: AgreeConfig) -> None:
        self._config = config
        self._data = config.data
        self._dataset = dataset_name(config.data)
        self.ties = 0

    def items(self, raw: RawRow) -> list[Item]:
        """The outputs of a row that are rated; two of a row of pairs."""
        if isinstance(raw.value, RowError):
            raise raw.value
        kind = self._data.kind
        rows = rated.to_rows(raw.value, kind) if kind in rated.KINDS else [raw.value]
        if self._config.pairs:
            return self._pair(rows[0], raw, self._config.pairs)
        made = [self._item(row, raw) for row in rows]
        return [item for item in made if any(value is not None for said in item.ratings.values() for value in said)]

    def _item(self, row: dict[str, Any], raw: RawRow) -> Item:
        key = self._sample_id(row, raw)
        model = self._text(row, self._data.columns.get("model", "model")) or self._data.model
        group = key if self._config.group is None else self._needed(row, self._config.group)
        ratings = {
            dimension: [rating for column in columns for rating in self._several(*column)]
            for dimension, columns in self._columns(row, "ratings")
        }
        scores = {name: self._one(*columns[0]) for name, columns in self._columns(row, "metrics")}
        known = {name: score for name, score in scores.items() if score is not None}
        annotator = "" if self._config.annotator is None else self._needed(row, self._config.annotator)
        return Item(key, model, group, group, ratings, known, place(raw), annotator)

    def _pair(self, row: dict[str, Any], raw: RawRow, pairs: PairsConfig) -> list[Item]:
        key = self._sample_id(row, raw)
        names = {"first": self._needed(row, pairs.first), "second": self._needed(row, pairs.second)}
        said = self._text(row, pairs.preferred)
        if said is None or said.lower().startswith("tie"):
            self.ties += 1
            return []
        asked = {names["first"]: "first", names["second"]: "second"}
        asked |= {"first": "first", "second": "second", pairs.first: "first", pairs.second: "second"}
        if said not in asked or names["first"] == names["second"]:
            raise RowError(
                "invalid_preference",
                f"{pairs.preferred} is {show(said)}: neither of {show([*names.values()])}",
                pairs.preferred,
            )
        cluster = key if self._config.group is None else self._needed(row, self._config.group)
        made = []
        for number, (side, name) in enumerate(names.items()):
            scores = {
                metric: value_of(take(row, column)[0], column, {})
                for metric, columns in self._config.metrics.items()
                for column in [listed(columns)[number]]
            }
            rating: dict[str, list[float | None]] = {PREFERENCE: [float(asked[said] == side)]}
            known = {metric: score for metric, score in scores.items() if score is not None}
            made.append(Item(key, name, raw.place, cluster, rating, known, place(raw)))
        return made

    def _columns(self, row: dict[str, Any], what: str) -> Iterator[tuple[str, list[tuple[Any, str]]]]:
        """Name -> values with their columns, as the config maps them or as the row's own object has them."""
        mapped = getattr(self._config, what)
        if not mapped:
            own = row.get(what) or {}
            if not isinstance(own, dict):
                raise RowError(
                    "invalid_type", f"{what} is {show(own)}, not an object; {what}.NAME=COLUMN names columns", what
                )
            if not own and what == "ratings" and "ratings" not in row:
                raise RowError(
                    "missing_field", "the row has no `ratings`; ratings.DIMENSION=COLUMN names columns", what
                )
            yield from ((name, [(value, f"{what}.{name}")]) for name, value in own.items())
            return
        for name, columns in mapped.items():
            for column in listed(columns):
                if not has(row, column):
                    raise RowError("missing_field", f"the row has no {column} ({what}.{name}={column})", column)
            yield name, [(take(row, column)[0], column) for column in listed(columns)]

    def _several(self, value: Any, column: str) -> list[float | None]:
        values = value if isinstance(value, list) else [value]
        return [value_of(each, column, self._config.scale) for each in values]

    def _one(self, value: Any, column: str) -> float | None:
        return value_of(value, column, {})

    def _sample_id(self, row: dict[str, Any], raw: RawRow) -> str:
        """The id under which `jobs.prepare` keeps the row's question."""
        column = self._data.columns.get("id")
        if column is None and "sample_id" in row:
            return self._needed(row, "sample_id")
        for name in (column,) if column else SOURCE_IDS:
            if (own := source_id(take(row, name)[0], name)) is not None:
                return f"{self._dataset}:{own}"
        if row.get(self._data.columns.get("question", "question")) is not None:
            return str(to_sample(row, self._data, "strict")["sample_id"])
        return f"{self._dataset}:{raw.place}"

    def _needed(self, row: dict[str, Any], column: str) -> str:
        found = self._text(row, column)
        if found is None:
            raise RowError("missing_field", f"the row has no {column}", column)
        return found

    def _text(self, row: dict[str, Any], column: str) -> str | None:
        value = take(row, column)[0] if column else None
        return None if value is None or str(value).strip() == "" else str(value).strip()


def _merged(items: Iterable[Item]) -> list[Item]:
    """One item an output, where annotators have rows of their own.

    Raises:
        PreflightError: an output is rated twice by the same annotator.
    """
    found: dict[tuple[str, str], Item] = {}
    seen: dict[tuple[str, str, str], str] = {}
    for item in items:
        first = found.setdefault((item.sample_id, item.model), item)
        by = seen.setdefault((item.sample_id, item.model, item.annotator), item.place)
        if by != item.place:
            who = f" by {item.annotator}" if item.annotator else ""
            raise PreflightError(
                f"{item.place} rates the same output{who} as {by} (id {item.sample_id}, model {item.model}): annotators "
                "with rows of their own need annotator=COLUMN; several systems need a column `model` (data.columns.model=NAME)"
            )
        if first is not item:
            first.metrics = item.metrics | first.metrics
            for dimension, said in item.ratings.items():
                first.ratings[dimension] = [*first.ratings.get(dimension, ()), *said]
    return [*found.values()]


def dimensions(items: Iterable[Item]) -> list[str]:
    """The dimensions that are rated, in the order in which they come."""
    return [*dict.fromkeys(name for item in items for name in item.ratings)]


def metric_names(items: Iterable[Item]) -> list[str]:
    """The metrics that score any of the items, in the order in which they come."""
    return [*dict.fromkeys(name for item in items for name in item.metrics)]


def systems(items: Iterable[Item]) -> Counter[str]:
    """How many outputs each system has."""
    return Counter(item.model for item in items)
