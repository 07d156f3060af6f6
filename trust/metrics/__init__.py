"""Metrics: a row function that awaits asks and returns additive terms, and a final function over their sums.

To add one: a module here with a class of this shape, one file in `conf/metrics`, one test. A module of the same form may also lie
outside (`metrics.NAME.module=my_module`). Nothing in this package knows Ray, vLLM or torch.
"""

import importlib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from trust.ask import Ask
from trust.errors import ConfigError
from trust.metrics.own import import_own, source_hash

TASKS = ("em", "em5", "cm", "none")

METRICS = {  # name -> module with METRIC and CONFIG
    "bartscore": "trust.metrics.bartscore",
    "bertscore": "trust.metrics.bertscore",
    "code": "trust.metrics.code",
    "geval": "trust.metrics.geval",
    "gptscore": "trust.metrics.gptscore",
    "trust_score": "trust.metrics.trust_score",
    "no_gold": "trust.metrics.no_gold",
    "nomiracl": "trust.metrics.nomiracl",
    "overlap": "trust.metrics.overlap",
    "pairwise": "trust.metrics.pairwise",
    "ragas": "trust.metrics.ragas",
    "rules": "trust.metrics.rules",
}

_MODULE, _SOURCE = "module", "source"  # of a metric from outside: its module, and the hash of that

Row = Mapping[str, Any]  # one row of the responses table (trust.tables), map columns as dicts


@dataclass(frozen=True)
class RowScore:
    """What a metric says of one response.

    Attributes:
        terms: additive terms, keys from the metric's `terms`; a missing key counts as 0.
        values: what people want to see of this row (0 to 1 or counts); a missing key means not applicable.
        trace: how the score came about (plain JSON types), for the report.
        status: `scored` or `na`; failures are raised as `RowError`.
    """

    terms: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    trace: dict[str, Any] = field(default_factory=dict)
    status: str = "scored"
    reason: str | None = None
    detail: str | None = None


class Stat(NamedTuple):
    """A published statistic over sums.

    Attributes:
        value: shape (1 + replicates,); index 0 is the point estimate, the rest its bootstrap; NaN is not applicable.
        n: rows in its denominator.
        successes: for a plain proportion, how many of the `n` (its interval is Wilson's); else None.
        bounds: the range the statistic can take, None if it has none.
    """

    value: np.ndarray
    n: int
    successes: int | None = None
    bounds: tuple[float, float] | None = (0.0, 100.0)


class Metric(Protocol):
    """A metric. `asks` names the asks that it makes (`entails`); `terms` fixes the order of the summed vector; `final` gets each
    term's sums, shape (1 + replicates,).

    `preflight` raises PreflightError where something the metric reads (language data, say) is not installed. A metric may
    have `over_languages`, which gets the sums of each language (code -> term -> sums) and returns statistics over languages;
    and `notes`, words that belong beside its numbers (key -> words).
    """

    name: str
    asks: tuple[str, ...]
    terms: tuple[str, ...]

    def preflight(self) -> None: ...

    async def row(self, row: Row, ask: Ask) -> RowScore: ...

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]: ...


class SetUpMetric(Metric, Protocol):
    """A metric that may want something done once a run: where `wants_setup` is true, `setup` is awaited before any row is
    scored, and `take` gets what it returned (plain JSON types) wherever rows are scored."""

    wants_setup: bool

    async def setup(self, ask: Ask) -> Any: ...

    def take(self, found: Any) -> None: ...


class CountingMetric(Metric, Protocol):
    """A metric that may want to know how common tokens are: where `wants_counts` is true, they are counted in the texts that
    `counted` gives of every response, by the tokenizer of the backend for `embed`, and `take_counts` gets how many texts there
    are and how many of them hold each token, wherever rows are scored."""

    wants_counts: bool

    def counted(self, row: Row) -> list[str]: ...

    def take_counts(self, texts: int, holding: np.ndarray) -> None: ...


def to_count(made: Iterable[Metric]) -> list[CountingMetric]:
    """Those that want tokens counted before any row is scored."""
    return [cast(CountingMetric, metric) for metric in made if getattr(metric, "wants_counts", False)]


def to_set_up(made: Iterable[Metric]) -> list[SetUpMetric]:
    """Those that want something done once a run."""
    return [cast(SetUpMetric, metric) for metric in made if getattr(metric, "wants_setup", False)]


def names() -> list[str]:
    """Metrics that `metrics=[...]` may name."""
    return sorted(METRICS)


def resolve(options: Mapping[str, Any], read: Callable[[str], bytes]) -> dict[str, Any]:
    """The options, as `build` checked them, with the files that they name read: fingerprint and actors see what those hold.

    Args:
        read: gives the bytes of a file.

    Raises:
        ConfigError: a file cannot be read, or does not hold what it should.
    """
    resolved = {}
    for name, values in options.items():
        module = _module(name, values)
        found = module.resolve(values or {}, read, f"metrics.{name}") if hasattr(module, "resolve") else values
        resolved[name] = found if name in METRICS else {**found, _SOURCE: source_hash(str(found[_MODULE]))}
    return resolved


def build(options: Mapping[str, Any], compat: str) -> list[Metric]:
    """The metrics named in `options` (name -> its options), checked.

    Raises:
        ConfigError: an unknown metric or option, where the nearest right one is named; two metrics that publish the same
            numbers, with different options.
    """
    from trust.config import build as build_config

    configs: dict[str, Any] = {}
    made: dict[str, Metric] = {}
    for name, values in options.items():
        module = _module(name, values)
        own = {} if name in METRICS else {_MODULE, _SOURCE}
        told = {key: value for key, value in (values or {}).items() if key not in own}
        configs[name] = build_config(module.CONFIG, told, f"metrics.{name}")
        made[name] = module.METRIC(configs[name], compat)
    for one, other in itertools.combinations(made, 2):
        both = published(made[one]) & published(made[other])
        if both and not {one, other} <= set(METRICS):
            raise ConfigError(f"metrics.{one} and metrics.{other} both give {min(both)}: rename the one of your own")
        common = {item.name for item in fields(configs[one])} & {item.name for item in fields(configs[other])}
        for key in sorted(common) if both else ():
            if getattr(configs[one], key) != getattr(configs[other], key):
                raise ConfigError(
                    f"metrics.{one}.{key} and metrics.{other}.{key} differ, but both give {min(both)}: make them equal, or "
                    "evaluate in two runs"
                )
    return list(made.values())


def checked(score: RowScore, metric: Metric) -> RowScore:
    """What a metric says of a row, if it can be added up.

    Raises:
        ValueError: a number is none, or a term is not one of the metric's.
    """
    for kind, numbers in (("term", score.terms), ("value", score.values)):
        if wrong := next((key for key, number in numbers.items() if not math.isfinite(number)), None):
            raise ValueError(f"the {kind} {wrong} is {numbers[wrong]}; a number that does not apply is left out")
    if unknown := set(score.terms) - set(metric.terms):
        raise ValueError(f"the term {min(unknown)} is not among the metric's terms")
    if score.status not in ("scored", "na"):
        raise ValueError(f"the status is {score.status!r}; it is scored or na, and a failure is raised as RowError")
    return score


def _module(name: str, values: Mapping[str, Any] | None) -> ModuleType:
    """Where a metric lies: here, or where its option `module` says. Raises ConfigError."""
    from trust.config import one_of

    if name in METRICS:
        return importlib.import_module(METRICS[name])
    target = (values or {}).get(_MODULE)
    if not target:
        one_of("metrics", name, METRICS)
    where = f"metrics.{name}.{_MODULE}"
    module = import_own(str(target), where)
    if not hasattr(module, "METRIC") or not hasattr(module, "CONFIG"):
        raise ConfigError(
            f"{where}={target}: a metric's module has METRIC, its class, and CONFIG, the dataclass of its options"
        )
    if (called := module.METRIC.name) != name:
        raise ConfigError(f"{where}={target}: that metric is called {called}; write metrics.{called}.{_MODULE}")
    return module


def published(metric: Metric) -> set[str]:
    """The names of the numbers that a metric gives, whatever the task."""
    nothing = {term: np.zeros(1) for term in metric.terms}
    return {key for task in TASKS for key in metric.final(nothing, task)}
