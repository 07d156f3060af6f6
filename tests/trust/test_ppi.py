"""Prediction-powered inference: by hand, by simulation, and at its ends."""

import numpy as np
import pytest

from trust import ppi

SETTINGS = [  # people's rate, judge says yes to a yes, no to a no, labels
    (0.5, 0.8, 0.7, 100),
    (0.5, 0.5, 0.5, 100),
    (0.8, 0.9, 0.8, 100),
    (0.3, 0.85, 0.9, 60),
    (0.9, 0.8, 0.8, 200),
]


def drawn(rng: np.random.Generator, rate: float, yes: float, no: float, labels: int) -> ppi.Corrected:
    people = (rng.random(1000) < rate).astype(float)
    judge = np.where(people == 1, rng.random(1000) < yes, rng.random(1000) > no).astype(float)
    people[labels:] = np.nan  # rows are drawn alike, so the first ones are as random as any
    return ppi.corrected_mean(judge, people)


@pytest.mark.parametrize(("rate", "yes", "no", "labels"), SETTINGS)
def test_intervals_of_rates_hold_what_they_promise_and_are_not_wider(
    rate: float, yes: float, no: float, labels: int
) -> None:
    rng = np.random.default_rng(7)
    made = [drawn(rng, rate, yes, no, labels) for _ in range(2000)]
    covered = np.mean([each.corrected.low <= rate <= each.corrected.high for each in made])
    assert 0.93 <= covered <= 0.97
    alone = np.mean([each.alone.low <= rate <= each.alone.high for each in made])
    assert 0.92 <= alone <= 0.98  # Wilson's own: a count of few labels moves in steps
    assert np.mean([each.corrected.width for each in made]) <= 1.02 * np.mean([each.alone.width for each in made])
    assert np.mean([each.corrected.value for each in made]) == pytest.approx(rate, abs=0.005)


def test_intervals_of_means_hold_what_they_promise_and_are_never_wider() -> None:
    rng = np.random.default_rng(8)
    covered, ratios = [], []
    for _ in range(2000):
        people = rng.normal(0.3, 1, 500)
        judge = 2 * people + rng.normal(1, 1, 500)
        people[40:] = np.nan
        made = ppi.corrected_mean(judge, people)
        covered.append(made.corrected.low <= 0.3 <= made.corrected.high)
        ratios.append(made.corrected.width / made.alone.width)
    assert 0.93 <= np.mean(covered) <= 0.97
    assert max(ratios) <= 1.02
    assert np.mean(ratios) < 0.65


def test_a_judge_without_a_fault_is_trusted_with_care() -> None:
    rng = np.random.default_rng(9)
    made = [drawn(rng, 0.5, 1.0, 1.0, 100) for _ in range(500)]
    assert np.mean([each.corrected.low <= 0.5 <= each.corrected.high for each in made]) >= 0.95
    assert min(each.corrected.width for each in made) > 0.055  # 0.062 is what 1000 labels would give
    assert max(each.corrected.width / each.alone.width for each in made) < 0.5


def test_the_estimate_by_hand() -> None:
    people = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10] + [np.nan] * 10, dtype=float)
    judge = np.array([2 * n for n in range(1, 11)] + [40] * 10, dtype=float)
    made = ppi.corrected_mean(judge, people)
    assert made.tuning == pytest.approx(0.5)
    assert made.judge == pytest.approx((110 + 400) / 20)
    assert made.bias == pytest.approx(11 - 5.5)
    assert made.corrected.value == pytest.approx(0.5 * 25.5 + (5.5 - 0.5 * 11))
    variance = (55 / 6) / 20  # all of people's variance, 9.17, is explained: what is left is that of 20 rows
    assert made.corrected.width == pytest.approx(2 * 2.306004 * variance**0.5, rel=1e-6)
    assert made.alone.width == pytest.approx(2 * 2.262157 * (55 / 6 / 10) ** 0.5, rel=1e-6)


def test_with_all_rows_labelled_or_a_judge_that_says_nothing_it_is_the_labels_mean() -> None:
    people = np.array([0, 1] * 15, dtype=float)
    whole = ppi.corrected_mean(people[::-1].copy(), people)
    assert whole.corrected == whole.alone
    half = 1.959964 / (2 * (30 + 1.959964**2) ** 0.5)  # Wilson's, of one half
    assert (whole.corrected.low, whole.corrected.high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    part = np.concatenate([people, [np.nan] * 30])
    mute = ppi.corrected_mean(np.ones(60), part)
    assert mute.tuning == 0
    assert mute.corrected == mute.alone


def test_labels_that_all_agree_leave_room() -> None:
    people = np.array([1.0] * 20 + [np.nan] * 80)
    made = ppi.corrected_mean(np.ones(100), people)
    assert (made.corrected.value, made.corrected.high) == (1, 1)
    assert made.corrected.low == pytest.approx(20 / (20 + 1.959964**2), abs=1e-6)  # Wilson, 20 of 20


def test_rows_of_one_question_count_as_what_they_are() -> None:
    rng = np.random.default_rng(3)
    people = np.repeat((rng.random(40) < 0.5).astype(float), 5)
    judge = rng.random(200)
    people[100:] = np.nan
    apart = ppi.corrected_mean(judge, people)
    together = ppi.corrected_mean(judge, people, np.repeat(np.arange(40), 5))
    assert together.corrected.value == apart.corrected.value
    assert together.alone.width > 1.7 * apart.alone.width  # sqrt(5) less what Wilson takes off
    agreed = np.array([1.0] * 20 + [np.nan] * 20)
    alike = ppi.corrected_mean(np.ones(40), agreed, np.repeat(np.arange(20), 2))
    assert alike.alone.low == pytest.approx(10 / (10 + 1.959964**2), abs=1e-6)  # as of ten


def test_labels_for_a_width() -> None:
    rng = np.random.default_rng(4)
    people = rng.normal(0, 1, 2000)
    judge = people + rng.normal(0, 0.5, 2000)
    shown = np.where(np.arange(2000) < 100, people, np.nan)
    made = ppi.corrected_mean(judge, shown, width=0.2)
    assert made.needed is not None
    assert made.needed_alone is not None
    assert made.needed < made.needed_alone / 2
    again = ppi.corrected_mean(judge, np.where(np.arange(2000) < made.needed, people, np.nan))
    assert again.corrected.width == pytest.approx(0.2, rel=0.15)
    none = ppi.corrected_mean(judge, shown, width=0.01)
    assert (none.needed, none.needed_alone) == (None, None)


@pytest.mark.parametrize("judge", [np.ones(9), np.array([np.nan] * 20)])
def test_what_cannot_be_used_is_refused(judge: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"labels|finite"):
        ppi.corrected_mean(judge, np.ones(len(judge)))
