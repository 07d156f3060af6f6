"""BM25 over shards whose scores are those of one index.

A shard of the index holds what was counted: which of its passages hold a term, and how often. What BM25 makes of the counts is
worked out at search time, for the terms of the questions alone, with document frequencies and the average length of the whole
corpus. (bm25s works all scores out when it indexes, from the statistics of what it is given, and takes no others.) The formulas
are bm25s's own, in its order and precision, so that one shard and many give the scores of bm25s over one index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trust import tables

LENGTHS = ""  # no term is empty: this row of a shard has its passages in `df` and their lengths in `counts`


@dataclass(frozen=True)
class Statistics:
    """What BM25 needs to know of the whole corpus.

    Attributes:
        passages: how many there are.
        tokens: terms of all of them together.
    """

    passages: int
    tokens: int

    @property
    def average(self) -> float:
        """Terms of a passage."""
        return self.tokens / self.passages if self.passages else 0.0


def postings(shard: int, terms: Sequence[str], ids: np.ndarray, lengths: np.ndarray) -> pa.Table:
    """A shard as rows of the table `postings`, sorted by term: of each term how many passages hold it, which, and how often.

    Args:
        shard: its number.
        terms, ids, lengths: as `trust.retrieve.terms.Terms.count` gives them.
    """
    passages = len(lengths)
    order = sorted(range(len(terms)), key=terms.__getitem__)
    rank = np.empty(len(terms), dtype=np.int64)
    rank[order] = np.arange(len(terms))
    places = rank[ids] * passages + np.repeat(np.arange(passages, dtype=np.int64), lengths)
    places, counts = np.unique(places, return_counts=True)
    numbers, docs = np.divmod(places, max(passages, 1))
    df = np.bincount(numbers, minlength=len(terms))
    # The row of lengths comes first: the empty string sorts before every term.
    offsets = np.concatenate([[0, 0], np.cumsum(df)])
    count_offsets = np.concatenate([[0], passages + offsets[1:]])
    columns = [
        pa.array(np.full(len(terms) + 1, shard), pa.int32()),
        pa.array([LENGTHS, *(terms[i] for i in order)], pa.string()),
        pa.array(np.concatenate([[passages], df]), pa.int32()),
        pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(docs, pa.int32())),
        pa.ListArray.from_arrays(
            pa.array(count_offsets, pa.int32()), pa.array(np.concatenate([lengths, counts]), pa.int32())
        ),
    ]
    return pa.Table.from_arrays(columns, schema=tables.SCHEMAS["postings"])


class Weights:
    """The scores of one shard's passages for each of some terms.

    Args:
        shard: its rows of the table `postings`.
        terms: distinct ones.
        idf: of each (float32).
        statistics: of the whole corpus.
        scoring, k1, b: see trust.retrieve.config.Bm25Options.
    """

    def __init__(
        self,
        shard: pa.Table,
        terms: Sequence[str],
        idf: np.ndarray,
        statistics: Statistics,
        scoring: str,
        k1: float,
        b: float,
    ) -> None:
        from bm25s.scoring import _select_tfc_scorer

        places = pc.index_in(pa.array([LENGTHS, *terms], pa.string()), shard.column("term").combine_chunks())
        lengths, docs, counts = _taken(shard, places)
        self.passages = len(lengths)
        found = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False)[1:])
        df = np.zeros(len(terms), dtype=np.int64)
        df[found] = shard.column("df").take(places.drop_null()).to_numpy()[1:]
        self._bounds = np.concatenate([[0], np.cumsum(df)])
        self._docs = docs
        tfc = _select_tfc_scorer(scoring)(
            counts.astype(np.float32), l_d=lengths[docs], l_avg=statistics.average, k1=k1, b=b, delta=None
        )
        self._scores = (np.repeat(idf, df) * tfc).astype(np.float32)

    def score(self, numbers: Sequence[int]) -> np.ndarray:
        """The scores of all passages for a question, float32, shape (passages,); 0 where no term is found.

        Args:
            numbers: the question's terms, by their number among `terms`, repeated ones repeated.
        """
        scores = np.zeros(self.passages, dtype=np.float32)
        for number in numbers:
            start, end = self._bounds[number], self._bounds[number + 1]
            scores[self._docs[start:end]] += self._scores[start:end]
        return scores


def idf(df: np.ndarray, passages: int, scoring: str) -> np.ndarray:
    """Inverse document frequencies, float32, shape of `df`; 0 for a term that no passage holds."""
    from bm25s.scoring import _select_idf_scorer

    scorer: Any = _select_idf_scorer(scoring)
    return np.array([scorer(int(one), N=passages) if one else 0.0 for one in df], dtype=np.float32)


def _taken(shard: pa.Table, places: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths of the shard's passages; passages and counts of the terms at `places`, one after the other."""
    rows = places.drop_null()
    docs = shard.column("docs").combine_chunks().take(rows).flatten().to_numpy()
    counts = shard.column("counts").combine_chunks().take(rows).flatten().to_numpy()
    passages = shard.column("df")[places[0].as_py()].as_py()
    return counts[:passages], docs, counts[passages:]
