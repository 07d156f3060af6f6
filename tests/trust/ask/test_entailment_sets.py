"""Judges beside people on pairs of premise and hypothesis: WiCE (English claims and evidence) and Korean XNLI.

`python -m tests.trust.ask.test_entailment_sets lexical` (or a T5 folder) prints the figures that the README quotes.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trust.agree.coefficients import auroc
from trust.ask import Verdict
from trust.ask.judges import build_entails

Pairs = list[tuple[dict[str, str], bool]]  # premise and hypothesis, and whether people say that it follows


def wice(folder: Path) -> Pairs:
    """Claims that their evidence supports wholly, or not: in part is not."""
    lines = (folder / "wice_oracle_claim_dev_60.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        ({"premise": "\n".join(row["evidence"]), "hypothesis": row["claim"]}, row["label"] == "supported")
        for row in rows
    ]


def korean_xnli(folder: Path) -> Pairs:
    with (folder / "xnli.dev.ko.first60.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        ({"premise": row["sentence1"], "hypothesis": row["sentence2"]}, row["gold_label"] == "entailment")
        for row in rows
    ]


SETS = {"WiCE, 60 claims": wice, "Korean XNLI, 60 pairs": korean_xnli}


def area(judge: Any, pairs: Pairs) -> tuple[float, float, float]:
    """AUROC of the judge's probability with a 95 % interval (2,000 resamples of the pairs)."""
    answers = judge.answer_batch([pair for pair, _ in pairs])
    assert all(isinstance(answer, Verdict) for answer in answers)
    scores = np.array([answer.p_yes for answer in answers])
    labels = np.array([label for _, label in pairs])
    drawn = np.random.default_rng(0).multinomial(len(pairs), np.full(len(pairs), 1 / len(pairs)), size=2000).T
    found = auroc(labels, scores, drawn)
    low, high = np.nanquantile(found[1:], [0.025, 0.975])
    return float(found[0]), float(low), float(high)


@pytest.mark.parametrize("name", SETS)
def test_word_recall_tells_what_follows_above_chance(shared: Path, name: str) -> None:
    pairs = SETS[name](shared / "data/entailment")
    assert len(pairs) == 60
    assert sum(label for _, label in pairs) == 20
    point, low, high = area(build_entails({"backend": "lexical"}), pairs)
    assert low <= point <= high
    assert point > 0.5


if __name__ == "__main__":
    chosen = {"backend": "lexical"} if sys.argv[1] == "lexical" else {"backend": "t5", "model": sys.argv[1]}
    judge = build_entails(chosen)
    folder = Path(__file__).resolve().parents[4] / "shared/data/entailment"
    for name, read in SETS.items():
        print("{}: AUROC {:.2f} [{:.2f}, {:.2f}]".format(name, *area(judge, read(folder))))
