"""Which irrelevant documents are most like given ones, by the cosine of their TF-IDF vectors (facts B5 item 5)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import regex

from trust.ask.lexical import words
from trust.text.normalize import UNSPACED

_UNSPACED = regex.compile(UNSPACED)
_DIGITS = 9  # beyond them the order of sums may decide


def terms(text: str) -> list[str]:
    """Words of a text in any language; of scripts that write no spaces, characters and pairs of neighbours."""
    found = words(text)
    joined = [one + other for one, other in pairwise(found) if _UNSPACED.fullmatch(one) and _UNSPACED.fullmatch(other)]
    return found + joined


class Similarity:
    """Over the documents of one question.

    Args:
        texts: of each document.
        published: as published: the weights are fitted on the candidates alone, words are runs of two or more letters or
            digits, and the candidates are compared with the first query only. Else they are fitted on all texts once, on
            `terms`, and compared with the mean of the queries.
    """

    def __init__(self, texts: Sequence[str], published: bool) -> None:
        self._texts = texts
        self._published = published
        self._all = None if published else _vectors(texts, texts, terms)

    def ranked(self, queries: Sequence[int], candidates: Sequence[int]) -> list[int]:
        """The candidates, the most similar first; equal ones in the order given.

        Args:
            queries, candidates: indexes of documents, one or more queries.
        """
        if not candidates:
            return []
        if self._published:
            asked = [self._texts[index] for index in (queries[0], *candidates)]
            rows = _vectors(asked[1:], asked, "word")
            query, others = (None, None) if rows is None else (rows[:1], rows[1:])
        else:
            query, others = (
                (None, None) if self._all is None else (self._all[list(queries)], self._all[list(candidates)])
            )
        if query is None or others is None:
            return list(candidates)
        cosines = np.asarray((others @ query.T).mean(axis=1)).ravel().round(_DIGITS)
        return [candidates[place] for place in np.argsort(-cosines, kind="stable")]


def _vectors(fitted: Sequence[str], texts: Sequence[str], analyzer: Any) -> Any:
    """A sparse row of length 1 for each text; None where no text that is fitted on has a word."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    made = TfidfVectorizer(analyzer=analyzer)
    try:
        made.fit(fitted)
    except ValueError:  # what it raises for an empty vocabulary
        return None
    return made.transform(texts)
