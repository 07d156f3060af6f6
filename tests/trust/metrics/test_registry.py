"""All metrics together: their numbers have names of their own, and what two of them publish alike has one meaning."""

import itertools

import pytest

from trust.errors import ConfigError
from trust.metrics import METRICS, build, names, published

OPTIONS = {
    "geval": {"aspects": ["fluency"]},
    "gptscore": {"aspects": ["fluency"]},
    "rules": {"rules": {"r": {"contains": "x"}}},
    "code": {"functions": {"f": "tests.trust.metrics.golden:all_words"}, "modules": ["tests"]},
}


def test_no_two_metrics_share_a_number_but_those_that_mean_the_same() -> None:
    made = {name: published(build({name: OPTIONS.get(name, {})}, "strict")[0]) for name in METRICS}
    assert all(made.values())
    shared = {(one, other) for one, other in itertools.combinations(sorted(made), 2) if made[one] & made[other]}
    assert shared == {("no_gold", "trust_score")}


def test_those_two_want_equal_options() -> None:
    build({"trust_score": {"at_most_citations": 2}, "no_gold": {"at_most_citations": 2}}, "strict")
    with pytest.raises(ConfigError, match=r"at_most_citations and .* differ"):
        build({"trust_score": {"at_most_citations": 2}, "no_gold": {}}, "strict")


def test_a_misspelt_metric() -> None:
    with pytest.raises(ConfigError, match="did you mean nomiracl"):
        build({"nomirakl": {}}, "strict")
    assert names() == sorted(METRICS)
