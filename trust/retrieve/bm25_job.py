"""BM25 as three jobs: `index` counts the terms of every shard, `frequencies` adds up how many passages of the corpus hold the
terms of the questions, `search_bm25` finds the best passages of each question.

The index lies beside the corpus (`_corpora/{corpus}-bm25-{fingerprint}`) and serves every run; k1 and b have no part in it.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trust import tables
from trust.config import plain
from trust.retrieve.bm25 import LENGTHS, Statistics, Weights, idf, postings
from trust.retrieve.config import Bm25Options
from trust.retrieve.corpus import whole
from trust.retrieve.questions import blocks, groups, read_questions, search_units
from trust.retrieve.steps import WORK_S, Search, execute_aside, execute_step, side_run
from trust.retrieve.terms import Terms
from trust.retrieve.top import Best, Block
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.units import Unit, UnitResult, row_units

_BATCH = 4096  # passages whose texts are split at a time


def index_run(search: Search) -> Run:
    """Where the index of the corpus lies or will lie."""
    return side_run(search.config, f"{search.corpus.name}-bm25-", _identity(search.config.retriever.bm25))


def search_bm25(search: Search) -> dict[str, Manifest]:
    """Leaves the best documents of each question in the table `hits`; indexes first, where no run before has.

    Returns:
        Job -> its manifest.
    """
    index = index_run(search)
    made = index.manifest("index") or execute_aside(_plan_index(search), index, search.config)
    found = groups(index.parts("postings"))
    frequencies = execute_step(_plan_frequencies(search, index, found), search.run, search.config)
    statistics = Statistics(made.counts["ok"], round(made.totals["tokens"]))
    plan = _plan_search(search, index, found, statistics, frequencies)
    return {
        "index": made,
        "frequencies": frequencies,
        "search_bm25": execute_step(plan, search.run, search.config),
    }


def _identity(options: Bm25Options) -> dict[str, Any]:
    return {"language": options.language, "shard_passages": options.shard_passages}


def _shards(search: Search) -> list[Unit]:
    """The shards of the index: rows of a corpus part each, which never lies in two."""
    shards = row_units(search.corpus_parts, search.config.retriever.bm25.shard_passages, 1)
    return [Unit(unit.name, unit.source | {"shard": number}, unit.rows) for number, unit in enumerate(shards)]


def _places(search: Search) -> list[tuple[int, int]]:
    """Of each shard the number of its corpus part and its first row there."""
    numbers = {part["path"]: number for number, part in enumerate(search.corpus_parts)}
    return [(numbers[unit.source["path"]], unit.source["start"]) for unit in _shards(search)]


def _common(search: Search) -> dict[str, Any]:
    config = search.config
    return {
        "bm25": plain(config.retriever.bm25),
        "storage": plain(config.storage),
        "root": absolute(config.storage.root),
    }


def _plan_index(search: Search) -> Plan:
    options = search.config.retriever.bm25
    return Plan(
        job="index",
        identity={"corpus": search.corpus.name} | _identity(options),
        units=_shards(search),
        worker="trust.retrieve.bm25_job:IndexWorker",
        worker_config=_common(search),
        config={"bm25": plain(options)},
        cpus=search.config.cluster.actor_cpus or 1,
    )


def _plan_frequencies(search: Search, index: Run, found: list[list[dict[str, Any]]]) -> Plan:
    return Plan(
        job="frequencies",
        identity=search.inputs | {"index": index.name},
        units=[
            Unit(f"{number:05d}", {"parts": [part["path"] for part in group]}, len(group))
            for number, group in enumerate(found)
        ],
        worker="trust.retrieve.bm25_job:FrequencyWorker",
        worker_config=_common(search) | {"questions": [part["path"] for part in search.parts]},
        config=plain(search.config),
        cpus=search.config.cluster.actor_cpus or 1,
    )


def _plan_search(
    search: Search, index: Run, found: list[list[dict[str, Any]]], statistics: Statistics, frequencies: Manifest
) -> Plan:
    config, options = search.config, search.config.retriever.bm25
    paths = [search.run.path(part["path"]) for part in frequencies.tables.get("frequencies", [])]
    return Plan(
        job="search_bm25",
        identity=search.inputs
        | {"index": index.name, "depth": config.depth}
        | {key: getattr(options, key) for key in ("k1", "b", "scoring")},
        units=search_units(found, blocks(search.parts, config.unit_rows)),
        worker="trust.retrieve.bm25_job:SearchWorker",
        worker_config=_common(search)
        | {
            "depth": config.depth,
            "corpus": [part["path"] for part in search.corpus_parts],
            "places": _places(search),
            "passages": statistics.passages,
            "tokens": statistics.tokens,
            "frequencies": paths,
        },
        config=plain(config),
        cpus=config.cluster.actor_cpus or 1,
    )


class IndexWorker:
    """Counts the terms of a shard's passages (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._terms = Terms(config["bm25"]["language"])

    async def close(self) -> None:
        """Nothing is held."""

    async def work(self, unit: Unit) -> UnitResult:
        began = time.monotonic()
        terms, ids, lengths = self._terms.count(self._texts(unit))
        made = postings(unit.source["shard"], terms, ids, lengths)
        totals = {"tokens": float(len(ids)), "passages_without_terms": float((lengths == 0).sum())}
        return UnitResult({"postings": made}, {"ok": unit.rows}, totals | {WORK_S: time.monotonic() - began})

    def _texts(self, unit: Unit) -> Iterator[str]:
        start, end = unit.source["start"], unit.source["start"] + unit.rows
        for first in range(start, end, _BATCH):
            rows = self._storage.read_range(unit.source["path"], first, min(_BATCH, end - first))
            for title, text in zip(rows.column("title").to_pylist(), rows.column("text").to_pylist(), strict=True):
                yield whole(title, text)


class FrequencyWorker:
    """Counts the passages of index shards that hold the terms of the questions (trust.units.Worker).

    Holds the terms of all questions; they are few beside those of a shard.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        terms = Terms(config["bm25"]["language"])
        wanted = set()
        for path in config["questions"]:
            for question in self._storage.read_table(path, ["question"]).column("question").to_pylist():
                wanted.update(terms.of(question))
        self._wanted = pa.array(sorted(wanted), pa.string())

    async def close(self) -> None:
        """Nothing is held."""

    async def work(self, unit: Unit) -> UnitResult:
        began = time.monotonic()
        among = pc.field("term").isin(self._wanted)
        found = [self._storage.read_table(path, ["term", "df"], among) for path in unit.source["parts"]]
        added = pa.concat_tables(found).group_by("term").aggregate([("df", "sum")])
        columns = [added.column("term"), pa.array([unit.name] * added.num_rows, pa.string()), added.column("df_sum")]
        made = pa.Table.from_arrays(columns, schema=tables.SCHEMAS["frequencies"])
        totals = {WORK_S: time.monotonic() - began}
        return UnitResult({"frequencies": tables.sort("frequencies", made)}, {"ok": unit.rows}, totals)


class SearchWorker:
    """Finds the best passages of some shards for a block of questions (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._options = Bm25Options(**config["bm25"])
        self._terms = Terms(self._options.language)
        self._statistics = Statistics(config["passages"], config["tokens"])
        self._corpus, self._places = config["corpus"], config["places"]
        self._depth, self._frequencies = config["depth"], config["frequencies"]
        self._held: tuple[str, pa.Table] | None = None

    async def close(self) -> None:
        self._held = None

    async def work(self, unit: Unit) -> UnitResult:
        began = time.monotonic()
        names, questions = read_questions(unit, self._storage)
        asked = [self._terms.of(question) for question in questions]
        terms = sorted({term for one in asked for term in one})
        weights, numbers = self._idf(terms), {term: number for number, term in enumerate(terms)}
        best = Best(len(names), self._depth)
        for path in unit.source["parts"]:
            for shard, rows in _by_shard(self._read(path)):
                self._search(shard, rows, terms, weights, [[numbers[term] for term in one] for one in asked], best)
        hits = best.table("bm25", names)
        return UnitResult({"hits": hits}, {"ok": unit.rows}, {WORK_S: time.monotonic() - began})

    def _search(
        self,
        shard: int,
        rows: pa.Table,
        terms: list[str],
        weights: np.ndarray,
        asked: list[list[int]],
        best: Best,
    ) -> None:
        options, (part, start) = self._options, self._places[shard]
        scored = Weights(rows, terms, weights, self._statistics, options.scoring, options.k1, options.b)
        ids = self._storage.read_table(self._corpus[part], ["doc_id"]).column("doc_id")
        block = Block(ids.slice(start, scored.passages), part, start)
        for number, one in enumerate(asked):
            scores = scored.score(one)
            found = np.flatnonzero(scores)
            if len(found):
                best.offer(number, scores[found], found, block)

    def _idf(self, terms: list[str]) -> np.ndarray:
        """Of each of the terms, over the whole corpus."""
        among = pc.field("term").isin(pa.array(terms, pa.string()))
        found = [self._storage.read_table(path, ["term", "df"], among) for path in self._frequencies]
        df = dict.fromkeys(terms, 0)
        for content in found:
            for term, count in zip(*(content.column(name).to_pylist() for name in ("term", "df")), strict=True):
                df[term] += count
        return idf(np.array([df[term] for term in terms], np.int64), self._statistics.passages, self._options.scoring)

    def _read(self, path: str) -> pa.Table:
        """An index part; the last one stays in memory for the next block of questions."""
        if self._held is None or self._held[0] != path:
            self._held = None
            self._held = (path, self._storage.read_table(path))
        return self._held[1]


def _by_shard(content: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The shards of an index part, each with its number and its rows; the row of lengths is a shard's first."""
    starts = np.flatnonzero(pc.equal(content.column("term"), LENGTHS).to_numpy(zero_copy_only=False))
    for start, end in zip(starts, [*starts[1:], content.num_rows], strict=True):
        yield content.column("shard")[start].as_py(), content.slice(start, end - start)
