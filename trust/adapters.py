"""LoRA adapters: checked with nothing loaded, and merged into a copy of their base, once a node.

Why merged, where vLLM could take the adapter beside its base: the copy is an ordinary model, so that one way serves CPUs,
GPUs and every engine; it costs no more than its base to run; rank and target modules are not limited to what the engine's
kernels know; and W + scale·B·A is computed in float32 and rounded once. The price is the disk for a second copy. Bases with
quantised weights are refused.

What changes more than that sum does (DoRA, biases, whole modules, new tokens, initialisations that change the base) is
refused by name: PEFT merges those, and the merged folder is a model like any other.
"""

import hashlib
import json
import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trust import models
from trust.cache import cached
from trust.errors import PreflightError
from trust.models import ModelConfig
from trust.storage import FileInfo, Storage, open_storage

log = logging.getLogger("trust")

SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

INSTEAD = ": merge it with PEFT (merge_and_unload, save_pretrained) and give the merged folder as model.path"
_RECIPE = 1  # part of the cache key: raise it when merging changes
_TENSOR = re.compile(r"base_model\.model\.(.+)\.lora_([AB])\.weight")
_REFUSED = {  # key of adapter_config.json: what it is called
    "use_dora": "DoRA",
    "modules_to_save": "modules_to_save (whole modules beside the LoRA)",
    "trainable_token_indices": "trained tokens (trainable_token_indices)",
    "target_parameters": "LoRA on parameters of experts (target_parameters)",
    "lora_bias": "a bias in the LoRA (lora_bias)",
    "layer_replication": "replicated layers (layer_replication)",
    "alora_invocation_tokens": "activated LoRA (alora_invocation_tokens)",
    "use_bdlora": "block-diagonal LoRA (use_bdlora)",
    "use_qalora": "QALoRA",
    "kasa_config": "KaSA",
    "arrow_config": "Arrow",
    "monteclora_config": "MonteCLoRA",
}
_PLAIN_STARTS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga", "true", "false")  # leave the base as it was


@dataclass(frozen=True)
class LoraSettings:
    """Of an adapter_config.json, what the merge needs.

    Attributes:
        transposed: whether the base keeps its matrices as (in, out), as GPT-2 does.
        alphas: pattern of module names -> alpha, where it differs.
    """

    alpha: float
    rank_stabilised: bool = False
    transposed: bool = False
    base: str = ""
    alphas: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes, path: str) -> "LoraSettings":
        """Raises PreflightError: no LoRA, or one with what cannot be merged here."""
        where = f"adapter {path}"
        try:
            values = dict(json.loads(data))
            kind, rank, alpha = values.get("peft_type"), values.get("r"), float(values.get("lora_alpha") or 0)
        except (ValueError, TypeError) as error:
            raise PreflightError(f"{where}: its {SETTINGS} cannot be read: {error}") from error
        if kind != "LORA":
            raise PreflightError(f"{where}: is of the kind {kind}; only LORA is taken{INSTEAD}")
        refused = [name for key, name in _REFUSED.items() if values.get(key)]
        if (bias := values.get("bias", "none")) != "none":
            refused.append(f"biases (bias={bias})")
        start = str(values.get("init_lora_weights", True)).lower()
        if start not in _PLAIN_STARTS:
            refused.append(f"a start that changed the base's weights (init_lora_weights={start})")
        if refused:
            raise PreflightError(f"{where}: has {', '.join(refused)}, which is not supported{INSTEAD}")
        if not isinstance(rank, int) or rank < 1 or alpha <= 0 or not values.get("target_modules"):
            raise PreflightError(f"{where}: {SETTINGS} lacks r, lora_alpha or target_modules")
        alphas = {str(key): float(value) for key, value in (values.get("alpha_pattern") or {}).items()}
        return cls(
            alpha,
            bool(values.get("use_rslora")),
            bool(values.get("fan_in_fan_out")),
            str(values.get("base_model_name_or_path") or ""),
            alphas,
        )

    def scale(self, module: str, rank: int) -> float:
        """What B·A of a module is multiplied by."""
        found = (alpha for key, alpha in self.alphas.items() if re.match(rf"(.*\.)?({key})$", module))
        alpha = next(found, self.alpha)
        return alpha / (math.sqrt(rank) if self.rank_stabilised else rank)


def preflight(model: ModelConfig, storage: Storage | None = None) -> str | None:
    """Whether the model's adapter can be merged, as far as can be seen with nothing loaded: what it is, that its weights are
    whole, and, where the base is a folder or on s3://, that it has what they change.

    Returns:
        The adapter's revision to go on with: of a hub id the commit.

    Raises:
        PreflightError: in one line what is wrong and what to do.
    """
    if not model.adapter:
        return None
    storage = storage or open_storage()
    place = models.locate(model.adapter, model.adapter_revision, storage)
    if model.adapter_revision and not models.is_hub_id(model.adapter):
        raise PreflightError(
            f"model.adapter_revision={model.adapter_revision}: only an adapter on the hub has revisions"
        )
    check_files(place.files, model.adapter)
    settings = LoraSettings.read(place.read(SETTINGS), model.adapter)
    models.check_whole(place, storage)
    if settings.base and _name(settings.base) != _name(model.path):
        log.warning(
            "adapter %s was trained on %s; model.path is %s: is that the same model?",
            *(model.adapter, settings.base, model.path),
        )
    if not models.is_hub_id(model.adapter):
        shapes = models.tensor_shapes(place, storage)
        pairs = pairs_of(shapes, model.adapter)
        if not models.is_hub_id(model.path) and not model.path.startswith("package://"):
            base = models.locate(model.path, None, storage)
            check_fit(pairs, models.tensor_shapes(base, storage), settings, model)
    return place.revision


def check_files(files: Mapping[str, FileInfo], path: str) -> None:
    """Whether the files of an adapter are there (`trust.models.fetch`). Raises PreflightError."""
    if not files:
        raise PreflightError(f"adapter {path}: there is no such folder, or it is empty")
    if SETTINGS not in files:
        whole = "; this is a whole model: give it as model.path" if "config.json" in files else ""
        raise PreflightError(f"adapter {path}: there is no {SETTINGS}, so no adapter that PEFT saved{whole}")
    if WEIGHTS not in files:
        pickled = any(name.startswith("adapter_model.") for name in files)
        raise PreflightError(
            f"adapter {path}: there is no {WEIGHTS}"
            + ("; pickled weights are not loaded: load it with PEFT and save_pretrained it again" if pickled else "")
        )


def has_chat_template(model: ModelConfig, storage: Storage | None = None) -> bool:
    """Whether the model's adapter brings a chat template of its own."""
    return bool(model.adapter) and models.has_chat_template(
        models.locate(str(model.adapter), model.adapter_revision, storage)
    )


def fetch(model: ModelConfig, storage: Storage | None = None) -> str:
    """The local folder with the model that answers: the base, or its copy with the adapter merged in.

    Raises:
        PreflightError: base or adapter cannot be had, or do not fit each other.
    """
    base = models.fetch(model.path, model.revision, storage)
    if not model.adapter:
        return base
    adapter = models.fetch(model.adapter, model.adapter_revision, storage, check=check_files)
    key = json.dumps([models.fingerprint(base), models.fingerprint(adapter), _RECIPE])
    key = f"merged-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    from trust.merge import merge

    return cached(key, lambda folder: merge(Path(base), Path(adapter), folder, model))


def check_fit(
    pairs: Mapping[str, tuple[Any, Any]],
    base: Mapping[str, tuple[str, tuple[int, ...]]],
    settings: LoraSettings,
    model: ModelConfig,
) -> None:
    """Whether the base has a matrix of the right shape for each pair of A and B.

    Args:
        pairs: module -> shapes of A (rank, in) and B (out, rank).
        base: name -> dtype and shape of the base's tensors.

    Raises:
        PreflightError: names the first that does not fit.
    """
    for module, (a, b) in pairs.items():
        wanted = (a[1], b[0]) if settings.transposed else (b[0], a[1])
        dtype, shape = base.get(f"{module}.weight", ("", ()))
        told = f"adapter {model.adapter} does not fit model.path={model.path}: it changes {module}"
        if not dtype:
            raise PreflightError(f"{told}, which that model has no weights of")
        if dtype not in ("F32", "F16", "BF16"):
            raise PreflightError(f"{told}, whose weights are quantised ({dtype}): give the base as it was before that")
        if shape != wanted:
            raise PreflightError(f"{told} of shape {wanted}, but that has {shape}")


def pairs_of(shapes: Mapping[str, tuple[str, tuple[int, ...]]], path: str) -> dict[str, tuple[Any, Any]]:
    """Module -> shapes of A and B. Raises PreflightError where there is anything else, or half a pair."""
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, (_, shape) in shapes.items():
        match = _TENSOR.fullmatch(name)
        if not match or len(shape) != 2:
            raise PreflightError(f"adapter {path}: has {name} of shape {shape}, which is not supported{INSTEAD}")
        found.setdefault(match[1], {})[match[2]] = shape
    for module, both in found.items():
        if set(both) != {"A", "B"} or both["A"][0] != both["B"][1]:
            raise PreflightError(f"adapter {path}: the LoRA of {module} is not whole: {both}")
    if not found:
        raise PreflightError(f"adapter {path}: its weights are empty")
    return {module: (both["A"], both["B"]) for module, both in found.items()}


def _name(path: str) -> str:
    return path.rstrip("/").split("/")[-1].casefold()
