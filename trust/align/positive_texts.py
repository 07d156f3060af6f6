"""The texts of positives: what a writer is asked, how its tags are read, answer lists, and refusal sentences."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import regex
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from trust.align.minimal_citations import Ways
from trust.errors import RowError
from trust.text.citations import detach
from trust.text.languages import base_language
from trust.text.normalize import UNSPACED
from trust.text.sentences import split, split_list

_PACKAGE = "trust.align"
_TEMPLATES = {"em": "positives_em.j2", "cm": "positives_cm.j2"}
WRITTEN = tuple(_TEMPLATES)  # the tasks whose positives a model writes
_REFUSALS = "refusal_sentences.yaml"

_WORDS = {"em": r"(?:answer\s+)?labels?", "cm": r"claims?"}
_MOST_DIGITS = 6
_BRACKETS = "[]［］【】〔〕"
# Brackets that are no tag, put aside as characters that no text holds, so that nothing takes them for citations.
_ASIDE = {ord(mark): chr(0xE000 + index) for index, mark in enumerate(_BRACKETS)}
_PUT_ASIDE = regex.compile(f"[{''.join(_ASIDE.values())}]")
_UNSPACED = regex.compile(UNSPACED)
_COMMAS = {"zh": "、", "ja": "、", "ar": "، ", "fa": "، "}
_STOPS = {"zh": "。", "ja": "。", "hi": "।", "bn": "।"}


@dataclass(frozen=True)
class Label:
    """A supported gold answer as a writer is given it.

    Attributes:
        number: from 1.
        text: the alias that is used.
        docs: indexes of the documents that support it.
    """

    number: int
    text: str
    docs: frozenset[int]


@dataclass(frozen=True)
class Tagged:
    """A sentence with the labels that are tagged in it.

    Attributes:
        text: without its tags, else as written.
        labels: numbers of its labels.
        gap: what parts it from the sentence before.
    """

    text: str
    labels: frozenset[int]
    gap: str


def prompt(task: str, row: Mapping[str, Any], labels: Sequence[Label], most: int) -> list[dict[str, str]]:
    """What the writer is asked: in task em with the supporting documents, in their order; in task cm with the claims alone.

    Args:
        most: sentences.

    Raises:
        RowError: a supporting document has no text.
    """
    supporting = sorted(frozenset().union(*(label.docs for label in labels))) if task == "em" else []
    docs = []
    for index in supporting:
        title, text = (row["docs"][index].get(key) for key in ("title", "text"))
        if not isinstance(text, str):
            raise RowError("doc_without_text", f"document {index + 1} has no text", f"docs[{index}].text")
        docs.append({"title": (title or "").strip(), "text": text})
    made = _template(task).render(question=row["question"], docs=docs, labels=labels, most=most)
    return [{"role": "user", "content": made}]


def identity() -> dict[str, str]:
    """All texts of this module's files, for fingerprints."""
    return {name: _read(name) for name in (*_TEMPLATES.values(), _REFUSALS)}


def read_tagged(text: str, task: str, language: str, known: Collection[int]) -> tuple[list[Tagged], int]:
    """The sentences of a writer's text that have a tag of a known label, and how many have none and are left out, as
    published (facts.md B7 6).

    A tag belongs to its sentence as a citation does (`trust.text.sentences`): also behind the full stop. One tag may name
    several labels ("[Claim 1, Claim 2]").

    Raises:
        RowError: `no_tagged_sentence`: nothing would be left; `unknown_bracket`: a sentence that is left holds a bracket
            that is no tag, a tag of a label that there is not, or half of one.
    """
    marked = _as_citations(text, task, known)
    sentences = split(marked, language, ("square",))
    kept: list[Tagged] = []
    end = 0
    for sentence in sentences:
        gap = "".join(mark for mark in marked[end : sentence.start] if mark.isspace())
        end = max(end, sentence.start + len(sentence.text))
        if sentence.numbers:
            body = detach(sentence.text, ("square",)).text.strip()
            kept.append(Tagged(body, frozenset(sentence.numbers), gap))
    if not kept:
        raise RowError("no_tagged_sentence", f"no sentence has a tag of a label: {text!r}")
    if any(_PUT_ASIDE.search(sentence.text) for sentence in kept):
        raise RowError("unknown_bracket", f"a bracket is left that is no tag of a label: {text!r}")
    return kept, len(sentences) - len(kept)


def joined(sentences: Sequence[tuple[str, str]]) -> str:
    """A text of sentences, each given with what parts it from the one before."""
    text = ""
    for gap, sentence in sentences:
        if text:
            touching = not gap and not _UNSPACED.match(text[-1]) and not _UNSPACED.match(sentence)
            text += (" " if touching else gap) + sentence
        else:
            text = sentence
    return text


def has_bracket(text: str) -> bool:
    """Whether a text holds a bracket that could be taken for a citation."""
    return any(mark in text for mark in _BRACKETS)


def listable(alias: str) -> bool:
    """Whether an answer list can hold an alias as one item."""
    return not has_bracket(alias) and len(split_list(alias)) == 1


def as_list(items: Sequence[str], language: str, ways: Ways) -> str:
    """An answer list, by the commas and full stops of its language (`lists=language`)."""
    base = base_language(language) if ways.lists == "language" else ""
    return _COMMAS.get(base, ", ").join(items) + _STOPS.get(base, ".")


def refusal(language: str, own: Mapping[str, str]) -> str:
    """The refusal sentence of a language.

    Args:
        own: language -> sentence, before those that are known.

    Raises:
        RowError: `no_refusal_sentence`.
    """
    base = base_language(language)
    sentence = own.get(base, _refusals().get(base))
    if sentence is None:
        raise RowError(
            "no_refusal_sentence",
            f"there is no refusal sentence in {language}: give one as refusals.{base}=..., or correct the row's language",
            "language",
        )
    return sentence


@cache
def _refusals() -> dict[str, str]:
    return dict(yaml.safe_load(_read(_REFUSALS)))


@cache
def _read(name: str) -> str:
    return resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


@cache
def _template(task: str) -> Any:
    loader = PackageLoader(_PACKAGE, "")
    made = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return made.get_template(_TEMPLATES[task])


@cache
def _tag(task: str) -> "regex.Pattern[str]":
    word = _WORDS[task]
    item = rf"\#?\d{{1,{_MOST_DIGITS}}}"
    listed = rf"{word}\s*{item}(?:\s*(?:[,;&]|,?\s*and\b)\s*(?:{word}\s*)?{item})*"
    return regex.compile(rf"[\[［【]\s*{listed}\s*[\]］】]", regex.IGNORECASE)


def _as_citations(text: str, task: str, known: Collection[int]) -> str:
    """The text with tags of known labels as citations ("[Claim 1]" is "[1]"), and all other brackets put aside."""
    made, at = [], 0
    for match in _tag(task).finditer(text):
        numbers = [int(number) for number in regex.findall(r"\d+", match.group())]
        if all(number in known for number in numbers):
            made.append(text[at : match.start()].translate(_ASIDE) + "".join(f"[{number}]" for number in numbers))
            at = match.end()
    return "".join(made) + text[at:].translate(_ASIDE)
