"""Search by vectors (jobs `search_dense` and `search_late`): every question with every passage, block by block."""

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trust import cluster
from trust.config import plain
from trust.retrieve.dense import Passages, Vectors, multiplier, search_block
from trust.retrieve.encode_job import TABLE, backend, encode_corpus, encode_questions
from trust.retrieve.late import TokenVectors
from trust.retrieve.questions import blocks, groups, read_questions, search_units
from trust.retrieve.steps import WORK_S, Search, execute_step
from trust.retrieve.top import Best, Block
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.units import Unit, UnitResult

_BLOCK = {"dense": 8192, "late": 1024}  # passages that are compared at a time


def search_vectors(search: Search, method: str) -> dict[str, Manifest]:
    """Leaves the best documents of each question in the table `hits`; encodes first what no run before has.

    Returns:
        Job -> its manifest.
    """
    corpus, made = encode_corpus(search, method)
    questions = encode_questions(search, method)
    hits = execute_step(_plan(search, method, corpus, questions), search.run, search.config)
    return {f"encode_{method}_corpus": made, f"encode_{method}": questions, f"search_{method}": hits}


def _plan(search: Search, method: str, corpus: Run, questions: Manifest) -> Plan:
    config, table = search.config, TABLE[method]
    cpus, gpus = cluster.actor_resources([backend(config, method)], config.cluster)
    return Plan(
        job=f"search_{method}",
        identity=search.inputs | {"vectors": corpus.name, "questions": questions.fingerprint, "depth": config.depth},
        units=search_units(groups(corpus.parts(table)), blocks(search.parts, config.unit_rows)),
        worker="trust.retrieve.vector_job:VectorWorker",
        worker_config={
            "method": method,
            "depth": config.depth,
            "questions": [search.run.path(part["path"]) for part in questions.tables.get(table, [])],
            "storage": plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=plain(config),
        cpus=cpus,
        gpus=gpus,
    )


class VectorWorker:
    """Compares a block of questions with some parts of a corpus (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._method, self._depth, self._questions = config["method"], config["depth"], config["questions"]
        self._multiply = multiplier()

    async def close(self) -> None:
        """Nothing is held."""

    async def work(self, unit: Unit) -> UnitResult:
        began = time.monotonic()
        names, _ = read_questions(unit, self._storage)
        among = pc.field("id").isin(pa.array(names, pa.string()))
        found = [self._storage.read_table(path, filters=among) for path in self._questions]
        asked = pa.concat_tables(found) if found else None
        if asked is None or not asked.num_rows:
            return UnitResult({}, {"ok": unit.rows})
        best = Best(asked.num_rows, self._depth)
        for path in unit.source["parts"]:
            with self._storage.open_table(path) as file:
                for batch in file.iter_batches(_BLOCK[self._method]):
                    passages = pa.Table.from_batches([batch])
                    search_block(self._compared(asked, passages), self._depth, best, _block(passages))
        hits = best.table(self._method, asked.column("id").to_pylist())
        return UnitResult({"hits": hits}, {"ok": unit.rows}, {WORK_S: time.monotonic() - began})

    def _compared(self, questions: pa.Table, passages: pa.Table) -> Passages:
        if self._method == "dense":
            return Vectors(_matrix(questions, "vector"), _matrix(passages, "vector"), self._multiply)
        return TokenVectors(_tokens(questions), _lengths(questions), _tokens(passages), _lengths(passages))


def _matrix(content: pa.Table, column: str) -> np.ndarray:
    """A vector a row, float32."""
    return np.asarray(_values(content, column).reshape(content.num_rows, -1))


def _tokens(content: pa.Table) -> np.ndarray:
    """The vectors of all tokens one after the other, float32."""
    values = _values(content, "vectors").astype(np.float32)
    return np.asarray(values.reshape(int(_lengths(content).sum()), -1))


def _lengths(content: pa.Table) -> np.ndarray:
    return np.asarray(content.column("tokens").to_numpy().astype(np.int64))


def _values(content: pa.Table, column: str) -> np.ndarray:
    return np.asarray(content.column(column).combine_chunks().flatten().to_numpy())


def _block(passages: pa.Table) -> Block:
    return Block(passages.column("id"), *(passages.column(name).to_numpy() for name in ("part", "row")))
