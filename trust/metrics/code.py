"""A user's own Python functions as metrics.

A function takes a row of the responses table (a mapping) and `ask`, and returns a number, a bool, None (not applicable) or a
mapping with `score` (one of these) and `reason` (words for the report). It may be `async` and await what `ask` offers:

```python
async def grounded(row, ask):
    verdict = await ask.entails(row["docs"][0]["text"], row["output"], role="grounded")
    return verdict.label
```

Only functions of modules that `modules` names are called; the run's fingerprint holds their source.
"""

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from trust.ask import Ask
from trust.errors import ConfigError, RowError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.own import import_own, last_lines, source_hash
from trust.metrics.ratios import Sums

_KEY = "metrics.code"
_NAME = "code_"
_ASKS = ("entails", "complete", "logprob", "embed")
_LARGEST = 1e6  # of a score: sums stay exact in fixed point


@dataclass
class CodeConfig:
    """Options of the metric.

    Attributes:
        functions: name -> import path `package.module:function`; the names are part of the results' names.
        modules: the modules, or packages, whose functions may be called.
        asks: what the functions ask (`entails`, `complete`, `logprob`, `embed`): who answers that is loaded.
        sources: module -> hash of its source, filled in by the job; part of the fingerprint.
    """

    functions: dict[str, str] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)


class Code:
    """The metric (trust.metrics.Metric). What a function raises fails the row, with the last lines of its traceback.

    Raises:
        ConfigError: a function is not there, or of a module that is not allowed.
    """

    name = "code"

    def __init__(self, config: CodeConfig, compat: str) -> None:
        if not config.functions:
            raise ConfigError(
                f"{_KEY}.functions is empty: name a function, as in {_KEY}.functions.polite=my_checks:polite"
            )
        if unknown := [ask for ask in config.asks if ask not in _ASKS]:
            raise ConfigError(
                f"{_KEY}.asks: {unknown[0]!r} is none that evaluate answers; it answers {', '.join(_ASKS)}"
            )
        for name in config.functions:
            if not name.isidentifier():
                raise ConfigError(f"{_KEY}.functions: {name!r} is no name: letters, digits and _ only")
        self.asks = tuple(config.asks)
        self._functions = {
            name: load(path, config.modules, f"{_KEY}.functions.{name}") for name, path in config.functions.items()
        }
        self.terms = tuple(f"{kind}_{name}" for name in self._functions for kind in ("rows", "score"))

    def preflight(self) -> None:
        """Needs nothing: the functions are imported already."""

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response by each function.

        Raises:
            RowError: `code_error`: a function raised, or returned what is no score; or a judge could not answer.
        """
        found = await asyncio.gather(*(self._one(name, row, ask) for name in self._functions))
        terms: dict[str, float] = {}
        values: dict[str, float] = {}
        reasons: list[tuple[str, str]] = []
        for name, (score, told) in zip(self._functions, found, strict=True):
            if score is not None:
                terms |= {f"rows_{name}": 1.0, f"score_{name}": score}
                values[f"{_NAME}{name}"] = score
            shown = "not applicable" if score is None else f"{score:g}"
            reasons.append(("neutral", f"{name}: {shown}{f' ({told})' if told else ''}."))
        if not values:
            return RowScore(status="na", reason="not_applicable", detail="no function applies to the row")
        return RowScore(terms=terms, values=values, trace={"reasons": reasons})

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`code_NAME`: the mean of a function's scores, as it returns them."""
        own = Sums(sums, "na")
        stats = {}
        for name in self._functions:
            mean = own.percent(own[f"score_{name}"], own[f"rows_{name}"]) / 100
            stats[f"{_NAME}{name}"] = Stat(mean, own.rows(f"rows_{name}"), None, None)
        return stats

    async def _one(self, name: str, row: Row, ask: Ask) -> tuple[float | None, str]:
        function = self._functions[name]
        try:
            if inspect.iscoroutinefunction(function):
                result = await function(dict(row), ask)
            else:
                result = await asyncio.to_thread(function, dict(row), ask)
            return _score(result)
        except RowError:
            raise
        except (Exception, SystemExit) as error:  # exit() would end the actor, row by row, for ever
            raise RowError("code_error", f"{name}: {last_lines(error)}") from error


METRIC = Code
CONFIG = CodeConfig


def resolve(options: Mapping[str, Any], read: Callable[[str], bytes], path: str) -> dict[str, Any]:
    """The options with hashes of the modules' sources, so that a changed function is another metric."""
    modules = {target.partition(":")[0] for target in (options.get("functions") or {}).values()}
    return {**options, "sources": {module: found for module in sorted(modules) if (found := source_hash(module))}}


def load(target: str, modules: list[str], where: str) -> Callable[..., Any]:
    """The function at an import path.

    Raises:
        ConfigError: it is of a module that is not allowed, or is not there.
    """
    module, colon, name = target.partition(":")
    if not colon or not name.isidentifier():
        raise ConfigError(f"{where}={target!r}: expected package.module:function")
    if not any(module == allowed or module.startswith(f"{allowed}.") for allowed in modules):
        raise ConfigError(
            f"{where}={target}: {module} is not among {_KEY}.modules={modules}; add {_KEY}.modules=[{module}]"
        )
    function = getattr(import_own(module, where), name, None)
    if not callable(function):
        raise ConfigError(f"{where}={target}: {module} has no function {name}")
    return cast(Callable[..., Any], function)


def _score(result: Any) -> tuple[float | None, str]:
    told = ""
    if isinstance(result, Mapping):
        if unknown := set(result) - {"score", "reason"}:
            raise ValueError(
                f"the function returned the key {sorted(map(str, unknown))[0]}; known are score and reason"
            )
        told, result = str(result.get("reason") or ""), result.get("score")
    if result is None:
        return None, told
    if not isinstance(result, bool | int | float | np.number | np.bool_):
        raise TypeError(
            f"the function returned {type(result).__name__}, not a number, a bool, None or a mapping of them"
        )
    score = float(result)
    if not math.isfinite(score) or abs(score) > _LARGEST:
        raise ValueError(f"the function returned {score}; a score is finite and at most {_LARGEST:g} in size")
    return score, told
