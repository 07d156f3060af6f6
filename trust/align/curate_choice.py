"""The workers of `jobs.curate` that choose: what repeats and which cluster it is in, what is drawn, and the seeds themselves
(trust.units.Worker)."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trust import tables
from trust.align import clusters
from trust.align.clusters import NOISE, ClusteringOptions
from trust.align.curate import CURATING, draw, first_like, near_repeats
from trust.align.rows import failed, tally
from trust.errors import RowError
from trust.storage import open_storage
from trust.units import Unit, UnitResult, read_rows

_BATCH = 4096
_OUTCOME = ("status", "reason", "detail")


class ClusterWorker:
    """What repeats or stands in an evaluation set, and the clusters of all else, in order of sample_id."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._near = config["near"]
        self._options = ClusteringOptions(**config["clustering"])

    async def close(self) -> None:
        """Nothing to end."""

    async def work(self, unit: Unit) -> UnitResult:
        return await asyncio.to_thread(self._work, unit.source["vectors"])

    def _work(self, paths: list[str]) -> UnitResult:
        rows = self._rows(paths)
        vectors = self._vectors(paths, {row["sample_id"]: at for at, row in enumerate(rows)})
        self._drop_evaluation(rows, vectors, paths)
        self._drop_repeats(rows, vectors)
        left = _left(rows)
        totals = {}
        if self._options.method != "skip":
            found, places = clusters.cluster(vectors[left], self._options)
            for at, number, place in zip(left, found.tolist(), places.tolist(), strict=True):
                rows[at] |= {"cluster": number, "x": place[0], "y": place[1]}
            totals = {"clusters": float(found.max(initial=NOISE) + 1), "noise": float((found == NOISE).sum())}
        totals |= {"width": float(vectors.shape[1])}
        made = [{name: value for name, value in row.items() if name != "key"} for row in rows]
        return UnitResult({"clustered": tables.to_table("clustered", made)}, *_told(rows, totals))

    def _rows(self, paths: list[str]) -> list[dict[str, Any]]:
        """The questions that are built from, in order of sample_id."""
        columns = ["sample_id", "key", "stratum", *_OUTCOME]
        only = pc.field("evaluation") == ""
        rows = [row for path in paths for row in self._storage.read_table(path, columns, only).to_pylist()]
        return sorted(rows, key=lambda row: row["sample_id"])

    def _vectors(self, paths: list[str], places: dict[str, int]) -> np.ndarray:
        """Their vectors, float32, shape (rows, width); zeros where there is none."""
        made = np.zeros((len(places), 0), np.float32)
        for names, vectors in self._batches(paths, evaluation=False):
            if not made.shape[1]:
                made = np.zeros((len(places), vectors.shape[1]), np.float32)
            made[[places[name] for name in names]] = vectors
        return made

    def _batches(self, paths: list[str], evaluation: bool) -> Iterator[tuple[list[str], np.ndarray]]:
        """Ids and vectors of the rows that have one, some thousands at a time."""
        for path in paths:
            with self._storage.open_table(path) as file:
                for batch in file.iter_batches(_BATCH, columns=["evaluation", "sample_id", "vector"]):
                    here = pc.not_equal(batch["evaluation"], "") if evaluation else pc.equal(batch["evaluation"], "")
                    kept = pa.table(batch).filter(pc.and_(here, pc.is_valid(batch["vector"])))
                    if kept.num_rows:
                        flat = kept["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
                        yield kept["sample_id"].to_pylist(), flat.reshape(kept.num_rows, -1)

    def _drop_evaluation(self, rows: list[dict[str, Any]], vectors: np.ndarray, paths: list[str]) -> None:
        keys = defaultdict(list)
        for at in _left(rows):
            keys[rows[at]["key"]].append(at)
        for path in paths:
            content = self._storage.read_table(path, ["evaluation", "sample_id", "key"], pc.field("evaluation") != "")
            for one in content.to_pylist():
                for at in keys.pop(one["key"], []):
                    where = f"{one['sample_id']} of {one['evaluation']} asks the same"
                    rows[at] |= {"status": "dropped", "reason": "in_evaluation_set", "detail": where}
        if (threshold := self._near["evaluation"]) is None:
            return
        for names, others in self._batches(paths, evaluation=True):
            left = np.array(_left(rows), np.int64)
            for at, like in zip(left, first_like(vectors[left], others, threshold), strict=True):
                if like >= 0:
                    where = f"{names[like]} of an evaluation set asks nearly the same"
                    rows[at] |= {"status": "dropped", "reason": "near_evaluation_set", "detail": where}

    def _drop_repeats(self, rows: list[dict[str, Any]], vectors: np.ndarray) -> None:
        first: dict[str, str] = {}
        for at in _left(rows):
            row = rows[at]
            if (kept := first.setdefault(row["key"], row["sample_id"])) != row["sample_id"]:
                row |= {"status": "dropped", "reason": "repeated_question", "detail": f"asks the same as {kept}"}
        if (threshold := self._near["repeats"]) is None:
            return
        left = _left(rows)
        for at, like in zip(left, near_repeats(vectors[left], threshold).tolist(), strict=True):
            if like >= 0:
                where = f"asks nearly the same as {rows[left[like]]['sample_id']}"
                rows[at] |= {"status": "dropped", "reason": "near_repeat", "detail": where}


class SelectWorker:
    """What becomes of every question."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._config = config
        self._how = CURATING[config["compat"]]

    async def close(self) -> None:
        """Nothing to end."""

    async def work(self, unit: Unit) -> UnitResult:
        return await asyncio.to_thread(self._work)

    def _work(self) -> UnitResult:
        columns = ["sample_id", "cluster", "stratum", *_OUTCOME]
        rows = [row for path in self._config["clustered"] for row in self._read(path, columns)]
        rated = {row["cluster"]: row for path in self._config["clusters"] for row in self._read(path)}
        strata = defaultdict(list)
        for row in rows:
            if row["status"] == "ok":
                self._take(row, rated)
            if row["status"] == "ok":
                own = self._config["draw"]["by"] not in (None, "demand")
                demand = row.get("demand")
                strata[row["stratum"] if own or demand is None else f"{demand:g}"].append(row["sample_id"])
        drawn = draw(strata, self._config["draw"]["size"], self._config["draw"]["seed"])
        for row in rows:
            del row["stratum"]
            if row["status"] == "ok" and row["sample_id"] not in drawn:
                row |= {"status": "dropped", "reason": "not_drawn"}
        totals = {f"drawn:{name}": 0.0 for name in strata} | {
            f"drawn:{name}": float(sum(one in drawn for one in ids)) for name, ids in strata.items()
        }
        return UnitResult({"selection": tables.to_table("selection", rows)}, *_told(rows, totals))

    def _read(self, path: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._storage.read_table(path, columns).to_pylist()
        return rows

    def _take(self, row: dict[str, Any], rated: dict[int, dict[str, Any]]) -> None:
        """Gives the row its cluster's topic and demand, or says why it is left out."""
        if not self._config["clusters_wanted"]:
            return
        if row["cluster"] == NOISE and self._config["noise"] == "drop":
            row |= {"status": "dropped", "reason": "noise", "detail": "in no cluster"}
            return
        cluster = rated[row["cluster"]]
        where = f"cluster {row['cluster']}"
        if cluster["status"] == "failed":
            dropped = self._how.unread == "dropped" and cluster["reason"] == "rating_unread"
            told = {"detail": f"{where}: {cluster['reason']}: {cluster['detail']}"}
            row |= told | (
                {"status": "dropped", "reason": "rating_unread"}
                if dropped
                else {"status": "failed", "reason": "rating_failed"}
            )
            return
        row |= {"topic": cluster["topic"], "demand": cluster["demand"]}
        if cluster["demand"] < self._config["at_least"]:
            where = f"{where} demands {cluster['demand']:g}, less than {self._config['at_least']:g}"
            row |= {"status": "dropped", "reason": "low_demand", "detail": where}


class CurateWorker:
    """Writes the seeds of units of rows, and those that failed."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._selection: list[str] = config["selection"]

    async def close(self) -> None:
        """Nothing to end."""

    async def work(self, unit: Unit) -> UnitResult:
        return await asyncio.to_thread(self._work, unit)

    def _work(self, unit: Unit) -> UnitResult:
        rows = read_rows(unit, self._storage)
        only = tables.of_samples(row["sample_id"] for row in rows)
        found = (row for path in self._selection for row in self._storage.read_table(path, filters=only).to_pylist())
        chosen = {row["sample_id"]: row for row in found}
        seeds, bad = [], []
        for row in rows:
            choice = chosen[row["sample_id"]]
            if choice["status"] == "ok":
                more = {name: choice[name] for name in ("cluster", "topic", "demand")}
                seeds.append({name: row[name] for name in tables.SCHEMAS["samples"].names} | more)
            elif choice["status"] == "failed":
                error = RowError(choice["reason"], choice["detail"])
                bad.append(failed("curate", row["sample_id"], error))
        return UnitResult(
            {"seeds": tables.to_table("seeds", seeds), "failed": tables.to_table("failed", bad)},
            *_told([chosen[row["sample_id"]] for row in rows], {}),
        )


def _left(rows: list[dict[str, Any]]) -> list[int]:
    """Where the rows stand that are still in."""
    return [at for at, row in enumerate(rows) if row["status"] == "ok"]


def _told(rows: list[dict[str, Any]], totals: dict[str, float]) -> tuple[dict[str, int], dict[str, float]]:
    """Counts by outcome, and totals with the reasons of what was left out."""
    for status in ("dropped", "failed"):
        totals = totals | tally(status, (row["reason"] for row in rows if row["status"] == status))
    return dict(Counter(row["status"] for row in rows)), totals
