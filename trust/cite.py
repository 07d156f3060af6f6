"""The job that cites responses afterwards: the table `responses` of another run, with citations, and what was chosen."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from trust import cluster, cost, tables
from trust.ask import judges
from trust.ask.runner import Ledger, RowAsk, Runner
from trust.compat import choices
from trust.config import AskingJobConfig, plain
from trust.errors import ConfigError, RowError
from trust.evaluate import ASKS
from trust.execute import execute
from trust.posthoc import CiteOptions, Citer, documents
from trust.retry import changed, failed_before
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.text import sentences
from trust.units import Unit, UnitResult, read_rows, row_units
from trust.verdicts import UNREADABLE, VerdictStore, care_for, used_verdicts

UNIT_ROWS = 128  # at most


@dataclass(kw_only=True)
class CiteConfig(AskingJobConfig):
    """`jobs.cite`.

    Attributes:
        from_run: the run whose responses are cited.
        judge: who scores the documents; only the one that `cite.by` needs is loaded.
    """

    from_run: str
    cite: CiteOptions
    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.run == self.from_run:
            raise ConfigError(
                f"run={self.run}: give the cited responses a run of their own, beside the one that is read"
            )

    @property
    def ask(self) -> str:
        """The ask that scores documents."""
        return "embed" if self.cite.by == "embedding" else "entails"

    @property
    def backend(self) -> judges.EntailsConfig:
        """The config of who answers it."""
        chosen: judges.EntailsConfig = self.judge.only([self.ask]).chosen()[self.ask]
        return chosen


def run_cite(config: CiteConfig) -> Manifest:
    """Cites every response of `from_run`; the tables `responses` and `citations`.

    Raises:
        PreflightError: no responses, no documents to cite, no model, no room; nothing has been loaded then.
        JobStopped: the judge's `cost_limit` was reached before every row was cited.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    check(config, run)
    cluster.connect(config.cluster)
    plan = plan_cite(config, run, *cluster.actor_resources([config.backend], config.cluster))
    plan.worker_config["budget"] = cost.share(config.backend.cost_limit, plan, run, config)
    manifest = execute(plan, run, config, config.retry_failed)
    if config.ask == "entails":
        care_for(VerdictStore(run.storage, absolute(config.storage.root), plan.identity["judge"]), manifest)
    cost.check(config.backend.cost_limit, manifest)
    return manifest


def check(config: CiteConfig, run: Run) -> None:
    """Whether responses and model are there; nothing is loaded. Raises PreflightError."""
    responses(config)
    sentences.preflight(choices(config.compat).sentences)
    config.backend.preflight(run.storage)


def responses(config: CiteConfig) -> tuple[list[dict[str, Any]], str]:
    """Parts of the table that is cited, and a hash over their manifests. Raises PreflightError."""
    return Run.of(config, config.from_run).inputs("responses", "jobs.respond")


def plan_cite(config: CiteConfig, run: Run, cpus: float, gpus: float) -> Plan:
    """What is to be done.

    Args:
        cpus, gpus: what one actor takes.

    Raises:
        PreflightError: no documents to cite.
    """
    parts, inputs = responses(config)
    samples, prompt, of_samples = _samples(config, Run.of(config, config.from_run))
    return Plan(
        job="cite",
        identity={
            "inputs": inputs,
            "samples": of_samples,
            "judge": config.backend.fingerprint(run.storage),
            "cite": asdict(config.cite),
            "compat": config.compat,
        },
        units=row_units(parts, config.unit_rows, UNIT_ROWS),
        worker="trust.cite:CiteWorker",
        worker_config={
            "ask": config.ask,
            "backend": config.backend.for_actor(int(cpus)),
            "cite": asdict(config.cite),
            "compat": config.compat,
            "samples": samples,
            "closed_book": prompt,
            "storage": plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=plain(config),
        cpus=cpus,
        gpus=gpus,
        rows_in_flight=16,
    )


def _samples(config: CiteConfig, source: Run) -> tuple[list[str], str | None, str | None]:
    """Where the documents of closed-book responses lie, the name of their prompt, and a hash over the samples; nothing where
    the responses were shown documents."""
    respond = source.manifest("respond")
    if respond is None or respond.config["prompt"]["docs"]:
        return [], None, None
    parts, inputs = Run.of(config, respond.config.get("from_run") or source.name).inputs("samples", "jobs.prepare")
    return [part["path"] for part in parts], respond.config["prompt"]["name"], inputs


class CiteWorker:
    """Cites units of the responses table (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._options = CiteOptions(**config["cite"])
        self._citer = Citer(self._options, config["compat"])
        self._samples, self._closed_book = config["samples"], config["closed_book"]
        self._judges = config["ask"] == "entails"
        loaded = judges.load({config["ask"]: config["backend"]}, self._storage, config.get("budget"))
        self._backend = loaded[config["ask"]]
        self._runner = Runner({config["ask"]: self._backend})
        self._verdicts = VerdictStore(self._storage, config["root"], self._backend.fingerprint)

    async def close(self) -> None:
        self._backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        rows = [self._named(row) for row in await asyncio.to_thread(read_rows, unit, self._storage)]
        ids = [row["sample_id"] for row in rows]
        again = await asyncio.to_thread(failed_before, unit, self._storage, "responses", ids)
        if again is not None:
            here = set(map(tables.row_key, rows))  # not the draws of the same questions in the next unit
            again = [row for row in again if tables.row_key(row) in here]
            keys = set(map(tables.row_key, again))
            rows = [row for row in rows if tables.row_key(row) in keys]
        ledger = Ledger({"entails": self._backend.fingerprint})
        known = await asyncio.to_thread(self._verdicts.load, ids) if self._judges else []
        for verdict in known:
            ledger.know(verdict)
        docs = await asyncio.to_thread(self._sample_docs, rows)
        asks = [self._runner.ask_for(row["sample_id"], ledger) for row in rows]
        made = await asyncio.gather(*(self._cite(row, docs, ask) for row, ask in zip(rows, asks, strict=True)))
        if self._judges:
            trails = [{"sample_id": row["sample_id"], "asks": ask.trail} for row, ask in zip(rows, asks, strict=True)]
            old = {(verdict["sample_id"], verdict["hash"]) for verdict in known}
            used = used_verdicts(trails, ledger.verdicts)
            await asyncio.to_thread(self._verdicts.add, [v for v in used if (v["sample_id"], v["hash"]) not in old])
        return self._result([row for row, _ in made], [choice for _, found in made for choice in found], ledger, again)

    def _named(self, row: dict[str, Any]) -> dict[str, Any]:
        return row | {"prompt": f"{row['prompt']}+{self._options.name}"}

    def _sample_docs(self, rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Documents of the samples whose responses were shown none."""
        bare = [row["sample_id"] for row in rows if not row.get("docs")]
        if not bare:
            return {}
        only = tables.of_samples(bare)
        found = (self._storage.read_table(path, ["sample_id", "docs"], only) for path in self._samples)
        return {row["sample_id"]: row["docs"] or [] for content in found for row in content.to_pylist()}

    async def _cite(
        self, row: dict[str, Any], docs: dict[str, list[dict[str, Any]]], ask: RowAsk
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The response cited, or failed, and rows of the table citations."""
        closed = row["prompt"] == f"{self._closed_book}+{self._options.name}"
        try:
            row = row | {"docs": documents(row, docs.get(row["sample_id"], None if closed else []), self._options.docs)}
            if row["status"] != "ok":  # of a response that failed there is nothing to cite
                return row, []
            output, chosen = await self._citer.cite(row, ask)
        except RowError as error:
            failed = {"output": None, "status": "failed", "reason": error.reason, "detail": error.detail}
            return row | failed, []
        key = {column: row[column] for column in tables.SORT_KEYS["responses"]}
        return row | {"output": output}, [key | asdict(choice) for choice in chosen]

    def _result(
        self,
        responses: list[dict[str, Any]],
        chosen: list[dict[str, Any]],
        ledger: Ledger,
        again: list[dict[str, Any]] | None,
    ) -> UnitResult:
        counts, reasons = dict(Counter(row["status"] for row in responses)), _reasons(responses)
        if again is not None:
            counts = changed(counts, again)
            reasons.subtract(_reasons(again))
        return UnitResult(
            {
                "responses": tables.to_table("responses", responses),
                "citations": tables.to_table("citations", chosen),
            },
            counts,
            {f"asks_{key}": float(ledger.counts[key]) for key in ASKS}
            | ledger.totals
            | {
                "judge_seconds": ledger.seconds,
                "sentences": float(len(chosen)),
                "sentences_cited": float(sum(choice["doc"] is not None for choice in chosen)),
            }
            | {f"{UNREADABLE}{path}": 1.0 for path in self._verdicts.unreadable}
            | dict(reasons),
        )


def _reasons(responses: list[dict[str, Any]]) -> Counter[str]:
    return Counter(f"failed:{row['reason']}" for row in responses if row["status"] == "failed")
