"""From text to the terms that BM25 counts, by language, with the tokenizer of bm25s.

A term is a word of two characters or more in lower case. English is split as bm25s splits it by default; elsewhere vowel signs
and accents that are marks of their own stay within their word. Runs of scripts written without spaces give every two
neighbouring characters, as Lucene does for Chinese, Japanese and Korean.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import regex

from trust.text.languages import base_language

_ENGLISH = r"(?u)\b\w\w+\b"
_WORD = regex.compile(r"[\w\p{M}]{2,}")
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_RUNS = regex.compile(rf"{_UNSPACED}[{_UNSPACED[1:-1]}\p{{M}}ー]*|[\w\p{{M}}--{_UNSPACED}]{{2,}}", regex.V1)
_IS_UNSPACED = regex.compile(_UNSPACED)
_WITHOUT_SPACES = frozenset(["zh", "ja", "th", "lo", "km", "my"])


class Terms:
    """Splits texts of one language.

    Args:
        language: BCP 47; stop words and stemmer are left out where there are none for it, and for None.
    """

    def __init__(self, language: str | None) -> None:
        self._language = base_language(language) if language else None
        self._stopwords, self._stemmer = stopwords(self._language), stemmer(self._language)

    def of(self, text: str) -> list[str]:
        """The terms of a text, in order, repeated ones repeated."""
        found: list[list[str]] = self._tokenizer().tokenize(
            [text], update_vocab=True, show_progress=False, return_as="string", allow_empty=False
        )
        return found[0]

    def count(self, texts: Iterable[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Terms of many texts.

        Returns:
            The distinct terms; the terms of all texts one after the other, as their numbers (int32); how many each text has
            (int32).
        """
        tokenizer = self._tokenizer()
        pieces, lengths = [], []
        for ids in self._stream(tokenizer, texts):
            pieces.append(np.array(ids, dtype=np.int32))
            lengths.append(len(ids))
        terms = [term for term, _ in sorted(tokenizer.get_vocab_dict().items(), key=lambda item: item[1])]
        return terms, np.concatenate(pieces) if pieces else np.zeros(0, np.int32), np.array(lengths, np.int32)

    def _stream(self, tokenizer: Any, texts: Iterable[str]) -> Iterator[list[int]]:
        return iter(tokenizer.streaming_tokenize(texts, update_vocab=True, allow_empty=False))

    def _tokenizer(self) -> Any:
        from bm25s.tokenization import Tokenizer

        return Tokenizer(splitter=splitter(self._language), stopwords=self._stopwords, stemmer=self._stemmer)


def splitter(language: str | None) -> str | Callable[[str], list[str]]:
    """What cuts a lower-case text into words: a pattern or a function."""
    if language == "en":
        return _ENGLISH
    return _pairs if language in _WITHOUT_SPACES else _words


def stopwords(language: str | None) -> Any:
    """Stop words that bm25s has for a language; none for others."""
    from bm25s.tokenization import _infer_stopwords

    try:
        return _infer_stopwords(language)
    except ValueError:
        return []


def stemmer(language: str | None) -> Any:
    """Snowball's stemmer for a language; None for others."""
    import Stemmer

    try:
        return Stemmer.Stemmer(language) if language else None
    except KeyError:
        return None


def _words(text: str) -> list[str]:
    found: list[str] = _WORD.findall(unicodedata.normalize("NFKC", text))
    return found


def _pairs(text: str) -> list[str]:
    found = []
    for run in _RUNS.findall(unicodedata.normalize("NFKC", text)):
        if _IS_UNSPACED.match(run) and len(run) > 1:
            found += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            found.append(run)
    return found
