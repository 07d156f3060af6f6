"""Models of a hub, against a small one on this machine."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from tests.fake_hub import TOKEN, FakeHub, Repo, use
from trust import hub, models
from trust.ask.engine import EngineConfig
from trust.ask.modules import read_modules
from trust.ask.nli import NliConfig
from trust.ask.t5 import T5Config
from trust.errors import PreflightError
from trust.models import ModelConfig
from trust.storage import Storage

NAME = "Org/Model"


def files(seed: int = 0) -> dict[str, bytes]:
    """A model's files, and what else lies in a repository."""
    numbers = np.random.default_rng(seed).standard_normal(50_000).astype(np.float32)
    settings = {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "entailment", "1": "other"}}
    return {
        "config.json": json.dumps(settings | {"seed": seed}).encode(),
        "tokenizer.json": b"{}",
        "tokenizer_config.json": json.dumps({"chat_template": "x"}).encode(),
        "model.safetensors": save({"weights": numbers}),
        "pytorch_model.bin": b"pickled",
        "modeling.py": b"raise SystemExit",
        "README.md": b"words",
        "original/consolidated.safetensors": b"another form",
        "modules.json": json.dumps([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]).encode(),
        "1_Pooling/config.json": json.dumps({"pooling_mode": "cls"}).encode(),
    }


@pytest.fixture
def there() -> Iterator[FakeHub]:
    with FakeHub() as made:
        made.repos[NAME] = Repo()
        made.repos[NAME].commit(files())
        yield made


@pytest.fixture
def cache(there: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use(monkeypatch, there.url, tmp_path / "hf")
    return tmp_path / "hf"


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the log is warned of."""
    lines: list[str] = []
    monkeypatch.setattr(hub.log, "warning", lambda message, *values: lines.append(message % values))
    return lines


def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.mark.usefixtures("cache")
def test_only_what_a_model_needs_is_fetched_and_nothing_twice(there: FakeHub) -> None:
    commit = there.repos[NAME].refs["main"]
    assert models.preflight(NAME, chat=True) == commit
    assert there.count(r"GET .*safetensors") == 0
    folder = Path(models.fetch(NAME, commit))
    assert {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()} == {
        name: data
        for name, data in files().items()
        if name.endswith((".json", ".safetensors")) and not name.startswith("original")
    }
    asked = len(there.requests)
    assert models.fetch(NAME, commit) == str(folder)
    assert models.preflight(NAME, commit) == commit
    assert models.read_config(NAME, commit)["seed"] == 0
    assert read_modules(NAME, commit).pooling == read_modules(str(folder)).pooling == "cls"
    assert len(there.requests) == asked, "what is there is asked for again"


@pytest.mark.usefixtures("cache")
def test_a_branch_is_made_the_commit_that_it_means(there: FakeHub) -> None:
    repo = there.repos[NAME]
    first = repo.refs["main"]
    repo.refs["v1"] = first
    model = ModelConfig(path=NAME)
    judges = [T5Config(model=NAME, revision="v1"), NliConfig(model=NAME, languages=None)]
    engine = EngineConfig(device="cpu")
    engine.preflight(model, Storage(), True, {})
    for judge in judges:
        judge.preflight(Storage())
    assert [model.revision, *(judge.revision for judge in judges)] == [first] * 3
    assert judges[0].for_actor(1)["revision"] == first
    assert first in judges[0].describe()
    assert judges[0].fingerprint() == T5Config(model=NAME, revision=first).fingerprint()
    same = engine.identity(ModelConfig(path=NAME, revision=first))
    assert engine.identity(model) == same
    second = repo.commit(files(1))
    assert Path(models.fetch(NAME, model.revision), "model.safetensors").read_bytes() == files()["model.safetensors"]
    moved = ModelConfig(path=NAME)
    engine.preflight(moved, Storage(), True, {})
    assert moved.revision == second
    assert engine.identity(moved) != same


class TestWithoutTheHub:
    def test_what_the_cache_has_is_used(self, there: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = models.fetch(NAME)
        commit = there.repos[NAME].refs["main"]
        offline(monkeypatch)
        asked = len(there.requests)
        for revision in (None, "main", commit):
            assert models.preflight(NAME, revision) == commit
            assert models.fetch(NAME, revision) == folder
        with pytest.raises(PreflightError, match=r"the cache .* does not hold it whole at revision v2"):
            models.preflight(NAME, "v2")
        assert len(there.requests) == asked

    def test_one_that_another_program_fetched(
        self, there: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = models.fetch(NAME)
        shutil.rmtree(cache / "models--Org--Model/trees")  # the list of files, which not every program keeps
        (Path(folder) / "tokenizer.json").unlink()
        assert models.fetch(NAME) == folder
        assert (Path(folder) / "tokenizer.json").is_file(), "half of it was taken for all"
        shutil.rmtree(cache / "models--Org--Model/trees", ignore_errors=True)
        offline(monkeypatch)
        assert models.fetch(NAME) == folder
        (Path(folder) / "model.safetensors").unlink()
        with pytest.raises(PreflightError, match="does not hold it whole"):
            models.fetch(NAME)

    def test_half_a_model_is_none(self, there: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        models.preflight(NAME)
        offline(monkeypatch)
        with pytest.raises(PreflightError, match=r"Org/Model: .* HF_HUB_OFFLINE=1 .*hf download Org/Model"):
            models.preflight(NAME)

    @pytest.mark.parametrize("how", ["down", "broken"])
    def test_a_hub_that_is_down(
        self, there: FakeHub, cache: Path, how: str, monkeypatch: pytest.MonkeyPatch, warned: list[str]
    ) -> None:
        commit, folder = there.repos[NAME].refs["main"], models.fetch(NAME)
        there.repos["Org/Other"] = there.repos[NAME]
        if how == "broken":
            there.status = 503
        else:
            use(monkeypatch, "http://user:secret@127.0.0.1:1", cache)
        assert models.preflight(NAME) == commit
        assert "does not answer" in warned[0]
        assert f"commit {commit}" in warned[0]
        assert models.fetch(NAME) == folder
        with pytest.raises(PreflightError, match=r"Org/Other: .* the hub at http://127.* does not answer") as error:
            models.preflight("Org/Other")
        assert "secret" not in str(error.value) + " ".join(warned)

    def test_a_mirror_that_says_nothing(self, there: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hub, "_ANSWER_S", 0.5)
        there.silent = True
        started = time.monotonic()
        with pytest.raises(PreflightError, match=r"does not answer \(ReadTimeout.*HF_ENDPOINT"):
            models.preflight(NAME)
        assert time.monotonic() - started < 3

    def test_a_mirror_that_is_none(self, there: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        there.status = 200
        with pytest.raises(PreflightError, match=r"cannot be used .* is HF_ENDPOINT a hub's address\?"):
            models.preflight(NAME)


@pytest.mark.usefixtures("cache")
class TestAccess:
    def test_a_gated_model(self, there: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
        there.repos[NAME].gated = True
        asked = f"is gated, and this node has no token: accept its licence at {there.url}/{NAME}, and set HF_TOKEN .* every node"
        with pytest.raises(PreflightError, match=asked):
            models.preflight(NAME)
        with pytest.raises(PreflightError, match=asked):
            models.fetch(NAME)
        monkeypatch.setenv("HF_TOKEN", "hf_wrong")
        with pytest.raises(PreflightError, match="the account of this node's token has no access") as error:
            models.preflight(NAME)
        assert "hf_wrong" not in str(error.value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        models.preflight(NAME)
        assert Path(models.fetch(NAME), "model.safetensors").is_file()

    def test_a_login_serves_as_a_token(self, there: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        there.repos[NAME].private = True
        with pytest.raises(PreflightError, match=r"nor such a model on http://.*\(or it is private: set HF_TOKEN"):
            models.preflight(NAME)
        (tmp_path / "token").write_text(TOKEN)
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
        models.preflight(NAME)

    def test_a_token_that_is_refused(self, there: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_old")
        there.status = 403
        with pytest.raises(PreflightError, match="refuses this node's token: HF_TOKEN") as error:
            models.preflight(NAME)
        assert "hf_old" not in str(error.value)

    @pytest.mark.parametrize(
        ("name", "revision", "said"),
        [
            ("Org/Modle", None, "Org/Modle: there is no such folder, nor such a model on http"),
            (NAME, "v9", "Org/Model: has no revision v9"),
            (NAME, "0" * 40, "Org/Model: has no revision 0000"),
        ],
    )
    def test_names_that_are_wrong(self, name: str, revision: str | None, said: str) -> None:
        for check in (models.preflight, models.fetch):
            with pytest.raises(PreflightError, match=said):
                check(name, revision)

    def test_incomplete_ones(self, there: FakeHub) -> None:
        whole = files()
        there.repos["a/b"] = Repo(conversion=7)
        there.repos["a/b"].commit(
            {name: whole[name] for name in ("config.json", "tokenizer.json", "pytorch_model.bin")}
        )
        with pytest.raises(PreflightError, match=r"pickled weights are not loaded.*revision=refs/pr/7"):
            models.preflight("a/b")
        del whole["tokenizer_config.json"]
        there.repos["a/b"].commit(whole)
        models.preflight("a/b")
        with pytest.raises(PreflightError, match="no chat template"):
            models.preflight("a/b", chat=True)


class TestFetching:
    def test_a_transfer_that_breaks_off_is_gone_on_with(self, there: FakeHub, cache: Path) -> None:
        there.cuts["model.safetensors"] = 1000
        with pytest.raises(
            PreflightError, match=r"could not be fetched whole .* what came is kept; start the job again"
        ):
            models.fetch(NAME)
        there.cuts.clear()
        there.requests.clear()
        folder = Path(models.fetch(NAME))
        assert (folder / "model.safetensors").read_bytes() == files()["model.safetensors"]
        assert there.count("GET .*tokenizer.json") == 0

    def test_no_room(self, there: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch, warned: list[str]) -> None:
        usage = shutil.disk_usage("/")
        monkeypatch.setattr("trust.cache.shutil.disk_usage", lambda _: usage._replace(free=150_000))
        models.preflight(NAME)
        with pytest.raises(PreflightError) as error:
            models.fetch(NAME)
        assert len(warned) == 1
        for said in (*warned, str(error.value)):
            assert "model Org/Model: 0.00 GB are to be written, but node" in said
            assert f"free at {cache}: make room there, or set HF_HOME" in said
        assert there.count("GET .*/resolve/.*safetensors") == 0

    def test_a_disk_that_fills_up(self, there: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def get(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("huggingface_hub.file_download.http_get", get)
        with pytest.raises(PreflightError, match=f"the disk of {cache} is full: make room there, or set HF_HOME"):
            models.fetch(NAME)

    def test_one_process_of_a_node_fetches_and_others_wait(self, there: FakeHub, tmp_path: Path) -> None:
        """In processes of their own, with the environment alone."""
        there.repos[NAME].gated = True
        env = os.environ | {"HF_ENDPOINT": there.url + "/", "HF_HOME": str(tmp_path), "HF_TOKEN": TOKEN}
        env |= {"HF_HUB_OFFLINE": "0", "PYTHONPATH": os.getcwd()}
        code = f"from trust import models; print(models.fetch({NAME!r}, models.preflight({NAME!r})))"
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for _ in range(2)
        ]
        outputs = {process.communicate(timeout=120)[0] for process in started}
        (folder,) = (output.strip() for output in outputs)
        assert folder.startswith(str(tmp_path / "hub"))
        assert there.count("GET .*model.safetensors") == 1
        written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert TOKEN.encode() not in written
