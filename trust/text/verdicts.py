"""Reading NoMIRACL's verdict out of a response: the answer is present, the model does not know, or neither was said.

Two readings: the published rules in their published order (`published_verdict`), and the last explicit verdict with
negations, all kinds of quotes and the words of the row's own language (`explicit_verdict`). Source: arXiv 2312.11361,
sec. 4, whose released rules the published reading follows.
"""

import unicodedata
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

import regex
import yaml

from trust.text.languages import UNDETERMINED, base_language

Said = Literal["answer_present", "i_dont_know", "invalid"]

_UNKNOWN, _PRESENT = "i don't know", "yes, answer is present"
_PUBLISHED: tuple[tuple[str, Said], ...] = (
    (_UNKNOWN, "i_dont_know"),
    (_PRESENT, "answer_present"),
    ("answer is present", "answer_present"),
    ("answer is not present", "i_dont_know"),
)
_BRACKETED = regex.compile(r"\[[0-9]+\]")
_SHORT = 10

_SAID: dict[str, Said] = {"present": "answer_present", "unknown": "i_dont_know"}
_QUOTES = str.maketrans("‘’‛ʼ´`＇“”„«»", "'''''''\"\"\"\"\"")
_EMPHASIS = regex.compile(r"[*_#~]+")
_LINES, _BLANKS = regex.compile(r"\s*\n\s*"), regex.compile(r"[^\S\n]+")
_ANSWER = regex.compile(r"\banswer ?:")
_ARABIC = str.maketrans("أإآىيةك", "ااایی" + "هک") | {0x200C: None}  # and the non-joiner, which many leave out
_MARKS = regex.compile(r"(?<=\p{Arabic})[\p{Mn}ـ]+")
_SENTENCE = regex.compile(r"[.!?。؟।](?![\"'])|\n")
# What is said under a condition, and the options of the prompt said again (one by one, or as a list), are no verdicts.
_SUPPOSED = regex.compile(r"\b(?:if|unless|whether|would|either|please|respond)\b")
_MENU = regex.compile(r"\b(?:options|possible (?:outputs|answers|responses)|(?:select|choose) one)\b[^:]*:")
_NEGATED = regex.compile(r"\b(?:not|never|cannot|neither|n't)\b[^,;:]*$")
_OF_SOME = regex.compile(
    r"[ ,:(-]*(?:(?:in|for|from|within|by) )?(?:the )?"
    r"(?:(?:other|remaining|rest|first|second|last)\b|(?:(?:context|passage|document)s? ?)?\[?\d)"
)
_NUMBERED = regex.compile(r"(?:^|\n)[ \"'(]*(?:(?:context|passage|document) ?)?\[?\d+[\]).:]*[ :-]*[^.\n]*$")


class Verdict(NamedTuple):
    """What a response says of its question.

    Attributes:
        said: the verdict; `invalid` where none can be read.
        phrase: the words that said it, as they were read; empty where none did.
    """

    said: Said
    phrase: str = ""


def published_verdict(text: str) -> Verdict:
    """The verdict by the published rules, bug for bug.

    Both phrases at once are always invalid (the released check of which prevails counts a phrase of several words as one
    word, and so never finds it), and "no answer is present" is a yes.
    """
    folded = text.replace("\n", " ").replace("\t", " ").lower()
    if _UNKNOWN in folded and _PRESENT in folded:
        return Verdict("invalid")
    for phrase, said in _PUBLISHED:
        if phrase in folded:
            return Verdict(said, phrase)
    if len(folded) < _SHORT and (match := _BRACKETED.search(folded)):
        return Verdict("answer_present", match.group())
    return Verdict("invalid")


def explicit_verdict(text: str, language: str) -> Verdict:
    """The last verdict that the response states, in English or in its own language.

    - Where there is a verdict behind the last "Answer:", only what stands there counts: a rationale may name both options.
    - Options that are only said again, and what is said under a condition, are no verdicts.
    - Of a list of verdicts on single passages, one that finds the answer decides.
    - A bare yes or no counts where it comes first and nothing else speaks. "No, answer is present" contradicts itself and is
      invalid; so is a response that only names a passage.

    Args:
        text: the response.
        language: language code of the row; `und` tries the words of all languages.
    """
    folded = _fold(text)
    answers = [match.end() for match in _ANSWER.finditer(folded)]
    for part in (folded[answers[-1] :], folded) if answers else (folded,):
        if found := _read(part.strip(" \n\"'.:-"), language):
            return found
    return Verdict("invalid")


class _Statement(NamedTuple):
    start: int
    end: int
    said: Said
    of_some: bool  # of one passage or some, not of all


def _read(text: str, language: str) -> Verdict | None:
    rules = [_rules(name) for name in _languages(language)]
    opening = next((found for rule in rules if (found := rule.opening.match(text))), None)
    first = opening.lastgroup if opening else None
    for prefix in ("", "loosely_"):
        stated = _statements(text, rules, prefix)
        if not stated:
            continue
        some = [one for one in stated if one.of_some and one.said == "answer_present"]
        chosen = some[-1] if some else stated[-1]
        phrase = text[chosen.start : chosen.end]
        if opening and opening.end() <= chosen.start <= opening.end() + 2 and _SAYS[first or ""] != chosen.said:
            return Verdict("invalid", f"{opening.group()}, {phrase}")
        return Verdict(chosen.said, phrase)
    return Verdict(_SAYS[first or ""], opening.group()) if opening else None


_SAYS: dict[str, Said] = {"affirming": "answer_present", "denying": "i_dont_know"}


def _statements(text: str, rules: list["_Rules"], prefix: str) -> list[_Statement]:
    """Verdicts in the text's order; of two that overlap the longer one."""
    found = []
    for rule in rules:
        for name, said in _SAID.items():
            if pattern := rule.stated.get(prefix + name):
                found += [(match.start(), match.end(), said) for match in pattern.finditer(text)]
    menu = _MENU.search(text)
    end_of_speech = menu.end() if menu else len(text)
    longest = sorted(found, key=lambda one: (one[0], -one[1]))
    stated: list[_Statement] = []
    reached = 0
    for start, end, said in longest:
        if start < reached:
            continue
        reached = end
        breaks = [match.end() for match in _SENTENCE.finditer(text, 0, start)]
        before = text[breaks[-1] if breaks else 0 : start]
        if start >= end_of_speech or _SUPPOSED.search(before):
            continue
        meant: Said = "i_dont_know" if _NEGATED.search(before) else said
        line = text[text.rfind("\n", 0, start) + 1 : start]
        stated.append(_Statement(start, end, meant, bool(_OF_SOME.match(text, end) or _NUMBERED.match(line))))
    return stated


class _Rules(NamedTuple):
    stated: dict[str, "regex.Pattern[str]"]
    opening: "regex.Pattern[str]"


@cache
def _rules(language: str) -> _Rules:
    data = dict(_data()[language])
    words = (f"(?P<{name}>{'|'.join(map(_fold, data.pop(name)))})" for name in _SAYS)
    opening = regex.compile(rf"(?:{'|'.join(words)})(?![\p{{L}}\p{{M}}'])")
    return _Rules({name: regex.compile("|".join(map(_fold_pattern, listed))) for name, listed in data.items()}, opening)


def _fold_pattern(pattern: str) -> str:
    return f"(?:{unicodedata.normalize('NFKC', pattern).translate(_ARABIC)})"


def _fold(text: str) -> str:
    """Small letters, straight quotes, no emphasis, single blanks; Arabic letters and marks that spellers vary in made one."""
    text = unicodedata.normalize("NFKC", text).lower().translate(_QUOTES).translate(_ARABIC)
    return _BLANKS.sub(" ", _LINES.sub("\n", _MARKS.sub("", _EMPHASIS.sub(" ", text)))).strip()


def _languages(language: str) -> tuple[str, ...]:
    base = base_language(language)
    if base == UNDETERMINED:
        return tuple(_data())
    return ("en", base) if base in _data() and base != "en" else ("en",)


@cache
def _data() -> dict[str, dict[str, list[str]]]:
    text = resources.files("trust.text").joinpath("verdicts.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)
