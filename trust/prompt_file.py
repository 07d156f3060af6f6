"""Reading and checking prompt files (form: see `trust.prompts`)."""

import difflib
import importlib.resources
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trust.errors import ConfigError, PreflightError
from trust.storage import Storage, absolute, open_storage

_CITATION = re.compile(r"\s?\[(\d+)\]")
_TEXTS = ("instruction", "demo_sep", "demo_prompt", "doc_prompt")
_OPTIONAL = ("demos", "refusal_instruction", "refusal_demos")
# The published refusal files call their answered demonstrations so.
_SYNONYMS = {"positive_demos": "demos"}


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
            raise ConfigError(f"{source}: expected an object with instruction, demo_prompt, doc_prompt, demos")
        content = {_SYNONYMS.get(key, key): value for key, value in content.items()}
        known = [*_TEXTS, *_OPTIONAL]
        for key in content:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                raise ConfigError(f"{source}: unknown key {key}" + (f"; did you mean {near[0]}?" if near else ""))
        for key in _TEXTS:
            if not isinstance(content.get(key), str):
                raise ConfigError(f"{source}: {key} must be a text")
        _places(content["demo_prompt"], f"{source}: demo_prompt", once=("A",), some=("Q",))
        _places(content["doc_prompt"], f"{source}: doc_prompt", once=("P",), some=())
        instruction = content.get("refusal_instruction")
        if instruction is not None and not isinstance(instruction, str):
            raise ConfigError(f"{source}: refusal_instruction must be a text")
        return cls(
            source=source,
            **{key: content[key] for key in _TEXTS},
            demos=_demos(content.get("demos"), f"{source}: demos"),
            refusal_instruction=instruction,
            refusal_demos=_demos(content.get("refusal_demos"), f"{source}: refusal_demos"),
        )

    def to_plain(self) -> dict[str, Any]:
        """The content as plain containers; `parse` reads it again."""
        plain = asdict(self)
        del plain["source"]
        return {**plain, "demos": list(self.demos), "refusal_demos": list(self.refusal_demos)}


def load_prompt(file: str, storage: Storage | None = None) -> PromptFile:
    """Reads a prompt file.

    Args:
        file: `package://trust/...` (a file in an installed package), a path, or an s3:// address.
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
    try:
        content = json.loads(data)
    except ValueError as error:
        raise ConfigError(f"{file}: not JSON: {error}") from error
    return PromptFile.parse(content, file)


def cited(text: str) -> list[int]:
    """The document numbers that `text` cites, as [1][2]."""
    return [int(number) for number in _CITATION.findall(text)]


def without_citations(text: str) -> str:
    return _CITATION.sub("", text)


def _places(template: str, where: str, once: tuple[str, ...], some: tuple[str, ...]) -> None:
    for name in once:
        if template.count(f"{{{name}}}") != 1:
            raise ConfigError(f"{where} must hold {{{name}}} exactly once")
    for name in some:
        if f"{{{name}}}" not in template:
            raise ConfigError(f"{where} must hold {{{name}}}")


def _demos(demos: Any, where: str) -> tuple[dict[str, Any], ...]:
    if demos is None:
        return ()
    if not isinstance(demos, list | tuple):
        raise ConfigError(f"{where} must be a list")
    return tuple(_demo(demo, f"{where}[{index}]") for index, demo in enumerate(demos))


def _demo(demo: Any, where: str) -> dict[str, Any]:
    if not isinstance(demo, Mapping):
        raise ConfigError(f"{where} must be an object with question, answer and docs")
    question, answer, docs = demo.get("question"), demo.get("answer"), demo.get("docs") or []
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"{where}.question must be a text that is not empty")
    lines = [answer] if isinstance(answer, str) else answer
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) and line.strip() for line in lines):
        raise ConfigError(f"{where}.answer must be a text or a list of texts, not empty")
    if not isinstance(docs, list):
        raise ConfigError(f"{where}.docs must be a list")
    for number, doc in enumerate(docs):
        if not isinstance(doc, Mapping) or not isinstance(doc.get("text"), str):
            raise ConfigError(f"{where}.docs[{number}].text must be a text")
        if not isinstance(doc.get("title", ""), str):
            raise ConfigError(f"{where}.docs[{number}].title must be a text")
    beyond = [number for line in lines for number in cited(line) if not 1 <= number <= len(docs)]
    if beyond:
        raise ConfigError(f"{where}.answer cites [{beyond[0]}], but there are {len(docs)} documents")
    kept = [{"title": doc.get("title", ""), "text": doc["text"]} for doc in docs]
    return {"question": question, "answer": answer, "docs": kept}
