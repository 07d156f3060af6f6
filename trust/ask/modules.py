"""What an embedding model does behind its Transformer: pooling and layers, as the sentence-transformers form says them.

`modules.json` lists them; a model without that file is pooled by the mean, as sentence-transformers does with it. What is
not known here is refused: vectors that look right and are not would choose wrong documents in silence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trust import models
from trust.errors import PreflightError
from trust.storage import Storage

POOLING = ("mean", "cls")
ACTIVATIONS = ("Identity", "Tanh")
_OLD_NAMES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


@dataclass(frozen=True)
class Dense:
    """A layer behind the pooling.

    Attributes:
        weights: name of its safetensors file in the model.
        activation: one of `ACTIVATIONS`.
    """

    weights: str
    activation: str


@dataclass(frozen=True)
class Modules:
    """What is done with the Transformer's last hidden states.

    Attributes:
        pooling: one of `POOLING`.
        dense: layers, in order.
        max_length: tokens of a text that the model was trained with, where it says.
        lower: whether texts are put in lower case.
    """

    pooling: str = "mean"
    dense: tuple[Dense, ...] = ()
    max_length: int | None = None
    lower: bool = False


def read_modules(path: str, revision: str | None = None, storage: Storage | None = None) -> Modules:
    """The modules of a model, from its small files alone.

    Raises:
        PreflightError: it does what is not known here; says what.
    """
    files = _Files(path, revision, storage)
    listed = files.json("modules.json")
    texts = files.json("sentence_bert_config.json") or {}
    settings = files.json("config_sentence_transformers.json") or {}
    if name := settings.get("default_prompt_name"):
        raise PreflightError(f"{path}: wants the prompt {name!r} before each text; take a model without one")
    pooling, dense = "mean", []
    for module in listed or []:
        kind, folder = str(module["type"]).rsplit(".", 1)[-1], str(module["path"])
        if kind == "Pooling":
            pooling = _pooling(files.json(f"{folder}/config.json") or {}, path)
        elif kind == "Dense":
            dense.append(_dense(files, folder))
        elif kind not in ("Transformer", "Normalize") or (kind == "Transformer" and folder):
            raise PreflightError(f"{path}: modules.json names {module['type']} in {folder!r}, which is not known here")
    return Modules(pooling, tuple(dense), texts.get("max_seq_length"), bool(texts.get("do_lower_case")))


def read_file(path: str, name: str, revision: str | None = None, storage: Storage | None = None) -> bytes | None:
    """One small file of a model; None where the model has no such file.

    Args:
        path: a folder, s3:// address or hub id.
        name: relative to the model's folder.

    Raises:
        PreflightError: the hub cannot be asked and the model is not on this machine, so that nobody knows.
    """
    place = models.locate(path, revision, storage)
    return place.read(name) if name in place.files else None


class _Files:
    """The small files of one model."""

    def __init__(self, path: str, revision: str | None, storage: Storage | None) -> None:
        self.path, self._place = path, models.locate(path, revision, storage)

    def json(self, name: str) -> Any:
        try:
            return json.loads(self._place.read(name)) if self.has(name) else None
        except ValueError as error:
            raise PreflightError(f"{self.path}/{name}: not JSON: {error}") from error

    def has(self, name: str) -> bool:
        return name in self._place.files


def _pooling(settings: Mapping[str, Any], path: str) -> str:
    modes = settings.get("pooling_mode")
    if modes is None:
        modes = [_OLD_NAMES.get(key, key) for key, on in settings.items() if key.startswith("pooling_mode_") and on]
    found = [modes] if isinstance(modes, str) else list(modes)
    if len(found) != 1 or found[0] not in POOLING:
        raise PreflightError(f"{path}: pools by {' and '.join(map(str, found))}; known here are {', '.join(POOLING)}")
    return str(found[0])


def _dense(files: _Files, folder: str) -> Dense:
    settings, weights = files.json(f"{folder}/config.json") or {}, f"{folder}/model.safetensors"
    activation = str(settings.get("activation_function", "Tanh")).rsplit(".", 1)[-1]
    if activation not in ACTIVATIONS:
        raise PreflightError(f"{files.path}: {folder} has the activation {activation}, which is not known here")
    if not files.has(weights):
        raise PreflightError(f"{files.path}: {weights} is missing (pickled weights are not loaded: convert them)")
    return Dense(weights, activation)
