"""A model's tokenizer: what an engine is given for a prompt, and the same without the model's weights."""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trust import models
from trust.ask import AskFailed
from trust.cache import cache_dir
from trust.errors import PreflightError
from trust.storage import Storage, absolute, is_s3, open_storage

_SMALL = (".json", ".jinja", ".model", ".txt")  # of a model's files: all but weights
# What configs of different models call the length of the context, in tokens.
_CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")

Messages = list[dict[str, str]]


def load(directory: str, revision: str | None = None, **options: Any) -> Any:
    """The tokenizer of a model's folder or hub id; never code that comes with it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(directory, revision=revision, trust_remote_code=False, **options)


def encode(tokenizer: Any, messages: Messages | str, options: Mapping[str, Any]) -> list[int]:
    """The tokens of a prompt: chat messages through the model's template, a text as it is.

    Args:
        options: of the chat template.

    Raises:
        AskFailed: `prompt_refused`.
    """
    if isinstance(messages, str):
        return list(tokenizer(messages)["input_ids"])
    return list(_apply(tokenizer, messages, options, tokenize=True, return_dict=True)["input_ids"])


def encode_dialogue(tokenizer: Any, messages: Messages, options: Mapping[str, Any]) -> list[int]:
    """The tokens of chat messages that end with an answer, as a model is trained on them.

    Raises:
        AskFailed: `prompt_refused`.
    """
    how = {"tokenize": True, "return_dict": True, "add_generation_prompt": False}
    return list(_apply(tokenizer, messages, options, **how)["input_ids"])


def encode_behind(tokenizer: Any, context: str, continuation: str) -> tuple[list[int], int]:
    """The tokens of both as one text, and the index of the first that holds a character of the continuation, which is at least
    1: nothing comes before the first token of all. It is the number of tokens where there is none.

    Raises:
        PreflightError: the tokenizer does not tell where its tokens lie.
    """
    if not tokenizer.is_fast:
        raise PreflightError(f"{tokenizer.name_or_path}: its tokenizer does not tell where its tokens lie in a text")
    encoded = tokenizer(context + continuation, return_offsets_mapping=True, verbose=False)
    ends = [end for _, end in encoded["offset_mapping"]]
    return list(encoded["input_ids"]), next((i for i, end in enumerate(ends) if i and end > len(context)), len(ends))


def cut(tokenizer: Any, text: str, tokens: int) -> str:
    """The first so many tokens of a text, as text."""
    if tokenizer.is_fast:
        ends = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return text if len(ends) <= tokens else text[: ends[tokens - 1][1]]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return text if len(ids) <= tokens else str(tokenizer.decode(ids[:tokens]))


def written_out(tokenizer: Any, messages: Messages | str, options: Mapping[str, Any]) -> str:
    """The text behind the tokens of `encode`."""
    return messages if isinstance(messages, str) else str(_apply(tokenizer, messages, options, tokenize=False))


@dataclass(frozen=True)
class Reading:
    """How a model reads a prompt.

    Attributes:
        tokenizer: its own.
        context: tokens that a prompt and its answer have together, by the model's config; None where it does not say.
    """

    tokenizer: Any
    context: int | None


def without_weights(path: str, revision: str | None = None, storage: Storage | None = None) -> Reading:
    """Tokenizer and context of a model, of which no weights are read, fetched or converted.

    Args:
        path, revision: see `trust.models`.
        storage: the door to `s3://`; None builds one from the environment.

    Raises:
        PreflightError: they cannot be read.
    """
    with _small_files(path, storage) as (folder, options):
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # progress bars
                return Reading(load(folder, revision, **options), _context(folder, revision, options))
        except Exception as error:  # of many kinds, by what is broken in the files
            said = " ".join(str(error).split())[:300]
            raise PreflightError(f"{path}: its tokenizer cannot be loaded: {said or type(error).__name__}") from error


@contextlib.contextmanager
def _small_files(path: str, storage: Storage | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where Transformers finds the tokenizer, and with which options, for as long as the block runs."""
    if models.is_gguf(path):
        from trust.gguf import GgufPackage

        package = GgufPackage.find(path)
        converted = cache_dir() / "models" / package.key
        if converted.is_dir():
            yield str(converted), {}
        else:
            yield str(package.file.parent), {"gguf_file": package.file.name}
    elif models.is_hub_id(path) or not is_s3(path):
        yield path if models.is_hub_id(path) else absolute(path), {}
    else:
        storage, root = storage or open_storage(), absolute(path)
        with tempfile.TemporaryDirectory() as folder:
            for file in storage.list_files(root):
                name = file.path.removeprefix(root + "/")
                if "/" not in name and name.endswith(_SMALL):
                    storage.download(file.path, Path(folder) / name)
            yield folder, {}


def _context(folder: str, revision: str | None, options: Mapping[str, Any]) -> int | None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, revision=revision, trust_remote_code=False, **options)
    stated = config.get_text_config()
    found = (getattr(stated, key, None) for key in _CONTEXT)
    return min((length for length in found if isinstance(length, int) and length > 0), default=None)


def _apply(tokenizer: Any, messages: Messages, options: Mapping[str, Any], **how: Any) -> Any:
    try:
        return tokenizer.apply_chat_template(messages, **{"add_generation_prompt": True, **how}, **options)
    except Exception as error:  # templates are programs: they raise what they like
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise AskFailed("prompt_refused", f"the chat template refuses this prompt: {said}") from error
