"""Agreement of judges out of the sums of a run."""

import json

import numpy as np
import pytest

from trust import stats
from trust.agreement import agreement
from trust.metrics.ratios import BIG
from trust.runs import halves, joined
from trust.sums import name_of


def sums(cells: list[list[float]], questions: list[str]) -> np.ndarray:
    """As a run holds them: who said yes (both, first, second, neither) a question, added up for 1,000 replicates."""
    terms = np.array([[cell * BIG for cell in row] + [1.0] for row in cells])
    return joined(halves(stats.sum_terms(terms, stats.question_weights(questions, 1000))))


def test_kappa_of_a_table() -> None:
    rows = [[1, 0, 0, 0]] * 20 + [[0, 1, 0, 0]] * 5 + [[0, 0, 1, 0]] * 10 + [[0, 0, 0, 1]] * 15
    found = agreement({name_of(("a", "b", "citation", "ja")): sums(rows, [str(n) for n in range(50)])})
    assert {(row["role"], row["language"]) for row in found} == {
        (role, language) for role in ("citation", "all") for language in ("ja", "all")
    }
    for row in found:
        assert (row["pairs"], row["agreement"], row["kappa"]) == (50, pytest.approx(70), pytest.approx(0.4))
        assert row["kappa_low"] < 0.4 < row["kappa_high"]


def test_a_role_of_one_question_has_no_interval() -> None:
    found = agreement({name_of(("a", "b", "citation", "ja")): sums([[1, 0, 1, 0]], ["q"])})
    assert [(row["agreement"], row["agreement_low"], row["kappa_low"]) for row in found] == [(50, None, None)] * 4
    json.dumps(found, allow_nan=False)
