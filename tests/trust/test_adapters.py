"""LoRA adapters: what is taken, what is refused, and that the merged model is what PEFT makes of it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.fake_hub import FakeHub, Repo, use
from trust import adapters, models
from trust.ask.endpoint import EndpointConfig
from trust.ask.engine import EngineConfig
from trust.errors import ConfigError, PreflightError
from trust.models import ModelConfig
from trust.storage import Storage

SETTINGS: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
A, B = (f"base_model.model.model.q_proj.lora_{which}.weight" for which in "AB")
WEIGHT = "model.q_proj.weight"

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUST_CACHE", str(tmp_path / "cache"))


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model of two files of weights, as far as merging looks at it."""
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"vocab_size": 10}))
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0}}, "added_tokens": []}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "of the base"}))
    (folder / "optimizer.pt").write_bytes(b"pickled")
    save_file({WEIGHT: numbers(6, 4), "model.norm.weight": numbers(4)}, folder / "model-00001-of-00002.safetensors")
    save_file({"lm_head.weight": numbers(10, 4)}, folder / "model-00002-of-00002.safetensors")
    return folder


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    folder = tmp_path / "tuned"
    folder.mkdir()
    change(folder)
    save_file({A: numbers(2, 4, seed=1), B: numbers(6, 2, seed=2)}, folder / "adapter_model.safetensors")
    return folder


def change(adapter: Path, **settings: object) -> None:
    (adapter / "adapter_config.json").write_text(json.dumps(SETTINGS | settings))


def model(base: Path | str, adapter: Path | str, **options: Any) -> ModelConfig:
    return ModelConfig(path=str(base), adapter=str(adapter), **options)


def weight(folder: str | Path) -> np.ndarray:
    return load_file(Path(folder) / "model-00001-of-00002.safetensors")[WEIGHT]


def test_the_copy_is_the_base_with_the_product_added(base: Path, adapter: Path) -> None:
    config = model(base, adapter)
    assert adapters.preflight(config) is None
    merged = Path(adapters.fetch(config))
    product = numbers(6, 2, seed=2) @ numbers(2, 4, seed=1)
    np.testing.assert_allclose(weight(merged), weight(base) + 2 * product, rtol=1e-6)
    assert {file.name for file in merged.iterdir()} == {file.name for file in base.iterdir()} - {"optimizer.pt"} | {
        "chat_template.jinja"
    }
    untouched = "model-00002-of-00002.safetensors"
    assert (merged / untouched).read_bytes() == (base / untouched).read_bytes()
    models.preflight(str(merged), chat=True)
    assert adapters.fetch(config) == str(merged)
    assert adapters.fetch(ModelConfig(path=str(base))) == str(base)
    change(adapter, lora_alpha=8)
    other = adapters.fetch(config)
    assert other != str(merged)
    np.testing.assert_allclose(weight(other), weight(base) + 4 * product, rtol=1e-6)


def test_the_rank_stabilised_and_the_transposed(base: Path, adapter: Path) -> None:
    change(adapter, use_rslora=True, alpha_pattern={"q_proj": 8})
    product = numbers(6, 2, seed=2) @ numbers(2, 4, seed=1)
    np.testing.assert_allclose(
        weight(adapters.fetch(model(base, adapter))), weight(base) + 8 / 2**0.5 * product, rtol=1e-5
    )
    change(adapter, fan_in_fan_out=True)
    with pytest.raises(PreflightError, match=r"shape \(4, 6\), but that has \(6, 4\)"):
        adapters.preflight(model(base, adapter))
    save_file({WEIGHT: numbers(4, 6)}, base / "model-00001-of-00002.safetensors")
    np.testing.assert_allclose(weight(adapters.fetch(model(base, adapter))), weight(base) + 2 * product.T, rtol=1e-5)


@pytest.mark.parametrize("half", [False, True])
def test_it_is_what_peft_makes_of_it(tmp_path: Path, half: bool) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    plain = LlamaForCausalLM(LlamaConfig(vocab_size=50, **size)).to(torch.bfloat16 if half else torch.float32)
    plain.save_pretrained(tmp_path / "base", max_shard_size="20KB")
    (tmp_path / "base" / "tokenizer.json").write_text("{}")
    options = LoraConfig(
        r=4,
        lora_alpha=8,
        target_modules="all-linear",
        rank_pattern={"q_proj": 6, "layers.1.mlp.down_proj": 2},
        alpha_pattern={"v_proj": 3, "0.self_attn.k_proj": 20},
        use_rslora=half,
    )
    tuned = get_peft_model(plain, options)
    for name, parameter in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    tuned.save_pretrained(tmp_path / "tuned")

    config = model(tmp_path / "base", tmp_path / "tuned")
    adapters.preflight(config)
    ours = LlamaForCausalLM.from_pretrained(adapters.fetch(config), dtype="auto")
    theirs = tuned.merge_and_unload()
    for (name, mine), other in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert mine.dtype == other.dtype
        torch.testing.assert_close(mine, other, rtol=2**-7 if half else 1e-6, atol=1e-6, msg=name)
    changed = model(tmp_path / "base", tmp_path / "tuned")
    original = LlamaForCausalLM.from_pretrained(changed.path, dtype="auto")
    moved = ours.model.layers[0].self_attn.q_proj.weight - original.model.layers[0].self_attn.q_proj.weight
    assert moved.abs().max() > 0.1


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"use_dora": True}, "has DoRA, which is not supported: merge it with PEFT"),
            ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
            ({"bias": "all"}, r"biases \(bias=all\)"),
            ({"lora_bias": True}, "lora_bias"),
            ({"init_lora_weights": "pissa"}, "init_lora_weights=pissa"),
            ({"trainable_token_indices": [3]}, "trainable_token_indices"),
            ({"target_parameters": ["experts.gate_up_proj"]}, "target_parameters"),
            ({"peft_type": "IA3"}, "of the kind IA3; only LORA"),
            ({"r": 0}, "lacks r, lora_alpha or target_modules"),
            ({"lora_alpha": "x"}, r"adapter_config\.json cannot be read"),
        ],
    )
    def test_what_is_more_than_a_product(self, base: Path, adapter: Path, settings: dict[str, Any], said: str) -> None:
        change(adapter, **settings)
        for check in (adapters.preflight, adapters.fetch):
            with pytest.raises(PreflightError, match=said):
                check(model(base, adapter))

    def test_files_that_are_missing(self, base: Path, adapter: Path) -> None:
        for place, said in (("/nowhere", "no such folder"), (base, "whole model: give it as model.path")):
            with pytest.raises(PreflightError, match=said):
                adapters.preflight(model(base, place))
        weights = adapter / "adapter_model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        with pytest.raises(PreflightError, match=r"adapter_model\.safetensors: cut short"):
            adapters.preflight(model(base, adapter))
        weights.rename(adapter / "adapter_model.bin")
        for check in (adapters.preflight, adapters.fetch):
            with pytest.raises(PreflightError, match="pickled weights are not loaded"):
                check(model(base, adapter))

    @pytest.mark.parametrize(
        ("tensors", "said"),
        [
            ({A: numbers(2, 4)}, "the LoRA of model.q_proj is not whole"),
            ({A: numbers(2, 4), B: numbers(6, 3)}, "is not whole"),
            (
                {A: numbers(2, 5), B: numbers(6, 2)},
                r"it changes model\.q_proj of shape \(6, 5\), but that has \(6, 4\)",
            ),
            ({A.replace("q_p", "k_p"): numbers(2, 4), B.replace("q_p", "k_p"): numbers(6, 2)}, "no weights of"),
            ({"base_model.model.lm_head.weight": numbers(10, 4)}, r"has base_model\.model\.lm_head\.weight of shape"),
            ({}, "its weights are empty"),
        ],
    )
    def test_weights_that_do_not_fit(self, base: Path, adapter: Path, tensors: dict[str, Any], said: str) -> None:
        save_file(tensors, adapter / "adapter_model.safetensors")
        for check in (adapters.preflight, adapters.fetch):
            with pytest.raises(PreflightError, match=said):
                check(model(base, adapter))

    def test_a_base_with_quantised_weights(self, base: Path, adapter: Path) -> None:
        save_file({WEIGHT: np.ones((6, 4), np.int8)}, base / "model-00001-of-00002.safetensors")
        with pytest.raises(PreflightError, match=r"quantised \(I8\)"):
            adapters.preflight(model(base, adapter))

    def test_an_output_layer_that_is_the_embeddings(self, base: Path, adapter: Path) -> None:
        (base / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
        names = ("base_model.model.lm_head.lora_A.weight", "base_model.model.lm_head.lora_B.weight")
        save_file(dict(zip(names, (numbers(2, 4), numbers(10, 2)), strict=True)), adapter / "adapter_model.safetensors")
        with pytest.raises(PreflightError, match=r"changes lm_head, which .* is one with the embeddings"):
            adapters.fetch(model(base, adapter))

    def test_no_room_for_a_copy(self, base: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = shutil.disk_usage("/")
        monkeypatch.setattr("trust.cache.shutil.disk_usage", lambda _: usage._replace(free=100))
        with pytest.raises(PreflightError, match=r"base\+tuned: .* GB are to be written.*set TRUST_CACHE"):
            adapters.fetch(model(base, adapter))

    def test_where_it_cannot_be_put(self, adapter: Path) -> None:
        with pytest.raises(ConfigError, match=r"an endpoint serves an adapter under a name of its own"):
            EndpointConfig(base_url="http://h/v1").preflight(model("served", adapter), Storage(), True, {})
        with pytest.raises(ConfigError, match=r"model\.adapter_revision=v1: of which adapter\?"):
            ModelConfig(path="m/m", adapter_revision="v1")
        with pytest.raises(PreflightError, match="only an adapter on the hub has revisions"):
            adapters.preflight(model("m/m", adapter, adapter_revision="v1"))


class TestTokenizers:
    def test_its_own_come_with_it(self, base: Path, adapter: Path) -> None:
        (adapter / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"b": 9}}}))
        merged = Path(adapters.fetch(model(base, adapter)))
        assert (merged / "tokenizer.json").read_text() == (adapter / "tokenizer.json").read_text()
        assert not (merged / "tokenizer_config.json").exists()
        assert (merged / "chat_template.jinja").read_text() == "of the base"
        (adapter / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {}}, "added_tokens": [{"id": 10}]}))
        with pytest.raises(PreflightError, match="has a token 10, but the base has embeddings of 10"):
            adapters.fetch(model(base, adapter))

    def test_its_own_chat_template_comes_alone_too(self, base: Path, adapter: Path) -> None:
        (base / "tokenizer_config.json").write_text("{}")
        engine, config = EngineConfig(device="cpu"), model(base, adapter)
        with pytest.raises(PreflightError, match="no chat template"):
            engine.preflight(config, Storage(), True, {})
        (adapter / "chat_template.jinja").write_text("of the adapter")
        engine.preflight(config, Storage(), True, {})
        merged = Path(adapters.fetch(config))
        assert (merged / "chat_template.jinja").read_text() == "of the adapter"
        assert (merged / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()


class TestIdentity:
    def test_the_adapter_is_part_of_it(self, base: Path, adapter: Path, tmp_path: Path) -> None:
        of: Callable[[ModelConfig], dict[str, Any]] = EngineConfig(device="cpu").identity
        plain, tuned = of(ModelConfig(path=str(base))), of(model(base, adapter))
        assert "adapter" not in plain
        assert tuned == plain | {"adapter": tuned["adapter"]}
        shutil.copytree(adapter, tmp_path / "copy")
        assert of(model(base, tmp_path / "copy")) == tuned
        change(adapter, lora_alpha=5)
        assert of(model(base, adapter)) != tuned

    def test_names(self) -> None:
        named = {"path": "m/Base", "adapter": "s3://b/run/checkpoint-5/"}
        assert ModelConfig(**named).name == "Base+checkpoint-5"
        assert ModelConfig(**named, base_name="base").name == "base+checkpoint-5"
        assert ModelConfig(**named, name="mine", base_name="base").name == "mine"

    def test_another_base_is_said(self, base: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[str] = []
        monkeypatch.setattr(adapters.log, "warning", lambda message, *values: told.append(message % values))
        for name in ("Org/base", "Org/Other-8B"):
            change(adapter, base_model_name_or_path=name)
            adapters.preflight(model(base, adapter))
        assert len(told) == 1
        assert "was trained on Org/Other-8B" in told[0]


class TestElsewhere:
    def test_on_s3(self, s3: str, base: Path, adapter: Path) -> None:
        for folder in (base, adapter):
            for file in folder.iterdir():
                Storage().write_bytes(f"{s3}/{folder.name}/{file.name}", file.read_bytes())
        there = model(f"{s3}/base", f"{s3}/tuned")
        adapters.preflight(there)
        np.testing.assert_array_equal(weight(adapters.fetch(there)), weight(adapters.fetch(model(base, adapter))))
        engine = EngineConfig(device="cpu")
        assert engine.identity(there) == engine.identity(model(base, adapter))

    def test_on_the_hub(self, base: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with FakeHub() as hub:
            use(monkeypatch, hub.url, tmp_path / "hf")
            hub.repos |= {"Org/Tuned": Repo(), "Org/Base": Repo()}
            commit = hub.repos["Org/Tuned"].commit({file.name: file.read_bytes() for file in adapter.iterdir()})
            hub.repos["Org/Base"].commit({file.name: file.read_bytes() for file in base.iterdir()})
            config = model("Org/Base", "Org/Tuned")
            EngineConfig(device="cpu").preflight(config, Storage(), True, {})
            assert (config.adapter_revision, config.name) == (commit, "Base+Tuned")
            merged = weight(adapters.fetch(config))
            np.testing.assert_array_equal(merged, weight(adapters.fetch(model(base, adapter))))
            hub.repos["Org/Tuned"].gated = True
            hub.repos["Org/Tuned"].commit({"adapter_config.json": b"{}", "adapter_model.safetensors": b""})
            with pytest.raises(PreflightError, match="Org/Tuned: is gated"):
                adapters.preflight(model("Org/Base", "Org/Tuned"))
