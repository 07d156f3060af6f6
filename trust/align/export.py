"""The table `errors` as JSON lines, for people and for tools that read no Parquet."""

import json
from typing import Any

from trust import tables
from trust.config import ClusterConfig
from trust.prepare.job import on_cluster
from trust.runs import Manifest, Run
from trust.storage import Storage

FOLDER = "export"
FILE_ROWS = 4096

_INDEX = "errors-index.json"


def export_errors(manifest: Manifest, run: Run, cluster: ClusterConfig) -> list[str]:
    """Writes `{run}/export/errors-00000.jsonl` and on, each by a task of its own, then an index that says which table they
    are; with the index there already, nothing.

    A line holds the columns of a row of `errors` under their names.

    Returns:
        Names of the files.
    """
    wanted = {key: getattr(manifest, key) for key in ("fingerprint", "finished", "retries")}
    index = run.path(FOLDER, _INDEX)
    if run.storage.exists(index):
        found: dict[str, Any] = json.loads(run.storage.read_bytes(index))
        if wanted.items() <= found.items():
            return list(found["files"])
        run.storage.delete(index)
    todo = [
        (run.path(part["path"]), start, min(FILE_ROWS, part["rows"] - start))
        for part in manifest.tables.get("errors", [])
        for start in range(0, part["rows"], FILE_ROWS)
    ]
    names = [f"errors-{number:05d}.jsonl" for number in range(len(todo))]
    tasks = [(run.storage, *piece, run.path(FOLDER, name)) for piece, name in zip(todo, names, strict=True)]
    for _ in on_cluster(cluster, cluster.actor_cpus or 1, write_lines, tasks):
        pass
    for name in run.storage.list_names(run.path(FOLDER)):
        if name.startswith("errors-") and name not in names:
            run.storage.delete(run.path(FOLDER, name))
    made = wanted | {"rows": sum(rows for _, _, rows in todo), "files": names}
    run.storage.write_bytes(index, json.dumps(made, indent=1).encode())
    return names


def write_lines(storage: Storage, source: str, start: int, rows: int, target: str) -> None:
    """Writes the rows `start` to `start + rows` of a part as JSON lines."""
    found = tables.to_rows(storage.read_range(source, start, rows))
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in found)
    storage.write_bytes(target, "".join(lines).encode())
