"""A copy of a model with a LoRA adapter merged in: W + scale·B·A, in float32, rounded once to the type of W.

The adapter's own chat template is taken, and its tokenizer too where it has one: it was trained with them. Where its tokenizer
has no template, the base's stays.
"""

import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trust import models
from trust.adapters import INSTEAD, SETTINGS, WEIGHTS, LoraSettings, check_fit, pairs_of
from trust.cache import check_room
from trust.errors import PreflightError
from trust.models import ModelConfig
from trust.storage import open_storage

log = logging.getLogger("trust")

_TOKENIZER = (
    *models.TOKENIZERS,
    *("merges.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template.jinja", "chat_template.json"),
)


def merge(base: Path, adapter: Path, folder: Path, model: ModelConfig) -> None:
    """Writes the model at `base` with `adapter` merged in into the empty `folder`, a file of weights at a time.

    Args:
        model: what both are called, for messages.

    Raises:
        PreflightError: they do not fit each other, or there is no room.
    """
    from safetensors import safe_open

    settings = LoraSettings.read((adapter / SETTINGS).read_bytes(), str(model.adapter))
    places = [models.locate(str(place)) for place in (adapter, base)]
    shapes = [models.tensor_shapes(place, open_storage()) for place in places]
    pairs = pairs_of(shapes[0], str(model.adapter))
    check_fit(pairs, shapes[1], settings, model)
    check_room(folder, sum(item.size for item in places[1].files.values()), f"model {model.name}", "TRUST_CACHE")
    config = json.loads((base / "config.json").read_bytes())
    if config.get("tie_word_embeddings") and any(module.endswith("lm_head") for module in pairs):
        raise PreflightError(
            f"adapter {model.adapter}: changes lm_head, which in model.path={model.path} is one with the embeddings{INSTEAD}"
        )
    log.info("merging %s into a copy of %s (once on this machine)", model.adapter, model.path)
    with safe_open(adapter / WEIGHTS, framework="pt") as lora:
        for name in places[1].files:
            if name.endswith(".safetensors"):
                _merge_file(base / name, folder / name, lora, pairs, settings)
            elif name.endswith(models.CONTENT):
                shutil.copyfile(base / name, folder / name)
    _take_tokenizer(base, adapter, folder, int(config.get("vocab_size") or 0), str(model.adapter))


def _merge_file(source: Path, target: Path, lora: Any, pairs: Mapping[str, Any], settings: LoraSettings) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(source, framework="pt") as base:
        tensors = {name: base.get_tensor(name) for name in base.keys()}  # noqa: SIM118 - it is no dict
        metadata = base.metadata()
    changed = [name for name in tensors if name.removesuffix(".weight") in pairs and name.endswith(".weight")]
    for name in changed:
        module, weight = name.removesuffix(".weight"), tensors[name]
        a, b = (lora.get_tensor(f"base_model.model.{module}.lora_{which}.weight").float() for which in "AB")
        product = (b @ a) * settings.scale(module, a.shape[0])
        tensors[name] = (weight.float() + (product.T if settings.transposed else product)).to(weight.dtype).contiguous()
    if changed:
        save_file(tensors, target, metadata=metadata)
    else:
        shutil.copyfile(source, target)


def _take_tokenizer(base: Path, adapter: Path, folder: Path, vocabulary: int, path: str) -> None:
    """Puts the adapter's tokenizer and chat template in the place of the base's, as far as it brings them."""
    if any((adapter / name).is_file() for name in models.TOKENIZERS):
        _check_tokens(adapter / "tokenizer.json", vocabulary, path)
        template = _template(adapter) or _template(base)
        for name in _TOKENIZER:
            (folder / name).unlink(missing_ok=True)
            if (adapter / name).is_file():
                shutil.copyfile(adapter / name, folder / name)
    else:
        template = _template(adapter) or _template(base)
    if template is not None:
        (folder / "chat_template.json").unlink(missing_ok=True)
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def _check_tokens(tokenizer: Path, vocabulary: int, path: str) -> None:
    if not tokenizer.is_file() or not vocabulary:
        return
    values = json.loads(tokenizer.read_bytes())
    known = values.get("model", {}).get("vocab", {})
    ids = [*(known.values() if isinstance(known, dict) else range(len(known)))]
    ids += [token["id"] for token in values.get("added_tokens", [])]
    if (most := max(ids, default=0)) >= vocabulary:
        raise PreflightError(
            f"adapter {path}: its tokenizer has a token {most}, but the base has embeddings of {vocabulary}{INSTEAD}"
        )


def _template(folder: Path) -> str | None:
    """The chat template of a folder; of several the default."""
    if (folder / "chat_template.jinja").is_file():
        return (folder / "chat_template.jinja").read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            found = json.loads((folder / name).read_bytes()).get("chat_template")
            if isinstance(found, list):
                found = {item["name"]: item["template"] for item in found}.get("default")
            if found:
                return str(found)
    return None
