"""Bringing answers and texts to a common form."""

import string
from functools import lru_cache

import regex

from trust.text.fold import fold, fold_numbers
from trust.text.languages import base_language

_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ENGLISH_ARTICLES = regex.compile(r"\b(a|an|the)\b")

_ARTICLES = {
    "de": "der die das den dem des ein eine einen einem einer eines",
    "en": "a an the",
    "es": "el la los las un una unos unas",
    "fr": "le la les l un une des",
    "it": "il lo la i gli le l un uno una",
    "nl": "de het een",
    "pt": "o a os as um uma uns umas",
}
_INITIALS = regex.compile(r"(?<![\p{L}\p{N}])(?:\p{L}\p{M}*\.){2,}")
_ARABIC_ARTICLE = regex.compile(r"^(?:[وفبک]?ال|لل)(?=\p{L}{3})")  # behind "and", "so", "in", "like", "for" too
_TOKEN = regex.compile(r"\p{N}+(?:[.,]\p{N}+)+|[\p{L}\p{M}\p{N}]+|\p{S}")
_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"  # written without spaces
UNSPACED = rf"[{_SCRIPTS}]"
_KATAKANA = r"[\p{Katakana}ー]"
_JOINED = regex.compile(rf"(?!(?<={_KATAKANA}) {_KATAKANA})(?:(?<={UNSPACED}) (?=\S)|(?<=\S) (?={UNSPACED}))")
_WORD = regex.compile(rf"{UNSPACED}\p{{M}}*|[^\s{_SCRIPTS}]+")
_ASCII_WORD = regex.compile(r"\S+")
_CONTENT = regex.compile(r"[\p{L}\p{N}\p{S}]")


def normalize_answer(text: str) -> str:
    """The published form of an answer: lower case, no ASCII punctuation, no a/an/the, single spaces.

    Punctuation goes before articles and leaves no gap ("couldn't" becomes "couldnt"). Source: facts.md A3.
    """
    return " ".join(_ENGLISH_ARTICLES.sub(" ", text.lower().translate(_ASCII_PUNCTUATION)).split())


@lru_cache(maxsize=8192)
def normalize(text: str, language: str) -> str:
    """The strict form of an answer: tokens with one space between them, none inside scripts that write no spaces.

    Case, width, digits of all scripts, invisible characters and variant spellings are folded (`trust.text.fold`);
    punctuation parts tokens; a number keeps its decimal mark and loses its thousands marks ("1,000" and "1000" agree,
    "3.5" and "5" do not); initials close up ("U.S." is "us"); symbols ("+", "$") are tokens; the space between two
    words in Katakana stays. Articles are dropped for the languages that have them, never for an unknown one; the
    Arabic article is written onto its word, and is taken off it.

    Args:
        text: an answer or a whole response.
        language: language code of the row (`und` if unknown); a region after `-` or `_` is ignored.
    """
    base = base_language(language)
    ascii_only = text.isascii()  # most texts are; there is no script without spaces in there
    text = _INITIALS.sub(lambda match: match.group().replace(".", ""), fold(text, base))
    articles = _articles(base)
    tokens = [token for token in _TOKEN.findall(fold_numbers(text, base)) if token not in articles]
    if base == "ar":
        tokens = [_ARABIC_ARTICLE.sub("", token) for token in tokens]
    joined = " ".join(tokens)
    return joined if ascii_only else _JOINED.sub("", joined)


def has_content(text: str) -> bool:
    """Whether the text says anything at all: a letter, a digit or a symbol (an emoji counts, a full stop does not)."""
    return _CONTENT.search(text) is not None


def count_words(text: str) -> int:
    """Words between spaces; in scripts without spaces every letter counts as one."""
    return len((_ASCII_WORD if text.isascii() else _WORD).findall(text))


@lru_cache(maxsize=64)
def _articles(language: str) -> frozenset[str]:
    return frozenset(_ARTICLES.get(language, "").split())
