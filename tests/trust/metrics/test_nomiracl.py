"""NoMIRACL's rates: the three denominators by hand, a model that is always wrong, means and ranks over languages."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.golden import Replay, run
from trust.errors import RowError
from trust.metrics import RowScore
from trust.metrics.nomiracl import NoMiracl, NoMiraclConfig, corpus_sizes, unverified_sizes
from trust.text.languages import SUPPORTED
from trust.text.verdicts import explicit_verdict, published_verdict

YES, UNKNOWN, NEITHER = "Yes, answer is present", "I don't know", "Paris"


def metric(compat: str = "strict") -> NoMiracl:
    return NoMiracl(NoMiraclConfig(), compat)


def row(output: str | None, subset: str = "non_relevant", language: str = "en") -> dict[str, Any]:
    return {"sample_id": "s", "task": "none", "language": language, "output": output, "meta": {"subset": subset}}


def sums(outputs: list[tuple[str, str]], compat: str = "strict") -> dict[str, np.ndarray]:
    made = metric(compat)
    scores = run(made, [row(output, subset) for output, subset in outputs], Replay(lambda *_: 1))
    return {term: np.array([sum(score.terms.get(term, 0.0) for score in scores)]) for term in made.terms}


def values(outputs: list[tuple[str, str]]) -> dict[str, float]:
    return {key: float(stat.value[0]) for key, stat in metric().final(sums(outputs), "none").items()}


def test_three_denominators() -> None:
    found = values([(YES, "non_relevant")] * 3 + [(UNKNOWN, "non_relevant")] * 1 + [(NEITHER, "non_relevant")] * 4)
    assert found["hallucination_rate_of_valid"] == 75.0
    assert found["hallucination_rate_of_all"] == 37.5
    assert found["hallucination_rate_invalid_wrong"] == 87.5 == 100 - found["non_relevant_accuracy"]
    assert found["non_relevant_invalid_rate"] == 50.0
    assert np.isnan(found["error_rate_of_all"]), "no row of the other subset: not applicable"
    found = values([(YES, "relevant")] * 1 + [(UNKNOWN, "relevant")] * 3 + [(NEITHER, "relevant")] * 4)
    assert (found["error_rate_of_valid"], found["error_rate_of_all"]) == (75.0, 37.5)
    assert found["num_relevant_i_dont_know"] == 3


def test_never_i_dont_know_is_all_hallucination() -> None:
    found = values([(YES, "non_relevant")] * 3)
    assert {found[f"hallucination_rate_{of}"] for of in ("of_valid", "of_all", "invalid_wrong")} == {100.0}


def test_an_empty_or_missing_output_is_invalid() -> None:
    for output in ("", None):
        score: RowScore = run(metric(), [row(output)], Replay(lambda *_: 1))[0]
        assert score.values["invalid"] == 1.0


def test_a_row_without_subset_fails() -> None:
    bad = row(YES) | {"meta": {}}
    with pytest.raises(RowError, match="relevant, non_relevant") as caught:
        run(metric(), [bad], Replay(lambda *_: 1))
    assert caught.value.reason == "no_subset"


def test_over_languages_each_counts_alike_and_rates_are_ranked_by_corpus_size() -> None:
    # Hallucination falls with the size of the corpus: yo < sw < te < en.
    shares = {"en": 1, "te": 2, "sw": 3, "yo": 4}
    by_language = {
        language: sums([(YES, "non_relevant")] * wrong + [(UNKNOWN, "non_relevant")] * (10 - wrong))
        for language, wrong in shares.items()
    }
    by_language["en"] = {term: 100 * array for term, array in by_language["en"].items()}
    found = metric().over_languages(by_language)
    assert float(found["macro_hallucination_rate_of_all"].value[0]) == pytest.approx(25.0)
    assert float(found["hallucination_rate_of_all_corpus_size_rho"].value[0]) == pytest.approx(-1.0)
    assert found["hallucination_rate_of_all_corpus_size_rho"].n == 4
    assert "macro_error_rate_of_all" not in found
    few = metric().over_languages({name: by_language[name] for name in ("en", "te", "sw")})
    assert not any(key.endswith("_rho") for key in few)


def test_sizes_are_known_for_all_languages_and_two_are_marked() -> None:
    assert set(corpus_sizes()) == SUPPORTED
    assert unverified_sizes() == ["de", "yo"]


def test_printed_rank_correlation() -> None:
    """Mistral-7B v0.3, hallucination rates by language as printed (arXiv 2312.11361, Table 3): rho +0.09."""
    order = ["ar", "bn", "de", "en", "es", "fa", "fr", "fi", "hi", "id", "ja", "ko", "ru", "sw", "te", "th", "yo", "zh"]
    printed = "40.0 63.2 38.2 42.8 17.2 52.4 47.6 16.1 39.6 30.8 44.4 28.8 41.6 14.8 74.0 58.8 23.6 45.2"  # vanilla
    by_language = {}
    for language, rate in zip(order, printed.split(), strict=True):
        terms = dict.fromkeys(metric().terms, np.array([0.0]))
        wrong = np.array([float(rate) * 10])
        by_language[language] = terms | {
            "non_relevant_rows": np.array([1000.0]),
            "non_relevant_answer_present": wrong,
            "non_relevant_i_dont_know": 1000 - wrong,
        }
    found = metric().over_languages(by_language)
    assert float(found["hallucination_rate_of_all_corpus_size_rho"].value[0]) == pytest.approx(0.09, abs=0.005)
    assert float(found["macro_hallucination_rate_of_all"].value[0]) == pytest.approx(40.0, abs=0.05)


def released(shared: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Each expected row, with the outputs behind it."""
    folder = shared / "data/nomiracl"
    for expected in csv.DictReader((folder / "expected_first60.csv").open()):
        lines = (folder / f"{expected['subset']}.{expected['language']}.first60.jsonl").read_text().splitlines()
        yield expected, [json.loads(line)["results"][expected["model"]] for line in lines]


def test_released_responses(shared: Path) -> None:
    for expected, outputs in released(shared):
        subset = expected["subset"]
        found = metric("upstream").final(sums([(o, subset) for o in outputs], "upstream"), "none")
        ours = {
            "n_answer_present": found[f"num_{subset}_answer_present"],
            "n_i_dont_know": found[f"num_{subset}_i_dont_know"],
            "n_invalid": found[f"num_{subset}_invalid"],
            "accuracy_pct": found[f"{subset}_accuracy"],
            "error_rate_pct": found[f"{expected['error_kind']}_rate_of_all"],
            "invalid_pct": found[f"{subset}_invalid_rate"],
            "error_rate_valid_only_pct": found[f"{expected['error_kind']}_rate_of_valid"],
        }
        assert {key: float(expected[key]) for key in ours} == {
            key: pytest.approx(float(stat.value[0]), abs=1e-4) for key, stat in ours.items()
        }


def test_how_many_released_responses_the_two_modes_read_differently(shared: Path) -> None:
    """The figure that the README quotes."""
    read = [
        (published_verdict(output).said, explicit_verdict(output, expected["language"]).said)
        for expected, outputs in released(shared)
        for output in outputs
    ]
    assert (len(read), sum(one != other for one, other in read)) == (3960, 115)
