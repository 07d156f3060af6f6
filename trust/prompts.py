"""Prompts: files in the published form (JSON, or the same in YAML), and rendering a row with them.

A file holds `instruction`, `demo_prompt` (with {INST} {Q} {D} {A}), `doc_prompt` (with {ID} {T} {P}), `demo_sep` and
`demos` (question, answer, docs): the form of ALCE (Gao et al., 2023) and of Trust-Align. A refusal prompt also takes
`refusal_demos` and, where it is there, `refusal_instruction`. A prompt is the demonstrations and then the row, each in
`demo_prompt`, with `demo_sep` between.

Two things differ from the published code. Demonstrations are drawn once a run by `seed` alone, so that a prompt can be
made again and an engine can keep the common beginning; there they are drawn anew for each row and shuffled unseeded.
And the template is followed to the letter; there the blank before a demonstration's answer is lost.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from trust.errors import ConfigError, RowError
from trust.prompt_file import PromptFile, cited, lines_of, load_prompt, without_citations
from trust.storage import Storage

Messages = list[dict[str, str]]
Cut = Callable[[str, int], str]

_PLACE = re.compile(r"\{(INST|Q|D|A|ID|T|P)\}")


@dataclass
class PromptConfig:
    """How a row is put to the model.

    Attributes:
        name: how tables and reports call this prompt.
        file: `package://trust/...`, a path or an s3:// address; used for every task.
        files: task (em, em5, cm, none) -> file.
        refusal: tell the model to refuse where the documents hold no answer, and show it refusals.
        shots: demonstrations; a refusal prompt takes half of them (rounded down) from `refusal_demos`.
        seed: which demonstrations, and their order.
        docs: documents shown, the first of the row in its order; 0 is closed book.
        exact_docs: a row with more or fewer documents fails.
        doc_tokens: what is shown of a document, title and text, in the model's tokens; null shows all.
        max_tokens: length of an answer, where `sampling.max_tokens` does not say.
        demo_docs: documents that a demonstration shows, and those that it cites; null is as many as `docs`.
        chat: send one user message through the model's chat template; false sends the text as it is.
    """

    name: str
    file: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    refusal: bool = False
    shots: int = 2
    seed: int = 42
    docs: int = 5
    exact_docs: bool = False
    doc_tokens: int | None = None
    max_tokens: int = 300
    demo_docs: int | None = None
    chat: bool = True

    def __post_init__(self) -> None:
        if not self.file and not self.files:
            raise ConfigError("prompt.file is not set: add prompt.file=... or prompt.files (a file a task)")
        if self.file and self.files:
            raise ConfigError("prompt.file stands beside prompt.files (a file a task): use prompt=file prompt.file=...")
        for key in ("shots", "docs", "demo_docs"):
            if (getattr(self, key) or 0) < 0:
                raise ConfigError(f"prompt.{key}={getattr(self, key)}: cannot be negative")
        for key in ("doc_tokens", "max_tokens"):
            if (value := getattr(self, key)) is not None and value < 1:
                raise ConfigError(f"prompt.{key}={value}: must be at least 1")


class _Drawn(NamedTuple):
    """A demonstration and its place in the draw and in its file."""

    rank: str
    kind: str
    place: int
    demo: dict[str, Any]


class Prompt:
    """Renders rows. Holds the texts, so that it needs no file where it runs.

    Args:
        config: the options.
        texts: task -> prompt file; the empty task stands for all that are not named.
        cut: gives the first so many tokens of a text as text, by the model's tokenizer; needed where `doc_tokens` is set.

    Raises:
        ConfigError: a file has too few demonstrations, or does not fit the options.
    """

    def __init__(self, config: PromptConfig, texts: Mapping[str, PromptFile], cut: Cut | None = None) -> None:
        self.config = config
        self._cut = cut
        self.texts = dict(texts)
        self._heads = {task: self._head(text) for task, text in self.texts.items()}

    @classmethod
    def load(cls, config: PromptConfig, storage: Storage | None = None) -> "Prompt":
        """Reads the files that `config` names.

        Raises:
            ConfigError: names file, key and demonstration at fault.
        """
        named = {**({"": config.file} if config.file else {}), **config.files}
        return cls(config, {task: load_prompt(file, storage) for task, file in named.items()})

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], cut: Cut | None = None) -> "Prompt":
        """The prompt that `to_plain` wrote down."""
        texts = {task: PromptFile.parse(text, task or "prompt") for task, text in plain["texts"].items()}
        return cls(PromptConfig(**plain["config"]), texts, cut)

    def to_plain(self) -> dict[str, Any]:
        """Options and texts as plain containers, to cross to another process."""
        return {
            "config": asdict(self.config),
            "texts": {task: text.to_plain() for task, text in self.texts.items()},
        }

    def identity(self) -> dict[str, Any]:
        """All that changes what is rendered, without where the files lie."""
        options = asdict(self.config)
        del options["file"], options["files"], options["max_tokens"]
        if options["demo_docs"] is None:  # as in runs that were made before there was this option
            del options["demo_docs"]
        return {**options, "texts": self.to_plain()["texts"]}

    def shown(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The row's documents that the prompt shows, in the order shown, cut where `doc_tokens` says so."""
        docs = list(row.get("docs") or [])[: self.config.docs]
        limit = self.config.doc_tokens
        return docs if limit is None or self._cut is None else [_shortened(doc, limit, self._cut) for doc in docs]

    def render(self, row: Mapping[str, Any]) -> Messages | str:
        """The prompt for a row of the samples table: one user message, or plain text where `chat` is off.

        Raises:
            RowError: `no_prompt_for_task`, `question_empty`, `wrong_number_of_docs`, `doc_without_text`.
        """
        task = row.get("task") or ""
        key = task if task in self.texts else ""
        if key not in self.texts:
            known = ", ".join(sorted(self.texts))
            raise RowError("no_prompt_for_task", f"prompt.files has no file for task {task!r} (only {known})", "task")
        question = row.get("question")
        if not isinstance(question, str) or not question.strip():
            raise RowError("question_empty", "the question is empty", "question")
        count = len(row.get("docs") or [])
        if self.config.exact_docs and count != self.config.docs:
            raise RowError(
                "wrong_number_of_docs",
                f"the row has {count} documents, the prompt shows exactly {self.config.docs}",
                "docs",
            )
        text = self.texts[key]
        template = text.demo_prompt[: text.demo_prompt.index("{A}")]
        values = {"INST": self._instruction(text), "Q": question}
        asked = _fill(template, values, _documents(text.doc_prompt, self.shown(row))).rstrip()
        whole = self._heads[key] + asked
        return [{"role": "user", "content": whole}] if self.config.chat else whole

    def _instruction(self, text: PromptFile) -> str:
        return text.refusal_instruction or text.instruction if self.config.refusal else text.instruction

    def _head(self, text: PromptFile) -> str:
        """The demonstrations, each followed by the separator."""
        config = self.config
        if config.docs and "{D}" not in text.demo_prompt:
            raise ConfigError(f"{text.source}: demo_prompt has no place for documents ({{D}}); set prompt.docs=0")
        refusals = config.shots // 2 if config.refusal else 0
        if config.refusal and not (text.refusal_demos or text.refusal_instruction):
            raise ConfigError(f"{text.source}: has neither refusal_instruction nor refusal_demos; prompt.refusal=false")
        chosen = [*self._draw(text, "demos", config.shots - refusals), *self._draw(text, "refusal_demos", refusals)]
        chosen.sort(key=lambda drawn: (drawn.rank, drawn.place))
        return "".join(self._demonstration(text, drawn) + text.demo_sep for drawn in chosen)

    def _draw(self, text: PromptFile, kind: str, count: int) -> list[_Drawn]:
        """`count` demonstrations with the hash that orders them. Hashes, not a generator: the same draw for ever."""
        demos: Sequence[dict[str, Any]] = getattr(text, kind)
        if count > len(demos):
            there = len(text.demos)
            most = min(2 * there, 2 * len(text.refusal_demos) + 1) if self.config.refusal else there
            raise ConfigError(
                f"{text.source}: prompt.shots={self.config.shots} needs {count} of {kind}, the file has {len(demos)}: "
                f"add demonstrations, or set prompt.shots={most}"
            )
        ranked = [
            _Drawn(hashlib.sha256(f"{self.config.seed}:{kind}:{index}".encode()).hexdigest(), kind, index, demo)
            for index, demo in enumerate(demos)
        ]
        return sorted(ranked, key=lambda drawn: (drawn.rank, drawn.place))[:count]

    def _demonstration(self, text: PromptFile, drawn: _Drawn) -> str:
        demo, config = drawn.demo, self.config
        lines = lines_of(demo)
        shown: list[dict[str, Any]] = []
        if config.docs:
            wanted = config.docs if config.demo_docs is None else config.demo_docs
            docs = demo["docs"] or []
            if len(docs) < wanted:
                key = "docs" if config.demo_docs is None else "demo_docs"
                raise ConfigError(
                    f"{text.source}: demonstration {drawn.place + 1}: {drawn.kind}[{drawn.place}].docs has {len(docs)} "
                    f"documents, and prompt.{key}={wanted} shows {wanted}: add documents, or set "
                    f"prompt.demo_docs={len(docs)} where demonstrations may show fewer than rows"
                )
            # Never fewer than it cites: a demonstration that cites what it does not show teaches to make things up.
            shown = docs[: max([wanted, *(n for line in lines for n in cited(line))])]
        else:
            lines = [without_citations(line) for line in lines]
        template, answer = text.demo_prompt, lines[0] if lines else ""
        if not isinstance(demo["answer"], str):
            before, after = template.split("{A}")
            template, answer = before.rstrip() + "\n{A}" + after, "\n".join(lines)
        values = {"INST": self._instruction(text), "Q": demo["question"], "A": answer}
        return _fill(template, values, _documents(text.doc_prompt, shown))


def _shortened(doc: dict[str, Any], limit: int, cut: Cut) -> dict[str, Any]:
    """The document with the end of its text cut off, so that `title: text` has at most so many tokens."""
    if not isinstance(doc.get("text"), str):
        return doc
    title = f"{doc.get('title') or ''}: "
    return {**doc, "text": cut(title + doc["text"], limit)[len(title) :]}


def _documents(template: str, docs: Sequence[Mapping[str, Any]]) -> str:
    """The documents, numbered from 1, each in `doc_prompt`."""
    parts = []
    for number, doc in enumerate(docs, start=1):
        if not isinstance(doc.get("text"), str):
            raise RowError("doc_without_text", f"document {number} has no text", f"docs[{number - 1}].text")
        parts.append(_substitute(template, {"ID": str(number), "T": doc.get("title") or "", "P": doc["text"]}))
    return "".join(parts)


def _fill(template: str, values: Mapping[str, str], documents: str) -> str:
    """`template` with its places filled in one pass, so that braces in what is put in stay what they are."""
    if not documents:
        template = template.replace("{D}\n", "").replace("{D}", "")
    return _substitute(template, {**values, "D": documents})


def _substitute(template: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), template)
