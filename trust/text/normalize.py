"""Bringing answers and texts to a common form, and finding one in the other."""

import string
import unicodedata
from functools import lru_cache

import regex

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
_INVISIBLE = regex.compile(r"\p{Cf}")
_THOUSANDS = regex.compile(r"(?<![\p{N}.,])\p{Nd}{1,3}(?:,\p{Nd}{3})+(?![\p{N}]|,\p{N})")
_INITIALS = regex.compile(r"(?<![\p{L}\p{N}])(?:\p{L}\p{M}*\.){2,}")
_TOKEN = regex.compile(r"\p{N}+(?:[.,]\p{N}+)+|[\p{L}\p{M}\p{N}]+|\p{S}")
_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"  # written without spaces
_UNSPACED = rf"[{_SCRIPTS}]"
_JOINED = regex.compile(rf"(?<={_UNSPACED}) (?=\S)|(?<=\S) (?={_UNSPACED})")
_FREE_LEFT = regex.compile(_UNSPACED)
_FREE_RIGHT = regex.compile(rf"{_UNSPACED}|\p{{Hangul}}")
_WORD = regex.compile(rf"{_UNSPACED}\p{{M}}*|[^\s{_SCRIPTS}]+")
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

    Case, width and invisible characters are folded; punctuation parts tokens; a number keeps its decimal mark and
    loses its thousands commas ("1,000" and "1000" agree, "3.5" and "5" do not); initials close up ("U.S." is "us");
    symbols ("+", "$") are tokens. Articles are dropped for the languages that have them, never for an unknown one.

    Args:
        text: an answer or a whole response.
        language: language code of the row (`und` if unknown); a region after `-` or `_` is ignored.
    """
    ascii_only = text.isascii()  # most texts are; nothing invisible and no script without spaces is in there
    text = text.lower() if ascii_only else _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold()
    text = _INITIALS.sub(lambda match: match.group().replace(".", ""), text)
    text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    articles = _articles(base_language(language))
    tokens = [token for token in _TOKEN.findall(text) if token not in articles]
    joined = " ".join(tokens)
    return joined if ascii_only else _JOINED.sub("", joined)


def contains(text: str, answer: str) -> bool:
    """Whether the normalised text holds the normalised answer as whole tokens.

    At an edge written in a script without spaces (Chinese, Japanese, Thai, ...) any position will do, and a Korean
    word may carry a particle behind it. An answer that normalises to nothing is found nowhere.

    Args:
        text: output of `normalize`.
        answer: output of `normalize`.
    """
    if not answer:
        return False
    free_left, free_right = bool(_FREE_LEFT.match(answer[0])), bool(_FREE_RIGHT.match(answer[-1]))
    start = text.find(answer)
    while start >= 0:
        end = start + len(answer)
        left = start == 0 or free_left or text[start - 1] == " " or bool(_FREE_LEFT.match(text[start - 1]))
        right = end == len(text) or free_right or text[end] == " " or bool(_FREE_LEFT.match(text[end]))
        if left and right:
            return True
        start = text.find(answer, start + 1)
    return False


def has_content(text: str) -> bool:
    """Whether the text says anything at all: a letter, a digit or a symbol (an emoji counts, a full stop does not)."""
    return _CONTENT.search(text) is not None


def count_words(text: str) -> int:
    """Words between spaces; in scripts without spaces every letter counts as one."""
    return len((_ASCII_WORD if text.isascii() else _WORD).findall(text))


def base_language(language: str) -> str:
    """The language code without script or region: `zh-Hant` and `zh_TW` are `zh`."""
    return language.replace("_", "-").split("-")[0].lower()


@lru_cache(maxsize=64)
def _articles(language: str) -> frozenset[str]:
    return frozenset(_ARTICLES.get(language, "").split())
