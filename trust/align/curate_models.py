"""The workers of `jobs.curate` that ask a model: vectors of questions, and ratings of clusters (trust.units.Worker)."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow.compute as pc

from trust import tables
from trust.align.curate import CURATING, RatingOptions, question_key, rate, sampled
from trust.align.rows import check_split, tally
from trust.ask import Ask, judges
from trust.ask.runner import Ledger, Runner
from trust.errors import JobStopped, RowError
from trust.evaluate import ASKS
from trust.prepare.read import UnitReader
from trust.retry import changed
from trust.storage import open_storage
from trust.units import Unit, UnitResult, read_rows

_COLUMNS = ("dataset", "language", "task")


class EmbedWorker:
    """Keys and vectors of questions. Rows that may not be built from, and those without a vector that need one, failed."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._splits, self._stratum = config["splits"], config["stratum"]
        self._near_evaluation: bool = config["near_evaluation"]
        self._backends = judges.load({"embed": config["embed"]}, self._storage) if config["embed"] else {}
        self._runner = Runner(self._backends)

    async def close(self) -> None:
        for backend in self._backends.values():
            backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        evaluation = unit.source.get("evaluation", "")
        rows = await asyncio.to_thread(self._questions if evaluation else self._rows, unit)
        ledger = Ledger()
        wanted = bool(self._backends) and (not evaluation or self._near_evaluation)
        made = await asyncio.gather(
            *(self._row(row, evaluation, self._runner.ask_for(row["sample_id"], ledger), wanted) for row in rows)
        )
        bad = [row["reason"] for row in made if row["status"] == "failed"]
        return UnitResult(
            {"question_vectors": tables.to_table("question_vectors", made)},
            {"ok": len(made) - len(bad), "failed": len(bad)},
            {f"asks_{key}": float(ledger.counts[key]) for key in ASKS}
            | {"judge_seconds": ledger.seconds}
            | tally("failed", bad),
        )

    def _rows(self, unit: Unit) -> list[dict[str, Any]]:
        return read_rows(unit, self._storage)

    def _questions(self, unit: Unit) -> list[dict[str, Any]]:
        """Of an evaluation set: one question that cannot be read could be one that is built from, so it ends the job."""
        if "file" not in unit.source:
            return read_rows(unit, self._storage)
        reader, found = UnitReader(self._storage), []
        try:
            for row in reader.read(unit.source["file"]):
                value = row.value if isinstance(row.value, dict) else {}
                if not isinstance(question := value.get("question"), str):
                    raise JobStopped(
                        f"exclude: {row.file}, row {row.index + 1}: no `question` can be read there; prepare the file with "
                        "jobs.prepare, and give the name of that run"
                    )
                language = value.get("language")
                language = language if isinstance(language, str) else "und"
                found.append({"sample_id": row.place, "question": question, "language": language})
        finally:
            reader.close()
        return found

    async def _row(self, row: dict[str, Any], evaluation: str, ask: Ask, wanted: bool) -> dict[str, Any]:
        made = {"evaluation": evaluation, "sample_id": row["sample_id"], "status": "ok"}
        made["key"] = question_key(row["question"], row["language"])
        try:
            if not evaluation:
                check_split(row, self._splits)
                made["stratum"] = _value(row, self._stratum)
            if wanted:
                made["vector"] = (await ask.embed(row["question"])).vector
        except RowError as error:
            made |= {"status": "failed", "reason": error.reason, "detail": error.detail}
        return made


def _value(row: dict[str, Any], column: str | None) -> str:
    if column is None:
        return ""
    return str(row[column] if column in _COLUMNS else (row.get("meta") or {}).get(column, ""))


class RateWorker:
    """Topics and demands of clusters. A cluster whose rating cannot be had is a failed row."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._options, self._how = RatingOptions(**config["rating"]), CURATING[config["compat"]]
        self._clustered, self._samples = config["clustered"], config["samples"]
        self._backends = judges.load({"complete": config["complete"]}, self._storage, config.get("budget"))
        self._runner = Runner(self._backends)

    async def close(self) -> None:
        for backend in self._backends.values():
            backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        members = await asyncio.to_thread(self._members, unit)
        again = await asyncio.to_thread(self._failed_before, unit)
        if again is not None:
            members = {row["cluster"]: members[row["cluster"]] for row in again}
        shown = {name: sampled(ids, self._options, self._how.sampled) for name, ids in members.items()}
        questions = await asyncio.to_thread(self._questions, [name for ids in shown.values() for name in ids])
        ledger = Ledger()
        made = await asyncio.gather(
            *(
                self._rate(name, len(members[name]), [questions[one] for one in ids], ledger)
                for name, ids in shown.items()
            )
        )
        bad = [row for row in made if row["status"] == "failed"]
        counts, reasons = {"ok": len(made) - len(bad), "failed": len(bad)}, _reasons(bad)
        if again is not None:
            counts = changed(counts, again)
            for reason, number in _reasons(again).items():
                reasons[reason] = reasons.get(reason, 0.0) - number
        return UnitResult(
            {"clusters": tables.to_table("clusters", made)},
            counts,
            {f"asks_{key}": float(ledger.counts[key]) for key in ASKS}
            | {str(key): float(value) for key, value in ledger.totals.items()}
            | {"judge_seconds": ledger.seconds}
            | reasons,
        )

    def _members(self, unit: Unit) -> dict[int, list[str]]:
        """Cluster -> sample_ids of those that are in it."""
        wanted = (pc.field("cluster") >= unit.source["first"]) & (pc.field("cluster") <= unit.source["last"])
        found = defaultdict(list)
        for path in self._clustered:
            for row in self._storage.read_table(path, ["sample_id", "cluster"], wanted).to_pylist():
                found[row["cluster"]].append(row["sample_id"])
        return dict(sorted(found.items()))

    def _failed_before(self, unit: Unit) -> list[dict[str, Any]] | None:
        """Of a unit that is done again, the clusters that failed."""
        if "retry" not in unit.source:
            return None
        wanted = (pc.field("cluster") >= unit.source["first"]) & (pc.field("cluster") <= unit.source["last"])
        failed = wanted & (pc.field("status") == "failed")
        paths = unit.source["retry"].get("clusters", [])
        return [row for path in paths for row in self._storage.read_table(path, filters=failed).to_pylist()]

    def _questions(self, sample_ids: list[str]) -> dict[str, str]:
        if not sample_ids:
            return {}
        only = tables.of_samples(sample_ids)
        found = (self._storage.read_table(path, ["sample_id", "question"], only) for path in self._samples)
        return {row["sample_id"]: row["question"] for content in found for row in content.to_pylist()}

    async def _rate(self, cluster: int, rows: int, questions: list[str], ledger: Ledger) -> dict[str, Any]:
        made = {"cluster": cluster, "rows": rows, "status": "ok"}
        try:
            rating = await rate(questions, self._options, self._how, self._runner.ask_for(f"cluster {cluster}", ledger))
        except RowError as error:
            return made | {"status": "failed", "reason": error.reason, "detail": error.detail}
        return made | {"topic": rating.topic, "demand": rating.demand}


def _reasons(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    return tally("failed", (row["reason"] for row in rows))
