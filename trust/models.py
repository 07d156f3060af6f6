"""Models: where they come from, what they are, and whether they can be used, without loading them.

A model's `path` is one of
- a folder with a Hugging Face model;
- `s3://bucket/folder`, fetched once a node into the cache;
- `package://NAME`, a Python package that carries one GGUF file, converted once a node into the cache;
- a hub id such as `Qwen/Qwen2.5-7B-Instruct`, which the model library fetches itself.

The cache is `$TRUST_CACHE`, else `~/.cache/trust`. Only safetensors weights are taken: pickled ones can run code.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trust.errors import ConfigError, PreflightError, StorageError
from trust.storage import FileInfo, Storage, absolute, is_s3, join, open_storage

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")
_MODULE = re.compile(r"\d+_\w+/(config\.json|model\.safetensors)")  # pooling and layers of an embedding model
_CONTENT = (".json", ".jinja", ".model", ".txt", ".safetensors")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
_SAMPLED_ABOVE = 32 << 20
_BLOCK, _BLOCKS = 64 << 10, 16
_DOWNLOADS = 4  # files at once


@dataclass
class ModelConfig:
    """A model that writes answers.

    Attributes:
        path: folder, s3:// address, package:// name or hub id (see the module).
        name: how tables and reports call it; empty takes the last part of `path`.
        revision: commit or tag of a hub id; give it, or the model may change under the same name.
        dtype: `auto` (as the weights are stored), `bfloat16`, `float16` or `float32`.
        max_model_len: context in tokens, prompt and answer together; null takes the model's own.
        chat_template_kwargs: passed to the chat template, e.g. `{enable_thinking: false}`.
    """

    path: str
    name: str = ""
    revision: str | None = None
    dtype: str = "auto"
    max_model_len: int | None = None
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.path:
            raise ConfigError("model.path is empty: give a folder, an s3:// address, package://NAME or a hub id")
        self.name = self.name or self.path.rstrip("/").split("/")[-1]
        if self.max_model_len is not None and self.max_model_len < 2:
            raise ConfigError(f"model.max_model_len={self.max_model_len}: must hold a prompt and an answer")


def cache_dir() -> Path:
    """The folder for fetched and converted models on this node."""
    return Path(os.environ.get("TRUST_CACHE") or "~/.cache/trust").expanduser()


def fetch(path: str, revision: str | None = None, storage: Storage | None = None) -> str:
    """The model as something a model library can load: a local folder, or the hub id unchanged.

    Safe to call from many processes at once; the work is done by one of them.

    Args:
        path: see the module.
        revision: only for hub ids, whose library gets it beside the id.
        storage: the door to `s3://`; None builds one from the environment.

    Raises:
        PreflightError: the model is not there or not complete; says what is missing.
    """
    if is_hub_id(path):
        return path
    if path.startswith("package://"):
        from trust.gguf import GgufPackage

        package = GgufPackage.find(path)
        return _cached(package.key, package.convert)
    storage = storage or open_storage()
    root = absolute(path)
    files = _files(root, storage)
    _check_files(files, path)
    if not is_s3(root):
        return root
    listing = {name: (item.size, item.written) for name, item in files.items() if name.endswith(_CONTENT)}
    key = hashlib.sha256(json.dumps([root, listing], sort_keys=True).encode()).hexdigest()[:16]
    return _cached(f"s3-{key}", lambda folder: _download(root, folder, files, storage))


def portable(path: str) -> str:
    """`path` as it holds in another process: a local folder becomes absolute, all else stays."""
    return path if is_hub_id(path) or path.startswith("package://") or is_s3(path) else absolute(path)


def fingerprint(path: str, revision: str | None = None, storage: Storage | None = None) -> str:
    """16 hex digits that stand for the model's content, wherever it lies.

    Folders: names, sizes and contents of the model's files; of weights (files over 32 MiB) blocks spread from head to
    tail. So a copy elsewhere is the same model, and one trained further under the same name is another. Hub ids: the id
    and its revision.

    Raises:
        PreflightError: the model is not there.
    """
    digest = hashlib.sha256()
    if is_hub_id(path):
        digest.update(f"hub:{path}@{revision}".encode())
        return digest.hexdigest()[:16]
    if path.startswith("package://"):
        from trust.gguf import GgufPackage

        package = GgufPackage.find(path)
        path, files = str(package.file.parent), {package.file.name: package.file.stat().st_size}
        digest.update(package.key.encode())
    else:
        path, storage = absolute(path), storage or open_storage()
        files = {name: item.size for name, item in _files(path, storage).items()}
        if not files:
            raise PreflightError(f"{path}: there is no model")
    storage = storage or open_storage()
    for name, size in sorted(files.items()):
        if not name.endswith((*_CONTENT, ".gguf")):
            continue
        digest.update(f"{name}:{size};".encode())
        with storage.open_input(join(path, name)) as file:
            if size <= _SAMPLED_ABOVE:
                digest.update(file.read())
                continue
            for index in range(_BLOCKS):
                file.seek(index * (size - _BLOCK) // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()[:16]


def preflight(path: str, revision: str | None = None, storage: Storage | None = None, chat: bool = False) -> None:
    """Cheap checks that the model can be used; nothing is loaded, fetched or converted (of a hub id: its config).

    Args:
        chat: also require a chat template.

    Raises:
        PreflightError: in one line what is missing and what to do.
    """
    if is_hub_id(path):
        _hub_config(path, revision)
        return
    if path.startswith("package://"):
        from trust.gguf import GgufPackage

        GgufPackage.find(path)
        return
    storage, root = storage or open_storage(), absolute(path)
    files = _files(root, storage)
    _check_files(files, path)
    for name, item in files.items():
        if name.endswith(".safetensors"):
            _check_weights(item, storage)
    if chat and not {"chat_template.jinja", "chat_template.json"} & set(files):
        settings: dict[str, Any] = {}
        if "tokenizer_config.json" in files:
            settings = json.loads(storage.read_bytes(join(root, "tokenizer_config.json")))
        if not settings.get("chat_template"):
            raise PreflightError(f"{path}: this model has no chat template; set prompt.chat=false to send plain text")


def read_config(path: str, revision: str | None = None, storage: Storage | None = None) -> dict[str, Any]:
    """The model's `config.json`; of a hub id it is fetched, and nothing else.

    Raises:
        PreflightError: there is none, or it is no JSON object.
    """
    where = path
    try:
        if is_hub_id(path):
            data = Path(_hub_config(path, revision)).read_bytes()
        else:
            where = join(absolute(path), "config.json")
            data = (storage or open_storage()).read_bytes(where)
        return dict(json.loads(data))
    except FileNotFoundError as error:
        raise PreflightError(f"{path}: there is no config.json, so no model of this kind") from error
    except (ValueError, TypeError) as error:
        raise PreflightError(f"{where}: not a model's config.json: {error}") from error


def is_hub_id(path: str) -> bool:
    """Whether `path` names a model of the hub: it looks like an id and there is no such folder here."""
    return bool(_HUB_ID.fullmatch(path)) and not os.path.isdir(path)


def _files(root: str, storage: Storage) -> dict[str, FileInfo]:
    """Name -> file, of those right in the folder `root` and of an embedding model's modules in folders below."""
    prefix = root.rstrip("/") + "/"
    found = {item.path.removeprefix(prefix): item for item in storage.list_files(root)}
    return {name: item for name, item in found.items() if "/" not in name or _MODULE.fullmatch(name)}


def _check_files(files: dict[str, FileInfo], path: str) -> None:
    if not files:
        raise PreflightError(f"{path}: there is no such folder, or it is empty")
    weights = [name for name, item in files.items() if name.endswith(".safetensors") and item.size and "/" not in name]
    missing = [] if "config.json" in files else ["config.json"]
    if not weights:
        pickled = any(name.endswith(_PICKLED) for name in files)
        missing.append("safetensors weights" + (" (pickled weights are not loaded: convert them)" if pickled else ""))
    for shard in weights:
        if match := re.fullmatch(r"(.*)-\d{5}-of-(\d{5})\.safetensors", shard):
            stem, total = match[1], int(match[2])
            wanted = {f"{stem}-{i:05d}-of-{total:05d}.safetensors" for i in range(1, total + 1)}
            missing.extend(sorted(wanted - set(weights)))
            break
    if not any(name in files for name in _TOKENIZERS):
        missing.append("a tokenizer (such as tokenizer.json)")
    if missing:
        raise PreflightError(f"{path}: not a complete model folder; missing: {', '.join(missing)}")


def _check_weights(file: FileInfo, storage: Storage) -> None:
    """Whether a safetensors file is as long as its head says; only the head is read."""
    with storage.open_input(file.path) as source:
        length = int.from_bytes(source.read(8), "little")
        head = source.read(length) if length <= file.size - 8 else b""
    try:
        ends = [tensor["data_offsets"][1] for name, tensor in json.loads(head).items() if name != "__metadata__"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PreflightError(
            f"{file.path}: no safetensors weights, or cut short (a Git LFS pointer, perhaps): put the whole file there"
        ) from error
    if (whole := 8 + length + max(ends, default=0)) != file.size:
        raise PreflightError(f"{file.path}: cut short: {file.size} bytes of {whole}; put the whole file there")


def _hub_config(path: str, revision: str | None) -> str:
    """Where the config.json of a hub model lies on this machine, once it is fetched. Raises PreflightError."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # five retries without a network are one message, below

    try:
        return hf_hub_download(path, "config.json", revision=revision)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise PreflightError(
            f"model {path}: there is no such folder, nor a config.json on the hub: {reason}"
        ) from error


def _cached(key: str, make: Callable[[Path], None]) -> str:
    """The cache folder `key`, made by `make(empty folder)` if it is not there: once, and whole or not at all."""
    from filelock import FileLock

    root = cache_dir() / "models"
    target = root / key
    if target.is_dir():
        return str(target)
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f".{key}.lock"):
        if not target.is_dir():
            for left in root.glob(f".{key}-*"):  # by a process that was killed: whoever makes it holds the lock
                shutil.rmtree(left, ignore_errors=True)
            temporary = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=root))
            try:
                make(temporary)
                temporary.chmod(0o755)
                temporary.rename(target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return str(target)


def _download(root: str, folder: Path, files: dict[str, FileInfo], storage: Storage) -> None:
    def get(name: str) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        came = storage.download(files[name].path, folder / name)
        if came != files[name].size:
            raise StorageError(f"{files[name].path}: {came} bytes came of {files[name].size}: it changed meanwhile")

    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        for _ in pool.map(get, [name for name in files if name.endswith(_CONTENT)]):
            pass
