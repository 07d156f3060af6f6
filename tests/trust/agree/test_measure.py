"""Levels by hand: over outputs, within groups, over systems, on pairs, between annotators."""

from typing import Any

import numpy as np
import pytest

from trust.agree.items import Item, Rated
from trust.agree.measure import Row, measure


def item(document: str, system: str, people: Any, metric: float | None, group: str | None = None) -> Item:
    said = people if isinstance(people, list) else [people]
    scores = {} if metric is None else {"m": metric}
    return Item(document, system, group or document, document, {"quality": said}, scores)


def measured(items: list[Item], preferences: bool = False, ties: int = 0) -> dict[tuple[str, str], Row]:
    found = measure(Rated(items, preferences, ties, [], ""), "ordinal", 200)
    return {(row.level, row.statistic): row for row in found}


THREE = [  # of the first document the metric is right, of the second it is the wrong way round but for one pair
    item("d1", "a", 1.0, 0.1),
    item("d1", "b", 2.0, 0.2),
    item("d1", "c", 3.0, 0.9),
    item("d2", "a", 1.0, 0.8),
    item("d2", "b", 2.0, 0.9),
    item("d2", "c", 3.0, 0.1),
    item("d3", "a", 4.0, 0.1),  # people tell nothing apart
    item("d3", "b", 4.0, 0.2),
    item("d3", "c", 4.0, 0.3),
]


def test_within_documents_the_mean_is_over_those_in_which_both_sides_tell_apart() -> None:
    found = measured(THREE)
    row = found["summary", "spearman"]
    assert row.value == pytest.approx((1 + -0.5) / 2)
    assert (row.n, row.questions, row.skipped) == (2, 3, 1)
    assert (row.low, row.high) == (None, None)  # of three documents nothing can be said
    assert found["summary", "kendall_tau_b"].value == pytest.approx((1 - 1 / 3) / 2)


def test_over_systems_means_are_compared() -> None:
    found = measured(THREE)["system", "pearson"]
    people, metric = [2, 8 / 3, 10 / 3], [1 / 3, 1.3 / 3, 1.3 / 3]
    assert found.value == pytest.approx(np.corrcoef(people, metric)[0, 1])
    assert found.n == 3
    # means that are equal but for rounding are ties: b and c, in the metric
    assert measured(THREE)["system", "kendall_tau_b"].value == pytest.approx(2 / 6**0.5)


def test_pairs_are_right_where_the_metric_prefers_what_people_prefer() -> None:
    items = [*THREE, item("d4", "a", 1.0, 0.5), item("d4", "b", 2.0, 0.5)]
    row = measured(items)["pairs", "pairwise_accuracy"]
    # 3 of d1, 1 of d2, half a tie of d4
    assert row.value == pytest.approx(4.5 / 7)
    assert (row.n, row.skipped, row.ties) == (7, 3, 1)


def test_what_cannot_be_measured_says_why() -> None:
    one_system = measured([item(f"d{n}", "a", float(n), 0.5) for n in range(12)])
    row = one_system["sample", "pearson"]
    assert (row.status, row.value, row.reason) == ("na", None, "constant")
    assert row.detail == "the metric gives all of them 0.5"
    assert one_system["summary", "pearson"].reason == "no_groups"
    assert one_system["system", "pearson"].reason == "too_few"
    assert one_system["pairs", "pairwise_accuracy"].reason == "too_few"
    few = measured([item("d1", "a", 1.0, 1.0), item("d2", "a", 2.0, 2.0)])["sample", "spearman"]
    assert (few.status, few.reason, few.n) == ("na", "too_few", 2)


def test_an_interval_is_over_documents_and_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    items = []
    for document in range(60):
        for system in "abcd":
            quality = float(rng.normal())
            items.append(item(f"d{document}", system, quality, quality + float(rng.normal())))
    found = measured(items)
    for level, statistic in (("sample", "pearson"), ("summary", "pearson"), ("pairs", "pairwise_accuracy")):
        row = found[level, statistic]
        assert row.low is not None
        assert row.high is not None
        assert row.value is not None
        assert row.low < row.value < row.high
        assert row.high - row.low < 0.25
    assert measured(items) == found
    assert measured(items[::-1])["sample", "pearson"].low == pytest.approx(found["sample", "pearson"].low)


def test_repeated_documents_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    pairs = rng.normal(size=(40, 2))
    apart = [item(f"d{n}-{m}", "a", x, x + y) for n, (x, y) in enumerate(pairs) for m in range(4)]
    together = [item(f"d{n}", f"s{m}", x, x + y) for n, (x, y) in enumerate(pairs) for m in range(4)]
    widths = [measured(items)["sample", "pearson"] for items in (apart, together)]
    assert widths[0].value == pytest.approx(widths[1].value)
    assert widths[1].high - widths[1].low > 1.5 * (widths[0].high - widths[0].low)  # type: ignore[operator]


def test_labels_give_an_auroc_and_ratings_do_not() -> None:
    labels = [item(f"d{n}", "a", float(n % 2), n % 2 + n / 100) for n in range(20)]
    found = measured(labels)["labels", "auroc"]
    assert (found.value, found.n) == (1, 20)
    assert found.low is not None
    assert found.low < 1  # twenty of twenty are no certainty
    assert ("labels", "auroc") not in measured(THREE)


def test_preferences_are_no_ratings() -> None:
    items = [
        each
        for n in range(20)
        for each in (item(f"q{n}", "x", 1.0, n / 20, f"row{n}"), item(f"q{n}", "y", 0.0, 0.5, f"row{n}"))
    ]
    found = measured(items, preferences=True, ties=2)
    assert [*found] == [("pairs", "pairwise_accuracy")]
    row = found["pairs", "pairwise_accuracy"]
    assert row.value == pytest.approx(9.5 / 20)
    assert (row.n, row.skipped, row.ties, row.questions) == (20, 2, 1, 20)


def test_annotators_are_compared_where_there_are_several() -> None:
    items = [item(f"d{n}", "a", [float(n % 5), float(n % 5 + (n % 7 == 0))], None) for n in range(30)]
    found = measured(items)
    assert [*found] == [("annotators", "krippendorff_alpha")]
    row = found["annotators", "krippendorff_alpha"]
    assert row.value is not None
    assert 0.9 < row.value < 1
    assert row.n == 30
    assert not measured([item("d", "a", 1.0, None)])
    agreed = measured([item(f"d{n}", "a", [3.0, 3.0], None) for n in range(12)])["annotators", "krippendorff_alpha"]
    assert (agreed.status, agreed.reason) == ("na", "constant")
