"""Reading and checking prompt files (form: see `trust.prompts`)."""

import importlib.resources
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from trust.config import nearest
from trust.errors import ConfigError, PreflightError
from trust.storage import Storage, absolute, open_storage

_CITATION = re.compile(r"\s?\[(\d+)\]")
_PLACE = re.compile(r"\{(\w+)\}")
_TEXTS = ("instruction", "demo_sep", "demo_prompt", "doc_prompt")
_OPTIONAL = ("demos", "refusal_instruction", "refusal_demos")
# The published refusal files call their answered demonstrations so.
_SYNONYMS = {"positive_demos": "demos"}
_PLACES = {
    "demo_prompt": {"INST": "instruction", "Q": "question", "D": "documents", "A": "answer"},
    "doc_prompt": {"ID": "number", "T": "title", "P": "text"},
}
_DEMO = ("question", "answer", "docs")
_DOC = ("title", "text")
# What documents of published files carry beside; it is left alone.
_DOC_BESIDE = ("id", "doc_id", "score", "rec_score", "answers_found", "summary", "extraction")


@dataclass(frozen=True)
class PromptFile:
    """One prompt file, checked.

    Attributes:
        source: the file, for messages.
        demos, refusal_demos: dicts with `question` (str), `answer` (str or list of str), `docs` (list of title, text).
    """

    source: str
    instruction: str
    demo_sep: str
    demo_prompt: str
    doc_prompt: str
    demos: tuple[dict[str, Any], ...] = ()
    refusal_instruction: str | None = None
    refusal_demos: tuple[dict[str, Any], ...] = ()

    @classmethod
    def parse(cls, content: Any, source: str) -> "PromptFile":
        """The file's content, checked.

        Raises:
            ConfigError: names file, key and demonstration at fault.
        """
        if not isinstance(content, Mapping):
            raise ConfigError(
                f"{source}: it holds {_kind(content)}: a prompt file is an object with {', '.join(_TEXTS)} and demos"
            )
        if twice := [key for key, ours in _SYNONYMS.items() if key in content and ours in content]:
            raise ConfigError(f"{source}: {twice[0]} and {_SYNONYMS[twice[0]]} are two names of one key: keep one")
        content = {_SYNONYMS.get(key, key): value for key, value in content.items()}
        _known(content, (*_TEXTS, *_OPTIONAL), f"{source}: unknown key ")
        for key in (*_TEXTS, "refusal_instruction"):
            if key in _TEXTS and key not in content:
                raise ConfigError(f"{source}: {key} is missing: add it, a text")
            value = content.get(key)
            if not isinstance(value, str) and (key in _TEXTS or value is not None):
                raise ConfigError(f"{source}: {key} must be a text, not {_kind(value)}")
        made = cls(
            source=source,
            **{key: content[key] for key in _TEXTS},
            demos=_demos(content, "demos", source),
            refusal_instruction=content.get("refusal_instruction"),
            refusal_demos=_demos(content, "refusal_demos", source),
        )
        _check_places(made)
        return made

    def to_plain(self) -> dict[str, Any]:
        """The content as plain containers; `parse` reads it again."""
        plain = asdict(self)
        del plain["source"]
        return {**plain, "demos": list(self.demos), "refusal_demos": list(self.refusal_demos)}


def load_prompt(file: str, storage: Storage | None = None) -> PromptFile:
    """Reads a prompt file.

    Args:
        file: `package://trust/...` (a file in an installed package), a path, or an s3:// address; JSON, or YAML where its
            name ends in .yaml or .yml.
        storage: the door to s3://; None builds one from the environment.

    Raises:
        PreflightError: there is no such file.
        ConfigError: names file, key and demonstration at fault.
    """
    try:
        if file.startswith("package://"):
            package, _, inner = file.removeprefix("package://").partition("/")
            data = importlib.resources.files(package).joinpath(inner).read_bytes()
        else:
            data = (storage or open_storage()).read_bytes(absolute(file))
    except (OSError, ModuleNotFoundError) as error:
        raise PreflightError(f"prompt file {file} cannot be read: {error}") from error
    return PromptFile.parse(_read(data, file), file)


def cited(text: str) -> list[int]:
    """The document numbers that `text` cites, as [1][2]."""
    return [int(number) for number in _CITATION.findall(text)]


def without_citations(text: str) -> str:
    return _CITATION.sub("", text)


def _read(data: bytes, file: str) -> Any:
    try:
        return yaml.safe_load(data) if file.endswith((".yaml", ".yml")) else json.loads(data)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark
        place = f"line {at.line + 1}, column {at.column + 1}: " if at else ""
        raise ConfigError(f"{file}: {place}not YAML: {error.problem}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: not a text in UTF-8: {' '.join(str(error).split())}: save it as UTF-8") from error


def _check_places(file: PromptFile) -> None:
    """Whether each template has the places that it needs, and no other. Raises ConfigError."""
    for key, places in _PLACES.items():
        for name in _PLACE.findall(getattr(file, key)):
            if name not in places:
                raise ConfigError(f"{file.source}: {key} has no place {{{name}}}{_meant(name, key)}")
    for key, name in (("demo_prompt", "A"), ("doc_prompt", "P")):
        if (count := getattr(file, key).count(f"{{{name}}}")) != 1:
            raise ConfigError(
                f"{file.source}: {key} must hold {{{name}}} ({_PLACES[key][name]}) exactly once, not {count} times"
            )
    asked, _, behind = file.demo_prompt.partition("{A}")
    for name in ("Q", *(["INST"] if file.instruction or file.refusal_instruction else [])):
        if f"{{{name}}}" not in file.demo_prompt:
            raise ConfigError(
                f"{file.source}: demo_prompt must hold {{{name}}}, or the model never sees the {_PLACES['demo_prompt'][name]}"
            )
    if late := [name for name in _PLACE.findall(behind) if f"{{{name}}}" not in asked]:
        raise ConfigError(
            f"{file.source}: demo_prompt has {{{late[0]}}} behind {{A}}, where a row's prompt ends: put it before {{A}}"
        )
    for kind, index, demo in ((k, i, d) for k in ("demos", "refusal_demos") for i, d in enumerate(getattr(file, k))):
        _check_demo(file, demo, f"{file.source}: demonstration {index + 1}: {kind}[{index}]")


def _check_demo(file: PromptFile, demo: Mapping[str, Any], where: str) -> None:
    """Whether a demonstration has what the templates show. Raises ConfigError."""
    if "{D}" in file.demo_prompt and demo["docs"] is None:
        raise ConfigError(
            f"{where}.docs is missing: add the documents that the answer rests on (demo_prompt has {{D}})"
        )
    for number, doc in enumerate(demo["docs"] or []):
        if "{T}" in file.doc_prompt and doc["title"] is None:
            raise ConfigError(
                f'{where}.docs[{number}].title is missing (doc_prompt has {{T}}): add it, "" where there is none'
            )
    if "{D}" in file.demo_prompt and "{ID}" not in file.doc_prompt and any(cited(line) for line in lines_of(demo)):
        raise ConfigError(
            f"{where}.answer cites documents by number, which doc_prompt does not show: put {{ID}} into doc_prompt"
        )


def _meant(name: str, key: str) -> str:
    """What a place that is not there was to be, as the end of a sentence."""
    other = next((template for template, places in _PLACES.items() if name in places), None)
    like = next(
        (place for place in sorted(_PLACES[key], key=len, reverse=True) if name.upper().startswith(place)), None
    )
    hint = f"; it belongs into {other}" if other else f"; did you mean {{{like}}}?" if like else ""
    return f"{hint}; its places are {', '.join(f'{{{place}}} ({what})' for place, what in _PLACES[key].items())}"


def _known(content: Mapping[Any, Any], known: Iterable[str], said: str, beside: Iterable[str] = ()) -> None:
    known = list(known)
    for key in content:
        if key not in known and key not in beside:
            raise ConfigError(f"{said}{key}{nearest(str(key), known)}; known here: {', '.join(known)}")


def _demos(content: Mapping[str, Any], key: str, source: str) -> tuple[dict[str, Any], ...]:
    demos = content.get(key)
    if demos is None:
        return ()
    if not isinstance(demos, list | tuple):
        raise ConfigError(f"{source}: {key} must be a list, not {_kind(demos)}")
    return tuple(_demo(demo, f"{source}: demonstration {i + 1}: {key}[{i}]") for i, demo in enumerate(demos))


def _demo(demo: Any, where: str) -> dict[str, Any]:
    """A demonstration, checked by itself; `docs` and titles that are missing are None."""
    if not isinstance(demo, Mapping):
        raise ConfigError(f"{where} must be an object with question, answer and docs, not {_kind(demo)}")
    _known(demo, _DEMO, f"{where} has an unknown key ", beside=("id",))
    for key, add in (("question", "what is asked"), ("answer", "what the model is to answer")):
        if demo.get(key) is None:
            raise ConfigError(f"{where}.{key} is missing: add {add}")
    question, answer, docs = demo["question"], demo["answer"], demo.get("docs")
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"{where}.question must be a text that is not empty, not {_kind(question)}")
    lines = [answer] if isinstance(answer, str) else answer
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) and line.strip() for line in lines):
        raise ConfigError(f"{where}.answer must be a text or a list of texts, not empty, not {_kind(answer)}")
    if docs is not None and not isinstance(docs, list):
        raise ConfigError(f"{where}.docs must be a list, not {_kind(docs)}")
    kept = None if docs is None else [_doc(doc, f"{where}.docs[{number}]") for number, doc in enumerate(docs)]
    if beyond := [number for line in lines for number in cited(line) if not 1 <= number <= len(kept or [])]:
        raise ConfigError(
            f"{where}.answer cites [{beyond[0]}], but there are {len(kept or [])} documents: "
            "add the document, or cite one of those"
        )
    return {"question": question, "answer": answer, "docs": kept}


def _doc(doc: Any, where: str) -> dict[str, Any]:
    if not isinstance(doc, Mapping):
        raise ConfigError(f"{where} must be an object with title and text, not {_kind(doc)}")
    _known(doc, _DOC, f"{where} has an unknown key ", _DOC_BESIDE)
    if doc.get("text") is None:
        raise ConfigError(f"{where}.text is missing: add what the document says")
    for key in _DOC:
        if not isinstance(doc.get(key) or "", str):
            raise ConfigError(f"{where}.{key} must be a text, not {_kind(doc[key])}")
    return {"title": doc.get("title"), "text": doc["text"]}


def lines_of(demo: Mapping[str, Any]) -> list[str]:
    """The answer of a demonstration as lines."""
    return [demo["answer"]] if isinstance(demo["answer"], str) else list(demo["answer"])


def _kind(value: Any) -> str:
    """What a value is, in the words of JSON."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a number", Mapping: "an object"}
    empty = "an empty " if isinstance(value, str | list) and not value else "a "
    kinds |= {str: f"{empty}text", list: f"{empty}list"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), type(value).__name__)
