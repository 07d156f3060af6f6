"""The best documents of each question, kept while the shards of a corpus go by."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from trust import tables

Hit = tuple[
    float, str, int, int
]  # minus the score, doc_id, part and row of the corpus: in this order the best come first


class Best:
    """The `k` best documents of each question so far: the highest scores, ties by doc_id.

    What comes out does not depend on how the corpus is cut or in which order its pieces come.
    """

    def __init__(self, questions: int, k: int) -> None:
        self._k = k
        self._hits: list[list[Hit]] = [[] for _ in range(questions)]

    def least(self, question: int) -> float:
        """The score below which a document cannot be among the best any more."""
        hits = self._hits[question]
        return -hits[-1][0] if len(hits) >= self._k else -np.inf

    def offer(self, question: int, scores: np.ndarray, rows: np.ndarray, block: "Block") -> None:
        """More documents of a question.

        Args:
            scores: of the documents, shape (n,).
            rows: where they stand in `block`, shape (n,), ascending.
        """
        good = scores >= self.least(question)
        scores, rows = scores[good], rows[good]
        if len(scores) > self._k:
            good = scores >= np.partition(scores, -self._k)[-self._k]
            scores, rows = scores[good], rows[good]
            order = np.lexsort((rows, -scores))[: self._k]
            scores, rows = scores[order], rows[order]
        new = zip((-scores).tolist(), block.ids(rows), block.parts(rows), block.rows(rows), strict=True)
        self._hits[question] = sorted([*self._hits[question], *new])[: self._k]

    def table(self, method: str, sample_ids: Sequence[str]) -> pa.Table:
        """All of it as the table `hits`."""
        columns = list(zip(*(hit for hits in self._hits for hit in hits), strict=True)) or [()] * 4
        found = [name for name, hits in zip(sample_ids, self._hits, strict=True) for _ in hits]
        scores = -np.array(columns[0], dtype=np.float64)
        made = [found, [method] * len(found), columns[1], scores, columns[2], columns[3]]
        schema = tables.SCHEMAS["hits"]
        arrays = [pa.array(values, type=field.type) for values, field in zip(made, schema, strict=True)]
        return tables.sort("hits", pa.Table.from_arrays(arrays, schema=schema))


class Block:
    """Documents that are scored together, sorted by doc_id, and where they stand in the corpus.

    Args:
        ids: doc_id of each.
        part: number of the corpus part they are of, or that of each (shape (n,)).
        row: row of the first of them in that part, the others right behind it, or that of each.
    """

    def __init__(self, ids: pa.Array | pa.ChunkedArray, part: int | np.ndarray, row: int | np.ndarray) -> None:
        self._ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        self._part, self._row = part, row

    def ids(self, rows: np.ndarray) -> list[str]:
        return list(self._ids.take(pa.array(rows)).to_pylist())

    def parts(self, rows: np.ndarray) -> list[int]:
        return [self._part] * len(rows) if isinstance(self._part, int) else list(self._part[rows].tolist())

    def rows(self, rows: np.ndarray) -> list[int]:
        found = self._row + rows if isinstance(self._row, int) else self._row[rows]
        return list(found.tolist())
