"""What is at hand and what is not, without loading anything."""

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.trust.test_models import write_weights
from trust.config import load
from trust.errors import ConfigError, PreflightError
from trust.reproduce import ReproduceConfig, plan
from trust.reproduce.plan import Lacking

ROW = {"question": "Who?", "answers": [["Ada"]], "docs": [{"text": "Ada.", "answers_found": [1]}]}


@pytest.fixture(autouse=True)
def _own_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    plan._missing_of_hub.cache_clear()


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "asqa.json").write_text(json.dumps([ROW]))
    return f"data.asqa={tmp_path}/asqa.json"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model")


def write_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "x"}))
    write_weights(folder, 1)
    return folder


def config(*words: str) -> ReproduceConfig:
    common = ["table=trust_score_2", "datasets=[asqa]", "compat=strict", "judge/entails=lexical"]
    return load("reproduce", ReproduceConfig, [*common, *words])


def cells(*words: str) -> dict[str, tuple[Lacking, ...]]:
    return {cell.row: cell.lacking for cell in plan.plan(config(*words))}


def test_nothing_is_at_hand() -> None:
    found = cells("judge/entails=t5")
    assert len(found) == 50
    why, remedy = zip(*found["llama_3_8b_icl"], strict=True)
    assert why == (
        "no data",
        "no model: meta-llama/Meta-Llama-3-8B-Instruct is not cached here, and the hub is off (HF_HUB_OFFLINE)",
        "no judge: google/t5_xxl_true_nli_mixture is not cached here, and the hub is off (HF_HUB_OFFLINE)",
    )
    assert remedy == ("data.asqa=FILE", "models.llama_3_8b=FOLDER", "judge.entails.model=FOLDER")
    assert found["llama_3_8b_dpo"][1] == Lacking("no published checkpoint is known", "models.llama_3_8b_dpo=FOLDER")
    for row in ("llama_3_8b_postcite", "llama_3_8b_postattr", "llama_3_8b_front", "llama_2_7b_self_rag"):
        (lacking,) = found[row]
        assert lacking.why.startswith("not what this job does"), row


def test_a_row_is_ready_where_all_is_there(data: str, model: Path) -> None:
    found = cells(data, "rows=[llama_3_8b*]", f"models.llama_3_8b={model}")
    assert found["llama_3_8b_icl"] == ()
    assert [lacking.why for lacking in found["llama_3_8b_dpo"]] == ["no published checkpoint is known"]
    found = cells(data, "rows=[llama_3_8b*]", f"models.llama_3_8b_dpo={model}")
    assert found["llama_3_8b_dpo"] == ()
    assert [lacking.remedy for lacking in found["llama_3_8b_icl"]] == ["models.llama_3_8b=FOLDER"]


def test_a_model_in_the_hubs_cache(data: str, tmp_path: Path) -> None:
    repo = tmp_path / "hub" / "models--Qwen--Qwen2.5-7B-Instruct"
    commit = "a" * 40
    snapshot = write_model(repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    assert cells(data, "rows=[qwen_2_5_7b_icl]") == {"qwen_2_5_7b_icl": ()}
    pinned = f"models.qwen_2_5_7b=Qwen/Qwen2.5-7B-Instruct@{commit}"
    assert cells(data, "rows=[qwen_2_5_7b_icl]", pinned) == {"qwen_2_5_7b_icl": ()}
    assert config(data, pinned).model("qwen_2_5_7b_icl").revision == commit
    plan._missing_of_hub.cache_clear()
    (snapshot / "model.safetensors").unlink()  # as a look at its config alone leaves it
    ((lacking,),) = cells(data, "rows=[qwen_2_5_7b_icl]").values()
    assert "missing: safetensors weights" in lacking.why


def test_what_the_command_line_names_has_to_be_there(data: str, model: Path, tmp_path: Path) -> None:
    row = "rows=[llama_3_8b_icl]"
    with pytest.raises(
        PreflightError, match=r"data\.asqa=.*asqa\.jso: no such file or folder; did you mean .*asqa\.json"
    ):
        cells(row, data.removesuffix("n"))
    with pytest.raises(PreflightError, match=r"models\.llama_3_8b=nowhere/model: nowhere/model is not cached here"):
        cells(row, data, "models.llama_3_8b=nowhere/model")
    (model / "tokenizer_config.json").write_text("{}")
    with pytest.raises(PreflightError, match=r"models\.llama_3_8b=.*: .*no chat template"):
        cells(row, data, f"models.llama_3_8b={model}")
    (model / "chat_template.jinja").write_text("x")
    with pytest.raises(PreflightError, match=r"/nowhere: there is no such folder"):
        cells(row, data, f"models.llama_3_8b={model}", "judge/entails=t5", "judge.entails.model=/nowhere")
    with pytest.raises(PreflightError, match=r"prompt file .*none\.json cannot be read"):
        cells(row, data, f"models.llama_3_8b={model}", f"prompts.asqa={tmp_path}/none.json")


def test_models_behind_an_endpoint(data: str) -> None:
    served = ("table=trust_score_7", "datasets=[expertqa]", "rows=[gpt_4*]", data.replace("data.asqa", "data.expertqa"))
    found = cells(*served)
    assert [each.why for each in found["gpt_4_icl"]] == ["the model's weights are not open"]
    endpoint = ("engine=openai", "engine.base_url=http://localhost:1/v1", "models.gpt_4=gpt-4-0613")
    found = cells(*served, *endpoint)
    assert found["gpt_4_icl"] == ()
    assert found["gpt_4o_icl"] == (Lacking("the endpoint's name for the model is not given", "models.gpt_4o=NAME"),)


def test_words_that_name_nothing() -> None:
    with pytest.raises(ConfigError, match="did you mean llama_3_8b_icl"):
        config("rows=[llama3_8b_icl]")
    with pytest.raises(ConfigError, match="datasets: nothing here is called askqa; did you mean asqa"):
        config("datasets=[askqa]")
    with pytest.raises(ConfigError, match=r"data\.askqa: no table has such a data set; did you mean asqa"):
        config("data.askqa=x")
    with pytest.raises(ConfigError, match=r"models\.llama_3_8: no table has such a model; did you mean llama_3_8b"):
        config("models.llama_3_8=x")
    with pytest.raises(ConfigError, match="judge/entails=none"):
        config("judge/entails=none")
    with pytest.raises(ConfigError, match="none of these rows on eli5"):
        cells("table=trust_score_5", "datasets=[eli5]", "rows=[*_answerable_only]")


def test_each_row_runs_as_its_recipe_says(model: Path) -> None:
    made = config(f"models.llama_3_8b_dpo={model}", "prompts.asqa=own.json")
    baseline, aligned = made.respond("llama_3_8b_icl", "asqa"), made.respond("llama_3_8b_dpo", "asqa")
    assert (baseline.run, aligned.run) == ("paper-llama_3_8b_icl-asqa", "paper-llama_3_8b_dpo-asqa")
    assert (baseline.prompt.shots, baseline.sampling.temperature) == (2, 0.5)
    assert (aligned.prompt.shots, aligned.sampling.temperature) == (0, 0.1)
    for each in (baseline, aligned):
        assert (each.sampling.top_p, each.sampling.max_tokens, each.prompt.docs) == (0.95, 300, 5)
        assert (each.model.max_model_len, each.prompt.file) == (8192, "own.json")
    assert made.prepare("asqa").data.max_docs == 5
    assert made.evaluate("llama_3_8b_icl", "asqa").compat == "strict"
    assert config("rows=[*_icl]").respond("llama_2_7b_icl", "asqa").model.max_model_len is None
    assert load("reproduce", ReproduceConfig, ["table=trust_score_2"]).compat == "upstream"
