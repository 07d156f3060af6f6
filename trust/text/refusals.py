"""Telling refusals from answers.

The published rule compares the whole response with one sentence (`ratio_to_flag`). The strict rule (`Detector`) looks
for the ways in which the languages of `refusals.yaml` say that something cannot be answered, clause by clause.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Literal

import regex
import yaml

from trust.text.fuzzy import partial_ratio
from trust.text.languages import UNDETERMINED, base_language
from trust.text.normalize import UNSPACED, has_content, normalize_answer
from trust.text.own_phrases import ANY
from trust.text.sentences import Sentence

Own = tuple[str, "regex.Pattern[str]"]
Response = Literal["answered", "refused", "empty"]

FLAG = "I apologize, but I couldn't find an answer"
THRESHOLD = 85

_STATEMENTS_BEFORE = 1  # an uncited statement such as "the documents are about X" may come before the refusal
_UNSPACED = frozenset({"zh", "ja", "th"})
_MARKS = regex.compile(r"(?<=[\p{Latin}\p{Arabic}\p{Mn}])\p{Mn}+")
_CONTRACTIONS = (
    (regex.compile(r"\bcan(?:'t|not)\b"), "can not"),
    (regex.compile(r"\bwon't\b"), "will not"),
    (regex.compile(r"(?<=\w)n't\b"), " not"),
    (regex.compile(r"\bi'm\b"), "i am"),
    (regex.compile(r"(?<=\w)'ve\b"), " have"),
    (regex.compile(r"\b(could|did|do|does|was)nt\b"), r"\1 not"),
)
_ARABIC = str.maketrans("أإآىيةك", "اااییهک") | str.maketrans({"ـ": "", "\u200c": " "})
_PAUSE = regex.compile(r"\s*[,;:()，、；：（）،؛…—–]+\s*")
_OTHER_PUNCTUATION = regex.compile(r"[\p{P}\p{S}--[,*|()^$]]+", regex.V1)
_BLANKS = regex.compile(r"\s+")
_OPERATORS = regex.compile(r"([*|()$])")  # of a listed phrase
_CLAUSE_END = regex.compile(r"[;；؛—–]|\s-\s")
_QUOTED = regex.compile(r'"[^"]*"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|「[^」]*」|『[^』]*』')


def ratio_to_flag(text: str, flag: str = FLAG) -> int:
    """Fuzzy ratio (0 to 100) between a refusal sentence and a response, both normalised (facts.md A3)."""
    return partial_ratio(normalize_answer(flag), normalize_answer(text))


@dataclass(frozen=True)
class Finding:
    """What a response is.

    Attributes:
        response: `answered`, `refused` or `empty`.
        phrase: the phrase, as listed, that said so (also in an answer that admits gaps), else None.
        refusing: indexes of the sentences that only say that something cannot be answered.
    """

    response: Response
    phrase: str | None = None
    refusing: frozenset[int] = frozenset()


class Detector:
    """Classifies responses by phrases.

    A response without letters, digits or symbols is `empty`. It is `refused` if a clause says that the speaker or the
    documents have no answer, at most one uncited statement comes before that clause, and nothing else in it is cited:
    an apology followed by a cited answer is an answer, and one followed by uncited remarks is a refusal. Everything
    else is `answered`, however short. Quoted words never refuse, unless the whole response is in quotes.

    Args:
        own: language code or `any` -> further phrases (`trust.text.own_phrases`), taken literally, found anywhere in a
            clause from a word's start.
    """

    def __init__(self, own: Mapping[str, Sequence[str]] | None = None) -> None:
        self._own = {
            language: [(phrase, _literal(phrase)) for phrase in phrases] for language, phrases in (own or {}).items()
        }

    def classify(self, sentences: Sequence[Sentence], language: str) -> Finding:
        """What a response is; the phrases of its language and of English are tried, of all where it has none.

        Args:
            sentences: of the response, from `trust.text.sentences.split`.
            language: language code of the row.
        """
        if not sentences:
            return Finding("empty")
        languages = _languages(base_language(language))
        own = self._own_of(base_language(language))
        refusing: set[int] = set()
        phrase: str | None = None
        cited_statement = False
        statements_before = statements = 0
        quoted = len(sentences) == 1 and _QUOTED.fullmatch(sentences[0].claim.strip()) is not None
        for index, sentence in enumerate(sentences):
            says_more = apologised = False
            refused = False
            for clause, cited in _clauses(sentence, languages, keep_quotes=quoted):
                found = _match(clause, languages, own, at_start=not says_more)
                if found:
                    refused = True
                    if phrase is None:
                        phrase, statements_before = found, statements
                elif _is_lead(clause, languages):
                    apologised = True
                elif not sentence.lead_in:
                    says_more = True
                    cited_statement = cited_statement or cited
                    statements += not refused
            if (refused or apologised) and not says_more:
                refusing.add(index)
        if phrase is None or cited_statement or statements_before > _STATEMENTS_BEFORE:
            return Finding("answered", phrase, frozenset(refusing) if phrase else frozenset())
        return Finding("refused", phrase, frozenset(refusing))

    def _own_of(self, language: str) -> list[Own]:
        """Own phrases for a row: those of its language and of any; all of them where its language is not said."""
        wanted = list(self._own) if language == UNDETERMINED else [language, ANY]
        return [phrase for name in wanted for phrase in self._own.get(name, ())]


def _match(clause: str, languages: tuple[str, ...], own: list[Own], at_start: bool) -> str | None:
    for phrase, pattern in own:
        if pattern.search(clause):
            return phrase
    for language in languages:
        for phrase, pattern, needs_start, words in _phrases(language):
            if not at_start and needs_start:
                continue
            if any(word in clause for word in words) and pattern.search(clause):
                return phrase
    return None


def _literal(phrase: str) -> "regex.Pattern[str]":
    folded = _fold(phrase)
    start = "" if regex.match(UNSPACED, folded) else r"(?<!\w)"
    return regex.compile(start + regex.escape(folded))


def _clauses(sentence: Sentence, languages: tuple[str, ...], keep_quotes: bool) -> list[tuple[str, bool]]:
    """The sentence's clauses, folded, each with whether a citation stands in it."""
    text = sentence.claim
    cuts = {match.end() for match in _CLAUSE_END.finditer(text)}
    for language in languages:
        cuts |= {match.start("word") for match in _contrast(language).finditer(text)}
    edges = sorted({0, len(text), *(cut for cut in cuts if 0 < cut < len(text))})
    clauses: list[tuple[str, bool]] = []
    for start, end in pairwise(edges):
        part = text[start:end]
        if not has_content(part):
            continue
        first = start == 0
        cited = any((start < at or first) and (at <= end or end == len(text)) for at, _ in sentence.cited)
        clauses.append((_fold(part if keep_quotes else _QUOTED.sub('"x"', part)).strip(" ,"), cited))
    return clauses


def _is_lead(clause: str, languages: tuple[str, ...]) -> bool:
    return any(_leads(language).fullmatch(clause) is not None for language in languages)


def _languages(language: str) -> tuple[str, ...]:
    data = _data()
    if language not in data:
        return tuple(sorted(data))
    return (language,) if language == "en" else (language, "en")


@cache
def _data() -> dict[str, dict[str, list[str]]]:
    text = resources.files("trust.text").joinpath("refusals.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@lru_cache(maxsize=64)
def _contrast(language: str) -> "regex.Pattern[str]":
    words = "|".join(regex.escape(word) for word in _data()[language]["contrast"])
    edges = ("", "") if language in _UNSPACED else (r"(?<!\w)", r"(?!\w)")
    pause = r"(?<=[,，、。]\s*)" if language in _UNSPACED else ""
    return regex.compile(rf"{pause}{edges[0]}(?P<word>{words}){edges[1]}", regex.IGNORECASE)


@lru_cache(maxsize=64)
def _leads(language: str) -> "regex.Pattern[str]":
    words = _data()[language]["lead"] + _data()[language]["contrast"]
    return regex.compile(rf"(?:(?:{'|'.join(_alternatives(word) for word in words)})[\s,]*)+")


@lru_cache(maxsize=64)
def _phrases(language: str) -> list[tuple[str, "regex.Pattern[str]", bool, tuple[str, ...]]]:
    """The phrases as listed, as patterns, whether they must open a sentence, and words of which no match lacks all."""
    entry = _data()[language]
    contrast = "|".join(_alternatives(word) for word in entry["contrast"])
    start = rf"(?:{_leads(language).pattern})?+"
    compiled = []
    for phrase in entry["phrases"]:
        body = _alternatives(phrase.strip("^"))
        if phrase.startswith("^^"):
            pattern = rf"^{start}{body}"
        elif phrase.startswith("^"):
            pattern = rf"(?:^{start}|,\s|(?:{contrast})[\s,]*|\bthat ){body}"
        else:
            pattern = body if language in _UNSPACED else rf"(?<!\w){body}"
        compiled.append((phrase, regex.compile(pattern), phrase.startswith("^^"), _needed(phrase.strip("^"))))
    return compiled


def _alternatives(phrase: str) -> str:
    """A listed phrase as a pattern over folded text."""
    parts = []
    for part in _OPERATORS.split(phrase):
        if part == "*":
            parts.append(r".{0,60}?")
        elif part == "$":
            parts.append(r"[\s,]*$")
        elif part in ("|", "(", ")"):
            parts.append("(?:" if part == "(" else part)
        else:
            parts.append(regex.sub(r"(?:\\?\s)+", r"\\s?", regex.escape(_fold(part, keep_edges=True))))
    return "".join(parts)


def _needed(phrase: str) -> tuple[str, ...]:
    """Words of which every text that a listed phrase matches holds at least one: looking for them is far cheaper.

    The empty word, which every text holds, where no such words can be named.
    """
    needed: list[list[str]] = [[""]]
    inside: list[list[str]] = []  # words of each alternative of the group that is open
    depth = 0
    for part in _OPERATORS.split(phrase):
        if part == "(":
            depth += 1
            inside = [[]] if depth == 1 else inside
        elif part == ")":
            depth -= 1
            if not depth:
                needed.append([max(words, key=len, default="") for words in inside])
        elif part == "|":
            if not depth:
                return ("",)
            if depth == 1:
                inside.append([])
        elif part not in ("*", "$"):
            words = _fold(part).split()
            if depth == 1:
                inside[-1] += words
            elif not depth:
                needed += [[word] for word in words]
    return tuple(max(needed, key=lambda words: min(map(len, words))))


def _fold(text: str, keep_edges: bool = False) -> str:
    """Case, width, accents, contractions and punctuation made one; pauses become a comma between spaces."""
    if text.isascii():
        text = text.lower()
    else:
        text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("ʼ", "'")
        text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text))).translate(_ARABIC)
    for pattern, long in _CONTRACTIONS:
        text = pattern.sub(long, text)
    text = _OTHER_PUNCTUATION.sub(" ", _PAUSE.sub(" , ", text))
    text = _BLANKS.sub(" ", text)
    return text if keep_edges else text.strip()
