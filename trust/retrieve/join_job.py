"""The last step of `jobs.retrieve`: the hits of all searches joined, and the texts of the documents that are kept."""

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trust import tables
from trust.align.rows import tally
from trust.config import plain
from trust.retrieve.config import RetrieveConfig
from trust.retrieve.fusion import average, ranked, reciprocal_rank
from trust.retrieve.passages import Place, read_passages
from trust.retrieve.questions import blocks
from trust.retrieve.steps import WORK_S, Search
from trust.runs import Manifest, Plan
from trust.storage import absolute, open_storage
from trust.units import Unit, UnitResult, read_rows

Found = dict[str, dict[str, float]]  # sample_id -> documents with their scores


def plan_retrieve(search: Search, searches: dict[str, Manifest]) -> Plan:
    """What is to be done.

    Args:
        searches: method -> what it left.
    """
    config, run = search.config, search.run

    def paths(manifest: Manifest | None, table: str) -> list[str]:
        return [run.path(part["path"]) for part in (manifest.tables.get(table, []) if manifest else [])]

    return Plan(
        job="retrieve",
        identity=search.inputs
        | {
            "corpus": search.corpus.name,
            "searches": {method: manifest.fingerprint for method, manifest in searches.items()},
            "k": config.k,
        }
        | _fusion(config),
        units=blocks(search.parts, config.unit_rows),
        worker="trust.retrieve.join_job:JoinWorker",
        worker_config={
            **_fusion(config),
            "k": config.k,
            "depth": config.depth,
            "hits": {method: paths(manifest, "hits") for method, manifest in searches.items()},
            "failed": [path for method in searches for path in paths(run.manifest(f"encode_{method}"), "failed")],
            "corpus": [part["path"] for part in search.corpus_parts],
            "storage": plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=plain(config),
        cpus=config.cluster.actor_cpus or 1,
    )


def _fusion(config: RetrieveConfig) -> dict[str, Any]:
    """How hits are joined, where there is more than one method."""
    options = config.retriever
    return {"fusion": options.fusion} | ({"rrf_k": options.rrf_k} if options.fusion == "rrf" else {})


class JoinWorker:
    """Gives a block of questions their documents (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._hits, self._corpus, self._failed = config["hits"], config["corpus"], config["failed"]
        self._k, self._depth = config["k"], config["depth"]
        self._fusion, self._rrf_k = config["fusion"], config.get("rrf_k", 0.0)

    async def close(self) -> None:
        """Nothing is held."""

    async def work(self, unit: Unit) -> UnitResult:
        began = time.monotonic()
        rows = read_rows(unit, self._storage)
        unasked = self._unasked([row["sample_id"] for row in rows])
        rows = [row for row in rows if row["sample_id"] not in unasked]
        places: dict[str, Place] = {}
        ids = [row["sample_id"] for row in rows]
        found = [self._found(paths, ids, places) for paths in self._hits.values()]
        chosen = {name: ranked(self._join([one.get(name, {}) for one in found]), self._k) for name in ids}
        wanted = {places[doc] for docs in chosen.values() for doc, _ in docs}
        texts = read_passages(self._corpus, wanted, self._storage)
        made = [_with_docs(row, chosen[row["sample_id"]], places, texts) for row in rows]
        counts = [len(row["docs"]) for row in made]
        totals = {
            "docs": float(sum(counts)),
            "questions_without_docs": float(counts.count(0)),
            "questions_with_fewer_docs": float(sum(0 < count < self._k for count in counts)),
        }
        return UnitResult(
            {
                "samples": tables.to_table("samples", made),
                "failed": tables.to_table("failed", [row | {"job": "retrieve"} for row in unasked.values()]),
            },
            {"ok": len(made), "failed": len(unasked)},
            totals | {WORK_S: time.monotonic() - began} | tally("failed", (row["reason"] for row in unasked.values())),
        )

    def _unasked(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        """Of the questions that a model had no vector for, why."""
        mine = pc.field("row").isin(pa.array(ids, pa.string()))
        found = [row for path in self._failed for row in self._storage.read_table(path, filters=mine).to_pylist()]
        return {row["row"]: row for row in found}

    def _found(self, paths: list[str], ids: list[str], places: dict[str, Place]) -> Found:
        """The `depth` best of each question over all shards; where they stand goes into `places`."""
        if not ids:
            return {}
        mine = tables.of_samples(ids)
        columns = ["sample_id", "doc_id", "score", "part", "row"]
        hits = [self._storage.read_table(path, columns, mine) for path in paths]
        found: Found = {}
        for hit in _first(pa.concat_tables(hits), self._depth).to_pylist() if hits else ():
            found.setdefault(hit["sample_id"], {})[hit["doc_id"]] = hit["score"]
            places[hit["doc_id"]] = (hit["part"], hit["row"])
        return found

    def _join(self, found: list[dict[str, float]]) -> dict[str, float]:
        if self._fusion == "rrf":
            return reciprocal_rank(found, self._rrf_k)
        return average(found) if self._fusion == "average" else found[0]


def _first(hits: pa.Table, depth: int) -> pa.Table:
    """The `depth` best hits of each sample: the highest scores, ties by doc_id."""
    keys = [("sample_id", "ascending"), ("score", "descending"), ("doc_id", "ascending")]
    hits = hits.sort_by(keys)
    codes = hits.column("sample_id").combine_chunks().dictionary_encode().indices.to_numpy()
    starts = np.searchsorted(codes, codes)  # sorted, and numbered as they come
    return hits.filter(pa.array(np.arange(len(codes)) - starts < depth))


def _with_docs(
    row: dict[str, Any],
    chosen: list[tuple[str, float]],
    places: dict[str, Place],
    texts: dict[Place, tuple[str, str]],
) -> dict[str, Any]:
    """The row with its new documents. Columns that samples do not have (of seeds) go along in `meta`."""
    docs = []
    for doc, score in chosen:
        title, text = texts[places[doc]]
        docs.append({"doc_id": doc, "title": title, "text": text, "score": score})
    known = set(tables.SCHEMAS["samples"].names)
    more = {name: str(value) for name, value in row.items() if name not in known and value is not None}
    kept = {name: value for name, value in row.items() if name in known}
    return kept | {"docs": docs, "meta": kept["meta"] | more}
