"""Which rows a report shows, and what it counts on the way: one pass over the scores, part by part.

What is kept grows with the number of data sets and with the cap, never with the number of rows. The choice depends on
keys and scores alone, so it is the same on any sharding.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trust import tables
from trust.storage import Storage

Key = tuple[str, str, str, int]  # sample_id, model, prompt, draw
Group = tuple[str, str, str, str]  # dataset, task, model, prompt

RESPONSES = ("answered", "refused", "empty")
ANSWERABLE = ("answerable", "unanswerable", "unknown")
_BATCH_ROWS = 1024
_JUDGED = "no_gold"  # the metric that takes a judge's word for what is answerable
_QUALITIES = ("answer_correctness", "citation_recall", "citation_precision")
_COLUMNS = ["sample_id", "model", "prompt", "draw", "metric", "dataset", "task", "values", "status", "reason"]


@dataclass
class Smallest:
    """The keys with the smallest ranks among all that were added; holds at most twice `limit`."""

    limit: int
    items: list[tuple[Any, Key]] = field(default_factory=list)

    def add(self, rank: Any, key: Key) -> None:
        self.items.append((rank, key))
        if len(self.items) > 2 * self.limit:
            self.items = heapq.nsmallest(self.limit, self.items)

    def best(self) -> list[Key]:
        return [key for _, key in heapq.nsmallest(self.limit, self.items)]


class Tally:
    """Counts of one data set's responses, and the rows worth a look.

    Attributes:
        rows: responses.
        outcomes: (metric, status, reason) -> rows; the reason of a scored row is None.
        refusals: (whether the documents answer, what the response is) -> rows.
        any_failed: responses that failed in any metric.
    """

    def __init__(self, limit: int) -> None:
        self.rows = 0
        self.any_failed = 0
        self.outcomes: Counter[tuple[str, str, str | None]] = Counter()
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.failed, self.worst, self.random = Smallest(limit), Smallest(limit), Smallest(limit)

    def add(self, key: Key, scores: list[dict[str, Any]]) -> None:
        """Counts one response by its scores, a row a metric."""
        self.rows += 1
        chance = _chance(key)
        failed = False
        for score in scores:
            self.outcomes[score["metric"], score["status"], score["reason"]] += 1
            failed = failed or score["status"] == "failed"
        if cell := _cell(scores):
            self.refusals[cell] += 1
        faults = [fault for score in scores if (fault := badness(score["values"] or {})) is not None]
        if failed:
            self.any_failed += 1
            self.failed.add(chance, key)
        elif faults and max(faults) > 0:
            self.worst.add((-max(faults), chance), key)
        self.random.add(chance, key)


@dataclass(frozen=True)
class Choice:
    """The rows of one data set that are shown, most telling first.

    Attributes:
        keys: key -> why it is shown: `all`, `failed`, `worst` or `random`.
        rows: how many there are in all.
        failed: how many failed in all.
    """

    keys: dict[Key, str]
    rows: int
    failed: int


def tally(storage: Storage, parts: list[dict[str, Any]], limit: int) -> dict[Group, Tally]:
    """Counts all responses, a tally a data set, task, model and prompt.

    Args:
        parts: of the scores table; each is sorted by its key, so that a response's metrics stand together.
        limit: rows that a report shows at most.
    """
    tallies: dict[Group, Tally] = {}
    for part in parts:
        for key, scores in groupby(stream(storage, part["path"], _COLUMNS), tables.row_key):
            rows = list(scores)
            group = group_of(rows[0])
            if group not in tallies:
                tallies[group] = Tally(limit)
            tallies[group].add(key, rows)
    return dict(sorted(tallies.items()))


def choose(tallies: dict[Group, Tally], limit: int) -> dict[Group, Choice]:
    """Shares `limit` rows among the data sets and picks them: all where there is room, else a sample.

    A sample holds the failed rows (at most half of it), then the worst and random ones in equal parts.
    """
    quotas = _share(limit, {group: found.rows for group, found in tallies.items()})
    return {group: _choose(found, quotas[group]) for group, found in tallies.items()}


def badness(values: dict[str, float]) -> float | None:
    """How bad a scored response is, 0 to 1; None where its values do not say.

    A wrong decision (answering what the documents do not answer, not answering what they do) and an empty response are
    as bad as can be; a grounded refusal is no fault; an answer is as bad as its correctness and citations on average.
    """
    answerable, answered = values.get("answerable"), values.get("answered")
    if answered is None:
        return None
    if answerable is not None and not (answered and answerable):
        return 0.0 if values.get("refused") and not answerable else 1.0
    if not answered:
        return None
    known = [values[name] for name in _QUALITIES if values.get(name) is not None]
    return 1.0 - sum(known) / len(known) if known else None


def stream(
    storage: Storage, path: str, columns: list[str] | None = None, sample_ids: Iterable[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Rows of one part, read in small batches, map columns as dicts.

    Args:
        sample_ids: only rows of these samples; None for all.
    """
    wanted = None if sample_ids is None else pa.array(sorted(sample_ids), pa.string())
    with storage.open_table(path, pre_buffer=False, buffer_size=2**20) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            hits = batch if wanted is None else batch.filter(pc.is_in(batch.column("sample_id"), wanted))
            yield from tables.to_rows(hits)


def group_of(row: dict[str, Any]) -> Group:
    return row["dataset"], row["task"], row["model"], row["prompt"]


def _choose(found: Tally, quota: int) -> Choice:
    if found.rows <= quota:
        return Choice(dict.fromkeys(found.random.best(), "all"), found.rows, found.any_failed)
    keys = dict.fromkeys(found.failed.best()[: max(quota // 2, 1)], "failed")
    room = quota - len(keys)
    for key in found.worst.best()[: (room + 1) // 2]:
        keys[key] = "worst"
    for key in found.random.best():
        if len(keys) >= quota:
            break
        keys.setdefault(key, "random")
    return Choice(_mixed(keys), found.rows, found.any_failed)


def _mixed(keys: dict[Key, str]) -> dict[Key, str]:
    """Failed, worst and random rows in turn, so that a cut at any place leaves some of each."""
    kinds = [[key for key, why in keys.items() if why == kind] for kind in ("failed", "worst", "random")]
    order = [kind[at] for at in range(max(map(len, kinds))) for kind in kinds if at < len(kind)]
    return {key: keys[key] for key in order}


def _share(limit: int, sizes: dict[Group, int]) -> dict[Group, int]:
    """Equal shares of `limit`; what a small data set leaves over goes to the larger ones. At least one row each."""
    quotas = {}
    left = limit
    for done, (group, size) in enumerate(sorted(sizes.items(), key=lambda item: (item[1], item[0]))):
        quotas[group] = max(1, min(size, left // (len(sizes) - done)))
        left = max(0, left - quotas[group])
    return quotas


def _cell(scores: list[dict[str, Any]]) -> tuple[str, str] | None:
    """Whether the documents answer, by gold labels before a judge, and what the response is."""
    cells = []
    for values in (score["values"] or {} for score in sorted(scores, key=lambda score: score["metric"] == _JUDGED)):
        if response := next((name for name in RESPONSES if values.get(name)), None):
            known = values.get("answerable")
            cells.append(("unknown" if known is None else "answerable" if known else "unanswerable", response))
    return next((cell for cell in cells if cell[0] != "unknown"), next(iter(cells), None))


def _chance(key: Key) -> str:
    """A number by lot for a row, the same in every run."""
    return hashlib.blake2b("\0".join(map(str, key)).encode(), digest_size=8).hexdigest()
