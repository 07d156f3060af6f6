"""What the three kinds of answer correctness share: calibration by what the documents support, and F1_AC."""

from dataclasses import dataclass

from trust.compat import Choices
from trust.metrics import Stat
from trust.metrics.ratios import Sums
from trust.metrics.response import Reading

ROWS = ("ac_rows", "ac_answered_rows", "ac_known_answered_rows", "ac_answerable_rows", "ac_both_rows")
TERMS = (*ROWS, "ac_all", "ac_answered", "ac_calib_answered", "ac_calib_answerable", "ac_given", "ac_given_supported")


@dataclass(frozen=True)
class Views:
    """Which averages a response takes part in.

    Attributes:
        rows: whether it has gold answers at all.
        answered: whether it is an answer (and has gold answers).
        calibrated: whether it is an answer, and what the documents support is known.
        answerable: whether the documents support a gold answer that can be matched.
        earns: whether it can earn credit: an answer to an answerable question.
    """

    rows: bool
    answered: bool
    calibrated: bool
    answerable: bool
    earns: bool

    @property
    def terms(self) -> dict[str, float]:
        """Row counts of the averages."""
        flags = (self.rows, self.answered, self.calibrated, self.answerable, self.calibrated and self.answerable)
        return dict(zip(ROWS, map(float, flags), strict=True))


def views(reading: Reading) -> Views:
    """The averages that a response takes part in; none where it has no gold answers."""
    has = bool(reading.answers)
    supported = has and reading.supported is not None and any(reading.supported)
    # A question that is answerable only by gold answers nothing can match (their aliases are empty) says nothing here.
    known = has and reading.answerable is not None and (supported or not reading.answerable)
    answered = has and reading.response == "answered"
    return Views(has, answered, answered and known, supported, supported and reading.counts)


def share(reading: Reading, found: list[bool]) -> tuple[dict[str, float], dict[str, float]]:
    """Terms and values where correctness is the share of gold answers found (tasks em and cm), eqs. 8-9.

    Args:
        found: per gold answer, whether the response holds it.
    """
    view = views(reading)
    if not view.rows:
        return {}, {}
    plain = sum(found) / len(found)
    terms = view.terms | {"ac_all": plain, "ac_answered": plain * view.answered}
    values = {}
    if view.calibrated or view.answerable:
        supported = reading.supported or []
        both = sum(hit and support for hit, support in zip(found, supported, strict=True)) if view.earns else 0
        calibrated = both / sum(supported) if view.earns else 0.0
        terms |= {
            "ac_calib_answered": calibrated * view.calibrated,
            "ac_calib_answerable": calibrated * view.answerable,
            "ac_given": plain * view.calibrated,
            "ac_given_supported": both / len(found) * view.calibrated,
        }
        if view.answerable:
            values["answer_correctness"] = calibrated
    return terms, values


def union_rows(sums: Sums) -> int:
    """Rows that are answered or answerable: what F1_AC is over."""
    return sums.rows("ac_known_answered_rows") + sums.rows("ac_answerable_rows") - sums.rows("ac_both_rows")


def final(sums: Sums, choices: Choices, keys: tuple[str, ...]) -> dict[str, Stat]:
    """Eqs. 9-10: P_AC over answered, R_AC over answerable questions, and their harmonic mean F1_AC.

    Args:
        keys: published names of: all, answered, calibrated answered, calibrated answerable, F1, parametric; in that
            order of meaning (their order in the result is the published one of the task).
    """
    regular, answered, calib_answered, calib_answerable, f1, parametric = keys
    precision = sums.mean("ac_calib_answered", "ac_known_answered_rows")
    recall = sums.mean("ac_calib_answerable", "ac_answerable_rows")
    given = sums.percent(sums["ac_given"] - sums["ac_given_supported"], sums["ac_known_answered_rows"])
    return {
        regular: sums.mean("ac_all", "ac_rows"),
        answered: sums.mean("ac_answered", "ac_answered_rows"),
        calib_answered: precision,
        calib_answerable: recall,
        f1: Stat(sums.f1(precision.value, recall.value), union_rows(sums)),
        parametric: Stat(given, sums.rows("ac_known_answered_rows")),
    }
