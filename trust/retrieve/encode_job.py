"""Texts as vectors: the passages of a corpus once (`_corpora/{corpus}-{method}-{fingerprint}`, for every run), and the questions
of a run (its jobs `encode_dense` and `encode_late`).
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trust import cluster, tables
from trust.align.rows import failed, tally
from trust.ask import judges
from trust.ask.runner import Ledger, RowAsk, Runner
from trust.config import build, plain
from trust.errors import RowError
from trust.retrieve.config import RetrieveConfig
from trust.retrieve.corpus import whole
from trust.retrieve.late import LateEncoder, LateOptions
from trust.retrieve.steps import WORK_S, Search, execute_aside, execute_step, side_run
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.units import Unit, UnitResult, row_units

TABLE = {"dense": "embeddings", "late": "token_embeddings"}
UNIT_ROWS = 8192  # at most


def backend(config: RetrieveConfig, method: str) -> Any:
    """The config of the model of a method."""
    return config.retriever.late if method == "late" else config.judge.only(["embed"]).embed


def vector_run(search: Search, method: str) -> Run:
    """Where the vectors of the corpus lie or will lie."""
    return side_run(search.config, f"{search.corpus.name}-{method}-", _model(search, method))


def encode_corpus(search: Search, method: str) -> tuple[Run, Manifest]:
    """The vectors of the corpus, made now where no run before has."""
    run = vector_run(search, method)
    if made := run.manifest("encode"):
        return run, made
    numbers = {part["path"]: number for number, part in enumerate(search.corpus_parts)}
    units = [
        Unit(unit.name, unit.source | {"part": numbers[unit.source["path"]]}, unit.rows)
        for unit in row_units(search.corpus_parts, None, UNIT_ROWS)
    ]
    identity = {"corpus": search.corpus.name} | _model(search, method)
    return run, execute_aside(_plan(search, method, "encode", units, identity), run, search.config)


def encode_questions(search: Search, method: str) -> Manifest:
    """The vectors of the questions; those that have none are in the table `failed`."""
    units = row_units(search.parts, search.config.unit_rows, UNIT_ROWS)
    identity = search.inputs | _model(search, method)
    return execute_step(_plan(search, method, f"encode_{method}", units, identity), search.run, search.config)


def _model(search: Search, method: str) -> dict[str, Any]:
    return {"model": backend(search.config, method).fingerprint(search.run.storage)}


def _plan(search: Search, method: str, job: str, units: list[Unit], identity: dict[str, Any]) -> Plan:
    config, model = search.config, backend(search.config, method)
    cpus, gpus = cluster.actor_resources([model], config.cluster)
    return Plan(
        job=job,
        identity=identity,
        units=units,
        worker="trust.retrieve.encode_job:EncodeWorker",
        worker_config={
            "job": job,
            "method": method,
            "model": model.for_actor() if method == "late" else model.for_actor(int(cpus)),
            "cpus": int(cpus),
            "storage": plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=plain(config),
        cpus=cpus,
        gpus=gpus,
        rows_in_flight=1 if method == "late" else 256,  # the runner of asks fills its batches from many units
    )


class EncodeWorker:
    """Makes vectors of the texts of units, be they passages or questions (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._job, self._method = config["job"], config["method"]
        self._late: LateEncoder | None = None
        self._alone = asyncio.Lock()  # two batches at once would only share the model's CPUs or GPU
        if self._method == "late":
            self._late = LateEncoder(build(LateOptions, config["model"]), self._storage, config["cpus"])
        else:
            self._embedder = judges.load({"embed": config["model"]}, self._storage)["embed"]
            self._runner = Runner({"embed": self._embedder})

    async def close(self) -> None:
        if self._late is None:
            self._embedder.close()

    async def work(self, unit: Unit) -> UnitResult:
        rows = await asyncio.to_thread(self._storage.read_range, unit.source["path"], unit.source["start"], unit.rows)
        part = unit.source.get("part")
        questions = part is None
        if questions:
            ids, texts = rows.column("sample_id").to_pylist(), rows.column("question").to_pylist()
        else:
            ids = rows.column("doc_id").to_pylist()
            found = (rows.column(name).to_pylist() for name in ("title", "text"))
            texts = [whole(title, text) for title, text in zip(*found, strict=True)]
        ledger = Ledger()
        vectors = await self._encode(texts, questions, ledger)
        bad = [failed(self._job, name, made) for name, made in zip(ids, vectors, strict=True) if _is_error(made)]
        good = [i for i, made in enumerate(vectors) if not _is_error(made)]
        table = TABLE[self._method]
        places = None if questions else [unit.source["start"] + i for i in good]
        content = _table(table, [ids[i] for i in good], [vectors[i] for i in good], part, places)
        totals = {"truncated": float(ledger.counts["truncated"]), WORK_S: ledger.seconds}
        return UnitResult(
            {table: tables.sort(table, content), "failed": tables.to_table("failed", bad)},
            {"ok": len(good), "failed": len(bad)},
            totals | tally("failed", (row["reason"] for row in bad)),
        )

    async def _encode(self, texts: list[str], questions: bool, ledger: Ledger) -> list[Any]:
        """A vector a text (dense) or one a token (late), or the RowError that says why there is none."""
        if self._late is not None:
            async with self._alone:
                began = time.monotonic()
                found = await asyncio.to_thread(self._late.encode, texts, questions)
                ledger.seconds += time.monotonic() - began
                return found
        asks = [self._runner.ask_for("", ledger) for _ in texts]
        return await asyncio.gather(*(_embed(ask, text) for ask, text in zip(asks, texts, strict=True)))


async def _embed(ask: RowAsk, text: str) -> np.ndarray | RowError:
    try:
        return (await ask.embed(text)).vector
    except RowError as error:
        return error


def _is_error(made: Any) -> bool:
    return isinstance(made, RowError)


def _table(
    name: str, ids: list[str], vectors: Sequence[np.ndarray], part: int | None, rows: list[int] | None
) -> pa.Table:
    schema = tables.SCHEMAS[name]
    kind = schema.field(schema.names[-1]).type
    sizes = np.cumsum([0, *(vector.size for vector in vectors)])
    values = np.concatenate([vector.reshape(-1) for vector in vectors] or [np.zeros(0)])
    columns = [
        pa.array(ids, pa.string()),
        pa.array([part] * len(ids), pa.int32()),
        pa.array([None] * len(ids) if rows is None else rows, pa.int64()),
    ]
    if name == "token_embeddings":
        columns.append(pa.array([len(vector) for vector in vectors], pa.int32()))
    columns.append(
        pa.ListArray.from_arrays(
            pa.array(sizes, pa.int32()), pa.array(values.astype(kind.value_type.to_pandas_dtype()))
        )
    )
    return pa.Table.from_arrays(columns, schema=schema)
