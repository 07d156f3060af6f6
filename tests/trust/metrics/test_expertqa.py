"""Forty real cited answers with experts' judgements of each claim: what our verdicts say beside theirs.

`python -m tests.trust.metrics.test_expertqa lexical` (or a T5 folder) prints the figures that the README quotes.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from trust.ask.judges import build_entails
from trust.ask.runner import Ledger, Runner
from trust.metrics.trust_score import TrustScore, TrustScoreConfig
from trust.prepare.config import DataConfig
from trust.prepare.trust_format import to_responses
from trust.text.citations import remove_upstream
from trust.text.normalize import normalize


def judged(folder: Path, judge: Any) -> tuple[list[tuple[str, float]], int, list[dict[str, float]]]:
    """(expert's word on support, our p_yes) for each cited sentence; sentences of experts not found; values a row."""
    items = json.loads((folder / "expertqa_rand_val_40.json").read_text())
    data = DataConfig(name="expertqa", task="none", language="en", outputs="require")
    metric, runner, ledger = TrustScore(TrustScoreConfig(), "strict"), Runner({"entails": judge}), Ledger()

    async def score(item: dict[str, Any]) -> Any:
        (row,) = to_responses(item, data, "strict")
        return await metric.row(row, runner.ask_for(row["sample_id"], ledger))

    async def all_rows() -> list[Any]:
        return await asyncio.gather(*(score(item) for item in items))

    pairs, lost, values = [], 0, []
    for item, result in zip(items, asyncio.run(all_rows()), strict=True):
        values.append(result.values)
        ours = {normalize(s["hypothesis"], "en"): s for s in result.trace["sentences"]}
        for claim in item["human"]:
            sentence = ours.get(normalize(remove_upstream(claim["claim"]), "en"))
            if sentence is None:
                lost += 1
            elif claim["cited"] and sentence["p_yes"] is not None:
                pairs.append((claim["support"], sentence["p_yes"]))
    return pairs, lost, values


def auroc(pairs: list[tuple[str, float]]) -> float:
    """Chance that a claim with complete support scores above one with less, ties counted half."""
    yes = [score for support, score in pairs if support == "Complete"]
    no = [score for support, score in pairs if support in ("Partial", "Incomplete", "Missing")]
    return sum((a > b) + (a == b) / 2 for a in yes for b in no) / (len(yes) * len(no))


def test_real_answers_are_scored_and_word_recall_agrees_with_experts_above_chance(shared: Path) -> None:
    pairs, lost, values = judged(shared / "data" / "rag", build_entails({"backend": "lexical"}))
    assert len(values) == 40
    assert sum("citation_recall" in row for row in values) == 40
    assert len(pairs) >= 100
    assert lost <= 15
    assert auroc(pairs) > 0.6


@pytest.mark.slow
def test_the_small_judge_scores_them_too(shared: Path) -> None:
    judge = build_entails({"backend": "t5", "model": str(shared / "models" / "tiny_true_nli"), "threads": 2})
    pairs, _, _ = judged(shared / "data" / "rag", judge)
    assert 0.4 < auroc(pairs) < 1, "a fixture for exactness, not a good judge"


if __name__ == "__main__":
    name = sys.argv[1]
    chosen = {"backend": "lexical"} if name == "lexical" else {"backend": "t5", "model": name}
    found, missing, rows = judged(
        Path(__file__).resolve().parents[4] / "shared" / "data" / "rag", build_entails(chosen)
    )
    print(f"{len(rows)} answers, {len(found)} cited claims matched, {missing} not matched")
    print(f"experts: {dict(Counter(support for support, _ in found))}")
    for word in ("Complete", "Partial", "Incomplete", "Missing"):
        scores = [score for support, score in found if support == word]
        if scores:
            print(f"  {word}: mean score {sum(scores) / len(scores):.3f} over {len(scores)}")
    print(f"AUROC of complete against the rest: {auroc(found):.3f}")
    for key in ("citation_recall", "citation_precision"):
        kept = [row[key] for row in rows if key in row]
        print(f"{key}: {100 * sum(kept) / len(kept):.1f} over {len(kept)} answers")
