"""Files of ratings, and configs over them."""

import json
from pathlib import Path
from typing import Any

from trust.agree import AgreeConfig
from trust.prepare.config import DataConfig
from trust.storage import StorageConfig


def config(root: Path, path: Path | None = None, kind: str = "trust", **options: Any) -> AgreeConfig:
    """A config over a file; `data_NAME` are options of the data."""
    data = {name.removeprefix("data_"): options.pop(name) for name in [*options] if name.startswith("data_")}
    read = DataConfig(kind=kind, path=None if path is None else str(path), **{"name": "rated"} | data)
    storage = StorageConfig(str(root / "runs"))
    return AgreeConfig(**{"run": "agreement", "data": read, "storage": storage, "replicates": 200} | options)


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def rated(document: int, system: str, people: Any, metric: float | None = None) -> dict[str, Any]:
    """A row in this project's form, with one dimension and one metric."""
    return {
        "id": f"d{document}",
        "model": system,
        "ratings": {"quality": people},
        "metrics": {} if metric is None else {"m": metric},
    }
