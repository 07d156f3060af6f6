"""A comparison as short Markdown for a pull request. Names come from users' data: none of them becomes markup."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from trust.compare.config import CompareConfig
from trust.compare.differences import ALL, Difference
from trust.compare.gate import Loss
from trust.compare.runs import Evaluation, Pair
from trust.summary import MAIN

_SLICES = 20  # rows a column; a comment holds 65,536 characters
_LOSSES = 10
_PARTS = list(MAIN)[:4]  # what a slice is shown by
_NOTES = 3
_NAME = 60  # characters


@dataclass(frozen=True)
class Comparison:
    """All that is known of two runs.

    Attributes:
        found: pair of groups -> its differences.
        notes: sentences for people, such as what was left out.
        lost: what is worse than allowed.
        where: address of the table of all differences.
    """

    base: Evaluation
    new: Evaluation
    judge: str
    found: Mapping[Pair, list[Difference]]
    notes: Mapping[Pair, str]
    alone: list[str]
    lost: list[Loss] = field(default_factory=list)
    where: str = ""


def render(made: Comparison, config: CompareConfig) -> str:
    """The whole text."""
    return "\n".join([*_head(made, config), *_sets(made, config), *_foot(made)]) + "\n"


def _head(made: Comparison, config: CompareConfig) -> Iterator[str]:
    yield f"### Trust: {_name(made.new.run.name)} against {_name(made.base.run.name)}"
    yield ""
    if not config.limits:
        return
    rule = ", ".join(f"{key} {least:+g}" for key, least in config.limits.items())
    what = {"difference": "the difference", "low": "the interval's low end", "high": "the interval's high end"}
    ruled = f"least allowed: {rule}, by {what[config.fail_on]}{', in every slice' if config.fail_slices else ''}"
    if not made.lost:
        yield f"**No regression** ({ruled})."
    else:
        yield f"**Regression** ({ruled}):"
        yield ""
        for loss in made.lost[:_LOSSES]:
            yield f"- `{loss.difference.key}`{_where(loss)}: {_text(loss.words, 300)}"
        if len(made.lost) > _LOSSES:
            yield f"- and {len(made.lost) - _LOSSES} more"
    yield ""


def _sets(made: Comparison, config: CompareConfig) -> Iterator[str]:
    for pair, found in made.found.items():
        whole = {each.key: each for each in found if each.slice == ALL}
        yield f"**{_name(pair.new.dataset)}** ({pair.new.task}): {_who(pair)}. {made.notes[pair]}"
        yield ""
        yield "| | base | new | difference | 95 % interval |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        for label, each in _main(whole, config):
            yield f"| {label} | {_number(each.base)} | {_number(each.new)} | {_change(each)} | {_interval(each)} |"
        yield ""
        for column in config.by:
            yield from _by(column, [each for each in found if each.slice[0] == column])


def _main(whole: Mapping[str, Difference], config: CompareConfig) -> Iterator[tuple[str, Difference]]:
    """What people look at first, and what has a limit."""
    shown = set()
    for label, keys in MAIN.items():
        if key := next((key for key in keys if key in whole), None):
            shown.add(key)
            yield " ".join(label.split()), whole[key]
    for key in config.limits:
        if key in whole and key not in shown:
            yield f"`{key}`", whole[key]


def _by(column: str, found: list[Difference]) -> Iterator[str]:
    """The differences of a column's slices, the largest loss first."""
    slices = {of[1]: {each.key: each for each in all_} for of, all_ in groupby(found, key=lambda each: each.slice)}
    known = {each.key for each in found}
    labels = {label: key for label in _PARTS for key in MAIN[label] if key in known}
    if not labels:
        return
    lead = next(iter(labels.values()))
    ordered = sorted(slices.items(), key=lambda item: (_rank(item[1].get(lead)), item[0]))
    yield f"<details><summary>By {_name(column)}: {len(ordered)} slices</summary>"
    yield ""
    yield f"| {_name(column)} | n | " + " | ".join(" ".join(label.split()) for label in labels) + " |"
    yield "| --- | ---: |" + " ---: |" * len(labels)
    for value, numbers in ordered[:_SLICES]:
        cells = [_sliced(numbers.get(key)) for key in labels.values()]
        yield f"| {_name(value)} | {_rows(numbers)} | " + " | ".join(cells) + " |"
    yield ""
    if len(ordered) > _SLICES:
        yield f"{len(ordered) - _SLICES} more, which lost less, are in the table."
        yield ""
    if notes := sorted({numbers[lead].note for numbers in slices.values() if lead in numbers and numbers[lead].note}):
        yield f"–: {_text('; '.join(notes[:_NOTES]), 300)}."
        yield ""
    yield "</details>"
    yield ""


def _rows(numbers: Mapping[str, Difference]) -> str:
    """How many rows of the new run a slice has."""
    counted = numbers.get("num_samples")
    return "" if counted is None or counted.new is None else f"{counted.new:,.0f}"


def _foot(made: Comparison) -> Iterator[str]:
    for line in made.alone:
        yield f"{_text(line, 200)}, which is left out."
        yield ""
    config = made.new.config
    yield (
        f"<sub>Difference: new minus base, in points of 100. ▲▼: its 95 % interval (paired bootstrap over questions, "
        f"{config.replicates} replicates) leaves out 0. Judge: {_text(made.judge, 120)}; mode: {config.compat}. "
        f"All numbers: {_text(made.where, 300)}</sub>"
    )


def _who(pair: Pair) -> str:
    if pair.base.who == pair.new.who:
        return f"model {_name(pair.new.model)}, prompt {_name(pair.new.prompt)}"
    old, new = (f"{_name(group.model)} with {_name(group.prompt)}" for group in pair)
    return f"{new} against {old}"


def _where(loss: Loss) -> str:
    column, value = loss.difference.slice
    return f" of {_name(loss.pair.new.dataset)}" + (f", {_name(column)} {_name(value)}" if column else "")


def _rank(each: Difference | None) -> float:
    return float("inf") if each is None or each.difference is None else each.difference


def _sliced(each: Difference | None) -> str:
    if each is None or each.difference is None:
        return "–"
    return f"{_change(each)} ({_interval(each)})" if each.low is not None else _change(each)


def _change(each: Difference) -> str:
    if each.difference is None:
        return "–"
    if each.unchanged:
        return "unchanged"
    sure = "" if each.low is None or each.high is None else " ▲" if each.low > 0 else " ▼" if each.high < 0 else ""
    return f"{each.difference:+.2f}{sure}"


def _interval(each: Difference) -> str:
    return "" if each.low is None or each.high is None else f"{each.low:+.1f} to {each.high:+.1f}"


def _number(value: float | None) -> str:
    return "n.a." if value is None else f"{value:.2f}"


def _name(text: str) -> str:
    return _text(text, _NAME)


def _text(text: str, most: int) -> str:
    """Text in which nothing is markup, a mention or a link, in one line and at most so many characters."""
    line = " ".join(text.split())
    cut = line if len(line) <= most else f"{line[: most - 1]}…"
    return re.sub(r"[^\w\s.,:;%()+/=-]|[_]|(?<=:)/(?=/)|(?<=w)\.", lambda found: f"&#{ord(found[0])};", cut)
