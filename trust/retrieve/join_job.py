"""The last step of `jobs.retrieve`: the hits of all searches joined, and the texts of the documents that are kept."""

from typing import Any

import numpy as np
import pyarrow as pa

from trust import tables
from trust.config import plain
from trust.retrieve.fusion import ranked
from trust.retrieve.passages import Place, read_passages
from trust.retrieve.questions import BLOCK
from trust.retrieve.steps import Search
from trust.runs import Manifest, Plan
from trust.storage import absolute, open_storage
from trust.units import Unit, UnitResult, read_rows, row_units

Found = dict[str, dict[str, float]]  # sample_id -> documents with their scores


def plan_retrieve(search: Search, searches: dict[str, Manifest]) -> Plan:
    """What is to be done.

    Args:
        searches: method -> what it left.
    """
    config, run = search.config, search.run
    hits = {
        method: [run.path(part["path"]) for part in manifest.tables.get("hits", [])]
        for method, manifest in searches.items()
    }
    return Plan(
        job="retrieve",
        identity=search.inputs
        | {
            "corpus": search.corpus.name,
            "searches": {method: manifest.fingerprint for method, manifest in searches.items()},
            "k": config.k,
        },
        units=row_units(search.parts, config.unit_rows, BLOCK),
        worker="trust.retrieve.join_job:JoinWorker",
        worker_config={
            "k": config.k,
            "depth": config.depth,
            "hits": hits,
            "corpus": [part["path"] for part in search.corpus_parts],
            "storage": plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=plain(config),
        cpus=config.cluster.actor_cpus or 1,
    )


class JoinWorker:
    """Gives a block of questions their documents (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._hits, self._corpus = config["hits"], config["corpus"]
        self._k, self._depth = config["k"], config["depth"]

    async def close(self) -> None:
        """Nothing is held."""

    async def work(self, unit: Unit) -> UnitResult:
        rows = read_rows(unit, self._storage)
        ids = [row["sample_id"] for row in rows]
        places: dict[str, Place] = {}
        found = {method: self._found(paths, ids, places) for method, paths in self._hits.items()}
        chosen = {name: self._choose([one.get(name, {}) for one in found.values()]) for name in ids}
        kept = {doc for docs in chosen.values() for doc, _ in docs}
        texts = read_passages(self._corpus, {places[doc] for doc in kept}, self._storage)
        made = [_with_docs(row, chosen[row["sample_id"]], places, texts) for row in rows]
        counts = [len(row["docs"]) for row in made]
        totals = {
            "docs": float(sum(counts)),
            "questions_without_docs": float(counts.count(0)),
            "questions_with_fewer_docs": float(sum(0 < count < self._k for count in counts)),
        }
        return UnitResult({"samples": tables.to_table("samples", made)}, {"ok": len(made)}, totals)

    def _found(self, paths: list[str], ids: list[str], places: dict[str, Place]) -> Found:
        """The `depth` best of each question over all shards; where they stand goes into `places`."""
        mine = tables.of_samples(ids)
        columns = ["sample_id", "doc_id", "score", "part", "row"]
        hits = [self._storage.read_table(path, columns, mine) for path in paths]
        found: Found = {}
        for hit in _first(pa.concat_tables(hits), self._depth).to_pylist() if hits else ():
            found.setdefault(hit["sample_id"], {})[hit["doc_id"]] = hit["score"]
            places[hit["doc_id"]] = (hit["part"], hit["row"])
        return found

    def _choose(self, found: list[dict[str, float]]) -> list[tuple[str, float]]:
        return ranked(found[0], self._k)


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
