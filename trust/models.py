"""Models: where they come from, what they are, and whether they can be used, without loading them.

A model's `path` is one of
- a folder with a Hugging Face model;
- `s3://bucket/folder`, fetched once a node into the cache;
- `package://NAME`, a Python package that carries one GGUF file, converted once a node into the cache;
- `package://NAME/FOLDER`, a Hugging Face model that a package carries, used where it lies on each node;
- a hub id such as `Qwen/Qwen2.5-7B-Instruct`, fetched once a node into the hub's cache (trust.hub).

Only safetensors weights are taken: pickled ones can run code.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trust import hub
from trust.cache import cached, check_room
from trust.errors import ConfigError, PreflightError, StorageError
from trust.storage import FileInfo, Storage, absolute, is_s3, join, open_storage

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")
_MODULE = re.compile(r"\d+_\w+/(config\.json|model\.safetensors)")  # pooling and layers of an embedding model
CONTENT = (".json", ".jinja", ".model", ".txt", ".safetensors")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
_SAMPLED_ABOVE = 32 << 20
_BLOCK, _BLOCKS = 64 << 10, 16
_DOWNLOADS = 4  # files at once


@dataclass
class ModelConfig:
    """A model that writes answers.

    Attributes:
        path: folder, s3:// address, package:// name or hub id (see the module).
        name: how tables and reports call it; empty takes `base_name` and, behind a `+`, the adapter's.
        base_name: how the base is called where `name` is empty; empty takes the last part of `path`.
        revision: commit, tag or branch of a hub id; what it means when a job starts is taken, and recorded as a commit.
        adapter: a LoRA adapter for this model: folder, s3:// address or hub id (trust.adapters); null for none.
        adapter_revision: commit, tag or branch of an adapter on the hub, as `revision`.
        dtype: `auto` (as the weights are stored), `bfloat16`, `float16` or `float32`.
        max_model_len: context in tokens, prompt and answer together; null takes the model's own.
        chat_template_kwargs: passed to the chat template, e.g. `{enable_thinking: false}`.
    """

    path: str
    name: str = ""
    base_name: str = ""
    revision: str | None = None
    adapter: str | None = None
    adapter_revision: str | None = None
    dtype: str = "auto"
    max_model_len: int | None = None
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.path:
            raise ConfigError("model.path is empty: give a folder, an s3:// address, package://NAME or a hub id")
        if self.adapter_revision and not self.adapter:
            raise ConfigError(f"model.adapter_revision={self.adapter_revision}: of which adapter? Set model.adapter")
        adapter = f"+{_last(self.adapter)}" if self.adapter else ""
        self.name = self.name or (self.base_name or _last(self.path)) + adapter
        if self.max_model_len is not None and self.max_model_len < 2:
            raise ConfigError(f"model.max_model_len={self.max_model_len}: must hold a prompt and an answer")

    def for_actor(self, portable: Callable[[str], str]) -> dict[str, Any]:
        """Plain values that hold in another process, whose addresses `portable` makes."""
        adapter = portable(self.adapter) if self.adapter else None
        return asdict(self) | {"path": portable(self.path), "adapter": adapter}


@dataclass(frozen=True)
class Place:
    """Where a model or an adapter lies, and the files right in it; nothing of it has been loaded.

    Attributes:
        path: as it was given.
        revision: of a hub id the commit; else as it was given.
        files: name -> file.
        read: the content of one, by name.
    """

    path: str
    revision: str | None
    files: dict[str, FileInfo]
    read: Callable[[str], bytes]


def locate(path: str, revision: str | None = None, storage: Storage | None = None) -> Place:
    """What there is at `path`: a folder, s3:// address or hub id (files may be missing). Raises PreflightError."""
    if is_hub_id(path):
        found = hub.look(path, revision)
        files = {name: FileInfo(name, size, 0) for name, size in found.files.items() if _of_model(name)}
        return Place(path, found.commit, files, lambda name: hub.read(path, found.commit, name))
    storage, root = storage or open_storage(), absolute(path)
    return Place(path, revision, _files(root, storage), lambda name: storage.read_bytes(join(root, name)))


def fetch(
    path: str,
    revision: str | None = None,
    storage: Storage | None = None,
    check: Callable[[dict[str, FileInfo], str], None] | None = None,
) -> str:
    """The local folder that holds the model.

    Safe to call from many processes at once; the work is done by one of them.

    Args:
        path: see the module.
        revision: only for hub ids.
        storage: the door to `s3://`; None builds one from the environment.
        check: raises PreflightError where files are missing (their names and files, and `path`); None is for models.

    Raises:
        PreflightError: the model is not there or not complete, or there is no room for it; says what is missing.
    """
    if is_hub_id(path):
        return hub.fetch(path, revision)
    if is_gguf(path):
        from trust.gguf import GgufPackage

        package = GgufPackage.find(path)
        return cached(package.key, package.convert)
    storage = storage or open_storage()
    root = absolute(path)
    files = _files(root, storage)
    (check or _check_files)(files, path)
    if not is_s3(root):
        return root
    listing = {name: (item.size, item.written) for name, item in files.items() if name.endswith(CONTENT)}
    key = hashlib.sha256(json.dumps([root, listing], sort_keys=True).encode()).hexdigest()[:16]
    return cached(f"s3-{key}", lambda folder: _download(path, folder, files, storage))


def portable(path: str) -> str:
    """`path` as it holds in another process: a local folder becomes absolute, all else stays."""
    return path if is_hub_id(path) or path.startswith("package://") or is_s3(path) else absolute(path)


def fingerprint(path: str, revision: str | None = None, storage: Storage | None = None) -> str:
    """16 hex digits that stand for the model's content, wherever it lies.

    Folders: names, sizes and contents of the model's files; of weights (files over 32 MiB) blocks spread from head to
    tail. So a copy elsewhere is the same model, and one trained further under the same name is another. Hub ids: the id
    and its revision, which `preflight` makes a commit.

    Raises:
        PreflightError: the model is not there.
    """
    digest = hashlib.sha256()
    if is_hub_id(path):
        digest.update(f"hub:{path}@{revision}".encode())
        return digest.hexdigest()[:16]
    if is_gguf(path):
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
        if not name.endswith((*CONTENT, ".gguf")):
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


def preflight(path: str, revision: str | None = None, storage: Storage | None = None, chat: bool = False) -> str | None:
    """Cheap checks that the model can be used; nothing is loaded, fetched or converted (of a hub id: its config).

    Args:
        chat: also require a chat template.

    Returns:
        The revision to go on with, and to record: of a hub id the commit that `revision` means now; else `revision`.

    Raises:
        PreflightError: in one line what is missing and what to do.
    """
    if is_gguf(path):
        from trust.gguf import GgufPackage

        GgufPackage.find(path)
        return revision
    place = locate(path, revision, storage)
    _check_files(place.files, path)
    check_whole(place, storage)
    if chat and not has_chat_template(place):
        raise PreflightError(f"{path}: this model has no chat template; set prompt.chat=false to send plain text")
    return place.revision


def check_whole(place: Place, storage: Storage | None = None) -> None:
    """Whether weights are as long as their heads say. The hub keeps them whole: there, whether it lets us have them.

    Raises:
        PreflightError: they are not.
    """
    if is_hub_id(place.path):
        place.read("config.json" if "config.json" in place.files else "adapter_config.json")
        hub.warn_of_room(place.path, str(place.revision))
        return
    tensor_shapes(place, storage or open_storage())


def tensor_shapes(place: Place, storage: Storage) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name -> dtype and shape of all tensors in a folder or on s3://, from the heads of its files. Raises PreflightError."""
    files = [item for name, item in place.files.items() if name.endswith(".safetensors")]
    heads = [_head(item, storage) for item in files]
    return {name: (tensor["dtype"], tuple(tensor["shape"])) for head in heads for name, tensor in head.items()}


def has_chat_template(place: Place) -> bool:
    if {"chat_template.jinja", "chat_template.json"} & set(place.files):
        return True
    if "tokenizer_config.json" not in place.files:
        return False
    return bool(json.loads(place.read("tokenizer_config.json")).get("chat_template"))


def read_config(path: str, revision: str | None = None, storage: Storage | None = None) -> dict[str, Any]:
    """The model's `config.json`; of a hub id it is fetched, and nothing else.

    Raises:
        PreflightError: there is none, or it is no JSON object.
    """
    place = locate(path, revision, storage)
    try:
        return dict(json.loads(place.read("config.json")))
    except FileNotFoundError as error:
        raise PreflightError(f"{path}: there is no config.json, so no model of this kind") from error
    except (ValueError, TypeError) as error:
        where = path if is_hub_id(path) else join(absolute(path), "config.json")
        raise PreflightError(f"{where}: not a model's config.json: {error}") from error


def is_gguf(path: str) -> bool:
    """Whether `path` names a package with a GGUF file (and not a folder in a package)."""
    return path.startswith("package://") and "/" not in path.removeprefix("package://").strip("/")


def is_hub_id(path: str) -> bool:
    """Whether `path` names a model of the hub: it looks like an id and there is no such folder here."""
    return bool(_HUB_ID.fullmatch(path)) and not os.path.isdir(path)


def _last(path: str) -> str:
    return path.rstrip("/").split("/")[-1]


def _files(root: str, storage: Storage) -> dict[str, FileInfo]:
    """Name -> file, of those right in the folder `root` and of an embedding model's modules in folders below."""
    prefix = root.rstrip("/") + "/"
    found = {item.path.removeprefix(prefix): item for item in storage.list_files(root)}
    return {name: item for name, item in found.items() if _of_model(name)}


def _of_model(name: str) -> bool:
    return "/" not in name or bool(_MODULE.fullmatch(name))


def _check_files(files: dict[str, FileInfo], path: str) -> None:
    if not files:
        raise PreflightError(f"{path}: there is no such folder, or it is empty")
    weights = [name for name, item in files.items() if name.endswith(".safetensors") and item.size and "/" not in name]
    missing = [] if "config.json" in files else ["config.json"]
    if not weights:
        pickled = any(name.endswith(_PICKLED) for name in files)
        offer = hub.conversion(path) if pickled and is_hub_id(path) else ""
        missing.append(
            "safetensors weights" + (f" (pickled weights are not loaded: convert them{offer})" if pickled else "")
        )
    for shard in weights:
        if match := re.fullmatch(r"(.*)-\d{5}-of-(\d{5})\.safetensors", shard):
            stem, total = match[1], int(match[2])
            wanted = {f"{stem}-{i:05d}-of-{total:05d}.safetensors" for i in range(1, total + 1)}
            missing.extend(sorted(wanted - set(weights)))
            break
    if not any(name in files for name in TOKENIZERS):
        missing.append("a tokenizer (such as tokenizer.json)")
    if missing:
        raise PreflightError(f"{path}: not a complete model folder; missing: {', '.join(missing)}")


def _head(file: FileInfo, storage: Storage) -> dict[str, Any]:
    """Name -> dtype, shape and place of the tensors in a safetensors file, which is as long as they say; only its head is
    read. Raises PreflightError."""
    with storage.open_input(file.path) as source:
        length = int.from_bytes(source.read(8), "little")
        head = source.read(length) if length <= file.size - 8 else b""
    try:
        tensors = {name: tensor for name, tensor in json.loads(head).items() if name != "__metadata__"}
        ends = [tensor["data_offsets"][1] for tensor in tensors.values()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PreflightError(
            f"{file.path}: no safetensors weights, or cut short (a Git LFS pointer, perhaps): put the whole file there"
        ) from error
    if (whole := 8 + length + max(ends, default=0)) != file.size:
        raise PreflightError(f"{file.path}: cut short: {file.size} bytes of {whole}; put the whole file there")
    return tensors


def _download(path: str, folder: Path, files: dict[str, FileInfo], storage: Storage) -> None:
    wanted = {name: item for name, item in files.items() if name.endswith(CONTENT)}
    check_room(folder, sum(item.size for item in wanted.values()), f"model {path}", "TRUST_CACHE")

    def get(name: str) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        came = storage.download(wanted[name].path, folder / name)
        if came != wanted[name].size:
            raise StorageError(f"{wanted[name].path}: {came} bytes came of {wanted[name].size}: it changed meanwhile")

    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        for _ in pool.map(get, wanted):
            pass
