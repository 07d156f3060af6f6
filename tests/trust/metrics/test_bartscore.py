"""BARTScore: which text is scored behind which, and what becomes of several references."""

from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.likelihoods import Likely
from tests.trust.metrics.writers import run
from trust.errors import ConfigError
from trust.metrics import RowScore
from trust.metrics.bartscore import VARIANTS, Bartscore, BartscoreConfig

TABLE = {("src", "out"): -1.0, ("one", "out"): -2.0, ("out", "one"): -3.0, ("two", "out"): -6.0, ("out", "two"): -1.0}


def score(row: dict[str, Any], **options: Any) -> RowScore:
    config = BartscoreConfig(**{"variants": list(VARIANTS)} | options)
    (found,) = run(Bartscore(config, "strict"), [{"output": "out"} | row], Likely(lambda *pair: TABLE[pair]))
    return found


FULL = {"context": {"source": "src"}, "references": ["one", "two"]}


@pytest.mark.parametrize(
    ("over", "expected"),
    [("mean", (-1.0, -4.0, -2.0, -3.0)), ("max", (-1.0, -2.0, -1.0, -2.5))],  # F of each: -2.5 and -3.5
)
def test_all_variants(over: str, expected: tuple[float, ...]) -> None:
    found = score(FULL, over=over).values
    assert [found[f"bartscore_{variant}"] for variant in VARIANTS] == pytest.approx(expected)


def test_a_variant_whose_texts_are_missing_does_not_apply() -> None:
    assert set(score({"context": {"source": "src"}}).values) == {"bartscore_faithfulness"}
    assert set(score({"references": ["one"]}).values) == {"bartscore_precision", "bartscore_recall", "bartscore_f"}
    assert score({"docs": [{"title": "", "text": "src"}]}).values == {"bartscore_faithfulness": -1.0}
    assert score({"answers": [["one"]]}, against="answers").values["bartscore_precision"] == -2.0
    nothing, empty = score({}), score(FULL | {"output": " "})
    assert (nothing.status, nothing.reason) == ("na", "nothing_to_compare")
    assert (empty.status, empty.reason) == ("na", "empty_output")


def test_only_what_is_wanted_is_asked() -> None:
    ask = Likely(lambda *pair: TABLE[pair])
    run(Bartscore(BartscoreConfig(["recall"]), "strict"), [{"output": "out"} | FULL], ask)
    assert ask.asked == [("out", "one"), ("out", "two")]


def test_means_over_rows_keep_their_sign() -> None:
    metric = Bartscore(BartscoreConfig(["precision"]), "strict")
    stat = metric.final({"rows_precision": np.array([4.0]), "score_precision": np.array([-10.0])}, "none")
    assert stat["bartscore_precision"].value[0] == pytest.approx(-2.5)
    assert stat["bartscore_precision"].bounds is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"variants": []}, "is empty"),
        ({"variants": ["recal"]}, "did you mean recall"),
        ({"over": "min"}, "over"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Bartscore(BartscoreConfig(**options), "strict")
