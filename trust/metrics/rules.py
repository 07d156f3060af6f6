"""Rules that a response keeps or breaks: texts it holds, patterns, lengths, JSON, words shared with what it was given.

A rule is a mapping with one of these keys, and `ignore_case: true` beside it where case is to be ignored:

| key | the response |
| --- | --- |
| `contains`, `not_contains` | holds the text, or all texts of a list; holds none of them |
| `starts`, `ends`, `equals` | begins with, ends with, is the text, or one of a list; blanks around the response do not count |
| `regex` | has a match (RE2's syntax, which takes linear time: no look-around, no back-references) |
| `length` | is from `min` to `max` long, in `words`, `characters` or `sentences` (`unit`) |
| `json_schema` | is JSON, as a whole, that the schema admits (draft 2020-12; no remote references) |
| `overlap` | holds at least `min` (0 to 1) of the words of `with`: `question`, `docs`, `references`, `answers` (first variants) |
| `and`, `or`, `not` | keeps all rules of a list, one of them, does not keep the rule |
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import yaml

from trust.ask import Ask
from trust.errors import ConfigError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import Sums
from trust.metrics.rule_checks import Check, check_of

_NAME = "rule_"
_KEY = "metrics.rules.rules"


@dataclass
class RulesConfig:
    """Options of the metric.

    Attributes:
        rules: name -> the rule (see the module), or a YAML file with that; the names are part of the results' names.
    """

    rules: dict[str, Any] | str = field(default_factory=dict)


class Rules:
    """The metric (trust.metrics.Metric). A response passes where it keeps every named rule.

    Raises:
        ConfigError: no rule, or one that cannot be read; names its place.
    """

    name = "rules"
    asks: tuple[str, ...] = ()

    def __init__(self, config: RulesConfig, compat: str) -> None:
        if not config.rules:
            raise ConfigError(f"{_KEY} is empty: name some rules, best in a YAML file: {_KEY}=FILE")
        rules = {} if isinstance(config.rules, str) else config.rules  # a file is read by `resolve`, and checked then
        for name in rules:
            if not isinstance(name, str) or not name.isidentifier():
                raise ConfigError(f"{_KEY}: {name!r} is no name: letters, digits and _ only")
        self._rules = {name: _read(rule, f"{_KEY}.{name}") for name, rule in rules.items()}
        self.terms = ("rows", "passed", *(f"{_NAME}{name}" for name in self._rules))

    def preflight(self) -> None:
        """Needs nothing."""

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response; asks nothing.

        Raises:
            RowError: a rule needs something that the row does not have.
        """
        broken = await asyncio.to_thread(self._broken, row)
        kept = {name: not faults for name, faults in broken.items()}
        passed = all(kept.values())
        reasons = [
            ("bad", f"Rule {name} is broken, which wants: {'; '.join(faults)}.")
            for name, faults in broken.items()
            if faults
        ] or [("good", f"It keeps all {len(kept)} rules.")]
        return RowScore(
            terms={"rows": 1.0, "passed": float(passed)} | {f"{_NAME}{name}": float(ok) for name, ok in kept.items()},
            values={"passed": float(passed)} | {f"{_NAME}{name}": float(ok) for name, ok in kept.items()},
            trace={"broken": {name: faults for name, faults in broken.items() if faults}, "reasons": reasons},
        )

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """Percentages of responses: `rules_passed`, and `rule_NAME` of each."""
        own = Sums(sums, "na")
        each = {f"{_NAME}{name}": own.rate(f"{_NAME}{name}", "rows") for name in self._rules}
        return {"rules_passed": own.rate("passed", "rows")} | each

    def _broken(self, row: Row) -> dict[str, list[str]]:
        """Rule -> what of it does not hold, in words; empty where the rule is kept."""
        return {name: [] if rule.holds(row) else list(rule.faults(row)) for name, rule in self._rules.items()}


METRIC = Rules
CONFIG = RulesConfig


def resolve(options: Mapping[str, Any], read: Callable[[str], bytes], path: str) -> dict[str, Any]:
    """The options with a file of rules read: what it holds is what the fingerprint and the actors see.

    Raises:
        ConfigError: the file cannot be read, or holds no rules.
    """
    rules = options.get("rules")
    if not isinstance(rules, str):
        return dict(options)
    try:
        content = yaml.safe_load(read(rules).decode())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}.rules={rules}: cannot be read: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}.rules={rules}: expected named rules, got {type(content).__name__}")
    Rules(RulesConfig(content), "strict")
    return {**options, "rules": content}


class _Rule:
    """A tree of checks."""

    def __init__(self, kind: str, parts: list["_Rule"], check: Check | None = None) -> None:
        self._kind, self._parts, self._check = kind, parts, check

    def holds(self, row: Row) -> bool:
        if self._check is not None:
            return self._check.holds(row)
        if self._kind == "not":
            return not self._parts[0].holds(row)
        return (all if self._kind == "and" else any)(part.holds(row) for part in self._parts)

    def faults(self, row: Row) -> Iterator[str]:
        """What it wants and the row does not keep, in words."""
        if self._kind != "and":
            yield self.words
            return
        for part in self._parts:
            if not part.holds(row):
                yield from part.faults(row)

    @property
    def words(self) -> str:
        if self._check is not None:
            return self._check.words
        if self._kind == "not":
            return f"not ({self._parts[0].words})"
        return "(" + f" {self._kind} ".join(part.words for part in self._parts) + ")"


def _read(rule: Any, where: str) -> _Rule:
    if not isinstance(rule, Mapping) or not rule:
        raise ConfigError(f"{where} is {rule!r}: a rule is a mapping such as {{contains: text}}")
    keys = [key for key in rule if key != "ignore_case"]
    if len(keys) != 1:
        raise ConfigError(
            f"{where} has the keys {', '.join(map(str, rule))}: one rule has one; join several with `and`"
        )
    kind, value = keys[0], rule[keys[0]]
    if kind in ("and", "or", "not"):
        if "ignore_case" in rule:
            raise ConfigError(f"{where}.ignore_case: belongs to the single rules in {kind}")
        if kind == "not":
            return _Rule(kind, [_read(value, f"{where}.not")])
        if not isinstance(value, list) or not value:
            raise ConfigError(f"{where}.{kind} is {value!r}: expected a list of rules")
        return _Rule(kind, [_read(part, f"{where}.{kind}[{at}]") for at, part in enumerate(value)])
    return _Rule(kind, [], check_of(kind, value, rule.get("ignore_case", False), where))
