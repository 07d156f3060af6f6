"""Runs made by hand: tables, manifests and a summary as the jobs leave them, without a cluster."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trust import config as configs
from trust import results, tables
from trust.ask.judges import JudgeConfig
from trust.ask.lexical import LexicalConfig
from trust.evaluate import EvaluateConfig, EvaluateWorker
from trust.runs import Manifest, Run, halves
from trust.storage import Storage, StorageConfig
from trust.units import Unit, UnitResult


def response(number: int, output: str | None, **changes: Any) -> dict[str, Any]:
    """A row of the responses table: one question with two documents, the first of which holds the answer."""
    docs = [
        {"doc_id": "a", "title": "Baikal", "text": "The Angara flows out of Lake Baikal.", "answers_found": [1]},
        {"doc_id": "b", "title": "Murray", "text": "The Murray is a river in Australia.", "answers_found": [0]},
    ]
    row = {
        "sample_id": f"demo:{number:05d}",
        "dataset": "demo",
        "language": "en",
        "task": "em",
        "question": "Which river flows out of Lake Baikal?",
        "answers": [["Angara", "Angara River"]],
        "docs": docs,
        "references": [],
        "context": {},
        "meta": {},
        "model": "small",
        "prompt": "em",
        "draw": 0,
        "output": output,
        "finish_reason": "stop",
        "output_tokens": 12,
        "status": "ok" if output is not None else "failed",
        "reason": None if output is not None else "too_long",
        "detail": None if output is not None else "the prompt has 9000 tokens, the model takes 8192",
    }
    return row | changes


def unanswerable(number: int, output: str, **changes: Any) -> dict[str, Any]:
    row = response(number, output, **changes)
    for doc in row["docs"]:
        doc["answers_found"] = [0]
    return row


def write_run(root: Path, rows: list[dict[str, Any]], name: str = "hand", **options: Any) -> Run:
    """A finished run over `rows`: responded, evaluated by the lexical judge, summarised.

    Args:
        options: of EvaluateConfig.
    """
    config = EvaluateConfig(
        run=name,
        storage=StorageConfig(str(root)),
        judge=JudgeConfig(LexicalConfig()),
        **{"metrics": {"trust_score": {}}, "replicates": 100, "max_failed": 1.0} | options,
    )
    run = Run(Storage(), str(root), name)
    responses = tables.to_table("responses", rows)
    counts = {status: responses["status"].to_pylist().count(status) for status in ("ok", "failed")}
    save(run, "respond", {}, UnitResult({"responses": responses}, counts))
    return evaluate(run, config)


def evaluate(run: Run, config: EvaluateConfig) -> Run:
    """What `jobs.evaluate` leaves before it writes the report, in this process."""
    parts = run.parts("responses")
    plain = {
        "judge": {ask: asdict(judge) for ask, judge in config.judge.chosen().items()},
        "metrics": config.metrics,
        "compat": config.compat,
        "slices": config.slices,
        "replicates": config.replicates,
        "storage": asdict(config.storage),
        "root": config.storage.root,
    }
    worker = EvaluateWorker(plain)
    source = {"path": parts[0]["path"], "start": 0, "rows": parts[0]["rows"]}
    result = asyncio.run(worker.work(Unit("u0", source, parts[0]["rows"])))
    manifest = save(run, "evaluate", configs.plain(config), result)
    results.write(run, manifest, config)
    return run


def save(run: Run, job: str, config: dict[str, Any], result: UnitResult) -> Manifest:
    """Writes the tables of one unit as a job's whole output, and its manifest."""
    made = {}
    for table, content in result.tables.items():
        path = f"{table}/{job}-0.parquet"
        size = run.storage.write_table(run.path(path), content)
        made[table] = [{"path": path, "rows": content.num_rows, "bytes": size}]
    sums = f"manifests/{job}-0.sums.npz" if result.sums else ""
    if sums:
        run.write_sums(sums, {name: halves(array) for name, array in result.sums.items()})
    manifest = Manifest(
        job=job,
        run=run.name,
        fingerprint="0" * 16,
        identity={},
        config=config,
        versions={"python": "3.11.2", "ray": "2.56.1"},
        finished="2026-01-02T03:04:05Z",
        units=1,
        counts=result.counts,
        totals=result.totals,
        tables=made,
        sums=sums,
    )
    run.storage.write_bytes(run.path("manifests", f"{job}.json"), json.dumps(asdict(manifest)).encode())
    return manifest


def embedded(page: str) -> list[dict[str, Any]]:
    """The rows that a page carries."""
    start = page.index('<script type="application/json" id="rows">') + len('<script type="application/json" id="rows">')
    return json.loads(page[start : page.index("</script>", start)])
