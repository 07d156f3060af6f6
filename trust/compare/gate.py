"""What of a comparison is worse than allowed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trust.compare.config import CompareConfig
from trust.compare.differences import ALL, Difference
from trust.compare.runs import Pair
from trust.config import one_of
from trust.errors import PreflightError


@dataclass(frozen=True)
class Loss:
    """A number that is worse than allowed, in words."""

    pair: Pair
    difference: Difference
    words: str


def losses(found: Mapping[Pair, list[Difference]], config: CompareConfig) -> list[Loss]:
    """The numbers below `fail_below`.

    A number that `new` lost (it is not applicable there, or withheld) is below any limit. One that no question changed
    passes a limit of 0 or less, whichever end of its interval counts.

    Raises:
        ConfigError: no data set has such a number; the nearest is named.
        PreflightError: the limit cannot be applied: `base` has no such number, or there is no interval.
    """
    made = []
    for key, least in config.limits.items():
        one_of("fail_below", key, dict.fromkeys(each.key for all_ in found.values() for each in all_))
        for pair, all_ in found.items():
            for each in all_:
                if each.key == key and (each.slice == ALL or config.fail_slices):
                    words = _loss(pair, each, least, config.fail_on)
                    made += [Loss(pair, each, words)] if words else []
    return made


def _loss(pair: Pair, each: Difference, least: float, fail_on: str) -> str:
    """Why a number fails, in words; empty where it passes."""
    if each.difference is None:
        if each.base is not None and each.new is None:
            return f"{each.base:.2f} in base, {each.note}"
        if each.slice != ALL:
            return ""
        raise PreflightError(f"fail_below: {each.key} of {pair.new.dataset} cannot be compared: {each.note}")
    if each.unchanged and least <= 0:
        return ""
    value = {"difference": each.difference, "low": each.low, "high": each.high}[fail_on]
    if value is None:
        if each.slice != ALL:
            return ""
        raise PreflightError(
            f"fail_below: {each.key} of {pair.new.dataset} has no interval (it rests on {min(each.base_n or 0, each.new_n or 0)} "
            "rows), so only fail_on=difference can be applied"
        )
    end = "" if fail_on == "difference" else f", {fail_on} end {value:+.2f}"
    return f"{each.difference:+.2f}{end}, least allowed {least:+.2f}" if value < least else ""


def describe(lost: Iterable[Loss]) -> str:
    """The losses in one line."""
    return "; ".join(f"{loss.difference.key}{_where(loss)}: {loss.words}" for loss in lost)


def _where(loss: Loss) -> str:
    column, value = loss.difference.slice
    return f" of {loss.pair.new.dataset}" + (f", {column}={value}" if column else "")
