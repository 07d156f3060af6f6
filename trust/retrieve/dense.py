"""Exact search over vectors, block by block.

All products of a block are taken at once in single precision, where there is a GPU on it. What can be among the best by them is
worked out again in double precision, from the same stored vectors and in an order of its own, so that scores and ranks are those
of comparing every pair, on any machine and however the corpus is cut.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from trust.retrieve.top import Best, Block

_PIECE = 4096  # pairs that are worked out in double precision at a time


class Passages(Protocol):
    """A block of passages that questions are compared with."""

    slack: float  # by how much a rough score may be wrong, at most

    def rough(self) -> np.ndarray:
        """The scores of all passages for all questions in single precision, shape (questions, passages)."""
        ...

    def exact(self, questions: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The scores of pairs in double precision, shape of `questions` and of `rows`."""
        ...


class Vectors:
    """One vector a text, compared by their product.

    Args:
        questions: float32, shape (questions, width).
        passages: float32, shape (passages, width).
        multiply: takes the product of two matrices in single precision.
    """

    slack = 1e-4

    def __init__(
        self, questions: np.ndarray, passages: np.ndarray, multiply: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> None:
        self._questions, self._passages, self._multiply = questions, passages, multiply

    def rough(self) -> np.ndarray:
        return self._multiply(self._questions, self._passages.T)

    def exact(self, questions: np.ndarray, rows: np.ndarray) -> np.ndarray:
        products = self._questions[questions].astype(np.float64) * self._passages[rows]
        return np.asarray(products.sum(axis=1))


def search_block(passages: Passages, k: int, best: Best, block: Block) -> None:
    """Offers the `k` best passages of a block to each question, and perhaps some more.

    Args:
        block: the passages' names and places, in their order.
    """
    rough = passages.rough()
    limits = np.array([best.least(question) for question in range(len(rough))]) - 2 * passages.slack
    crowded = (rough >= limits[:, None]).sum(axis=1) > k
    if crowded.any():
        limits[crowded] = np.partition(rough[crowded], -k, axis=1)[:, -k] - 2 * passages.slack
    questions, rows = np.nonzero(rough >= limits[:, None])
    scores = np.concatenate(
        [
            passages.exact(questions[start : start + _PIECE], rows[start : start + _PIECE])
            for start in range(0, len(questions), _PIECE)
        ]
        or [np.zeros(0)]
    )
    starts = np.searchsorted(questions, np.arange(len(rough) + 1))
    for question in np.unique(questions).tolist():
        mine = slice(starts[question], starts[question + 1])
        best.offer(question, scores[mine], rows[mine], block)


def multiplier() -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Multiplies matrices on this process's GPU, or without one on its CPUs."""
    import torch

    if not torch.cuda.is_available():
        return np.matmul

    def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        product: Any = torch.from_numpy(left).cuda() @ torch.from_numpy(np.ascontiguousarray(right)).cuda()
        return np.asarray(product.cpu())

    return multiply
