"""The job that makes positives: the table `positives`, the answer or refusal that each labelled sample should have got."""

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trust import cluster, cost, tables
from trust import config as configs
from trust.align.positive_texts import identity
from trust.align.positives import ASSEMBLED, REFUSAL, Builder, Positive
from trust.align.rows import SampleSource, source, tally
from trust.ask import judges
from trust.ask.runner import Ledger, Runner
from trust.config import AskingJobConfig
from trust.errors import ConfigError
from trust.evaluate import ASKS
from trust.execute import execute
from trust.metrics.trust_score import TrustScore, TrustScoreConfig
from trust.respond import SamplingConfig
from trust.retry import changed, failed_before, retry_round
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.text.languages import base_language
from trust.text.refusals import Detector
from trust.text.sentences import split
from trust.units import Unit, UnitResult, read_rows, row_units
from trust.verdicts import UNREADABLE, VerdictStore, care_for, used_verdicts

UNIT_ROWS = 64  # at most
PROMPT = "positive"
_CITED = ("em", "em5", "cm")
_COUNTED = 3  # citations of a sentence that trust_score takes into account


@dataclass
class WritingConfig:
    """How a model writes positives; as published but for `tries`.

    Attributes:
        temperature, top_p, max_tokens: as for answers; a text that is cut off at `max_tokens` is refused.
        tries: texts that a row gets at most, each with a seed of its own, until one is not refused.
        seed: of the job; each row and try has its own, made from it and the row's id.
    """

    temperature: float = 0.3
    top_p: float = 1.0
    max_tokens: int = 200
    tries: int = 3
    seed: int = 42

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ConfigError(f"writing.tries={self.tries}: must be at least 1")
        if self.tries > 1 and self.temperature == 0:
            raise ConfigError(
                f"writing.tries={self.tries}: at temperature 0 all tries are the same; set one, or raise it"
            )
        self.sampling()

    def sampling(self) -> SamplingConfig:
        try:
            return SamplingConfig(self.temperature, self.top_p, self.max_tokens, seed=self.seed)
        except ConfigError as error:
            raise ConfigError(str(error).replace("sampling.", "writing.", 1)) from error


@dataclass(kw_only=True)
class PositivesConfig(AskingJobConfig, SampleSource):
    """`jobs.positives`.

    Attributes:
        judge: `complete` writes (null where all answerable rows are of task em5), `entails` checks.
        writing: how a model writes.
        max_citations: task (em, em5, cm) -> the most documents that a sentence, or an item of a list, cites; a row that needs
            more is refused. In upstream the published mapper may exceed it.
        max_sentences: the most that a written positive has.
        refusals: language -> refusal sentence, for languages that have none in trust/align/refusal_sentences.yaml, or in
            other words.
        check: refuse what our own metric trust_score does not score as perfect.
    """

    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)
    writing: WritingConfig = field(default_factory=WritingConfig)
    max_citations: dict[str, int] = field(default_factory=lambda: {"em": 2, "em5": 1, "cm": 2})
    max_sentences: int = 4
    refusals: dict[str, str] = field(default_factory=dict)
    check: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_source()
        for task, most in self.max_citations.items():
            configs.one_of("max_citations", task, _CITED)
            if not 1 <= most <= _COUNTED:
                raise ConfigError(
                    f"max_citations.{task}={most}: from 1 to {_COUNTED}, as trust_score counts no more in a sentence"
                )
        if missing := [task for task in _CITED if task not in self.max_citations]:
            raise ConfigError(f"max_citations.{missing[0]} is not set: give the most citations of each task")
        if self.max_sentences < 1:
            raise ConfigError(f"max_sentences={self.max_sentences}: must be at least 1")
        for language, sentence in self.refusals.items():
            if language != base_language(language):
                raise ConfigError(f"refusals.{language}: give it for the language, {base_language(language)}")
            if Detector().classify(split(sentence, language), language).response != "refused":
                raise ConfigError(
                    f"refusals.{language}={sentence!r}: our own detector does not take this for a refusal (see "
                    "trust/text/refusals.yaml)"
                )
        writer = ["complete"] if "complete" in self.judge.chosen() else []
        self.judge = self.judge.only([*writer, *(["entails"] if self.check else [])])
        if writer:  # nobody asks it for log-probabilities: an endpoint that tells none will do
            self.judge.complete = replace(self.judge.complete, logprobs=False)

    @property
    def writer(self) -> str | None:
        """Name of the model that writes; None where there is none."""
        return self.judge.complete.model.name if "complete" in self.judge.chosen() else None

    def options(self) -> dict[str, Any]:
        """What positives hang on beside models and samples (plain JSON types)."""
        names = ("max_citations", "max_sentences", "refusals", "check")
        return {"writing": asdict(self.writing), **{name: getattr(self, name) for name in names}}


def run_positives(config: PositivesConfig) -> Manifest:
    """Makes the positive of every sample of a table; the table `positives`.

    Raises:
        ConfigError, PreflightError: no samples, no model, no room; nothing has been loaded then.
        JobStopped: a `cost_limit` was reached before every row had its positive.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    limit, chosen = config.judge.cost_limit(), config.judge.chosen()
    check(config, run)
    cluster.connect(config.cluster)
    plan = plan_positives(config, run, *cluster.actor_resources(chosen.values(), config.cluster))
    plan.worker_config["budget"] = cost.share(limit, plan, run, config)
    manifest = execute(plan, run, config, config.retry_failed)
    for ask in chosen:
        care_for(VerdictStore(run.storage, absolute(config.storage.root), plan.identity["judge"][ask]), manifest)
    cost.check(limit, manifest)
    return manifest


def check(config: PositivesConfig, run: Run) -> None:
    """Whether samples and models are there; nothing is loaded. Raises PreflightError."""
    source(config)
    for backend in config.judge.chosen().values():
        backend.preflight(run.storage)
    if config.check:
        TrustScore(TrustScoreConfig(), config.compat).preflight()


def plan_positives(config: PositivesConfig, run: Run, cpus: float, gpus: float) -> Plan:
    """What is to be done.

    Args:
        cpus, gpus: what one actor takes.

    Raises:
        PreflightError: there are no samples.
    """
    parts, read = source(config)
    chosen = config.judge.chosen()
    return Plan(
        job="positives",
        identity={
            **read,
            "judge": judges.identity(config.judge, run.storage),
            "writer": config.writer,
            "options": config.options(),
            "texts": identity(),
            "compat": config.compat,
        },
        units=row_units(parts, config.unit_rows, UNIT_ROWS),
        worker="trust.align.positives_job:PositivesWorker",
        worker_config={
            "judge": {ask: judge.for_actor(int(cpus)) for ask, judge in chosen.items()},
            "writer": config.writer,
            "options": config.options(),
            "compat": config.compat,
            "storage": configs.plain(config.storage),
            "root": absolute(config.storage.root),
        },
        config=configs.plain(config),
        cpus=cpus,
        gpus=gpus,
        rows_in_flight=config.judge.complete.engine.requests_in_flight if config.writer else 32,
    )


def builder(options: dict[str, Any], writer: str | None, compat: str) -> Builder:
    """The Builder for `PositivesConfig.options`."""
    writing = WritingConfig(**options["writing"])
    return Builder(
        compat=compat,
        writer=writer,
        sampling=writing.sampling().of,
        tries=writing.tries,
        **{name: options[name] for name in ("max_citations", "max_sentences", "refusals", "check")},
    )


class PositivesWorker:
    """Makes the positives of units of samples (trust.units.Worker).

    A row is `ok` or `failed`. What the models said is kept as verdicts: the same row asks nobody again. A failed row that is
    done again is written with other seeds.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["root"], config["storage"])
        self._builder = builder(config["options"], config["writer"], config["compat"])
        self._backends = judges.load(config["judge"], self._storage, config.get("budget"))
        self._runner = Runner(self._backends)
        self._stores = {
            ask: VerdictStore(self._storage, config["root"], backend.fingerprint)
            for ask, backend in self._backends.items()
        }

    async def close(self) -> None:
        for backend in self._backends.values():
            backend.close()

    async def work(self, unit: Unit) -> UnitResult:
        rows = await asyncio.to_thread(read_rows, unit, self._storage)
        ids = [row["sample_id"] for row in rows]
        again = await asyncio.to_thread(failed_before, unit, self._storage, "positives", ids)
        if again is not None:
            wanted = {row["sample_id"] for row in again}
            rows = [row for row in rows if row["sample_id"] in wanted]
        ledger = Ledger({ask: store.judge for ask, store in self._stores.items()})
        known = [row for store in self._stores.values() for row in await asyncio.to_thread(store.load, ids)]
        for verdict in known:
            ledger.know(verdict)
        asks = [self._runner.ask_for(row["sample_id"], ledger) for row in rows]
        before = retry_round(unit)
        made = await asyncio.gather(
            *(self._builder.build(row, ask, before) for row, ask in zip(rows, asks, strict=True))
        )
        trails = [{"sample_id": row["sample_id"], "asks": ask.trail} for row, ask in zip(rows, asks, strict=True)]
        old = {(verdict["sample_id"], verdict["hash"]) for verdict in known}
        used = [v for v in used_verdicts(trails, ledger.verdicts) if (v["sample_id"], v["hash"]) not in old]
        for ask, store in self._stores.items():
            await asyncio.to_thread(store.add, [verdict for verdict in used if verdict["ask"] == ask])
        positives = [_row(row, one) for row, one in zip(rows, made, strict=True)]
        counts = dict(Counter(row["status"] for row in positives))
        reasons = Counter(_reasons(positives))
        if again is not None:
            counts = changed(counts, again)
            reasons.subtract(_reasons(again))
        return UnitResult(
            {"positives": tables.to_table("positives", positives)},
            counts,
            {f"asks_{key}": float(ledger.counts[key]) for key in ASKS}
            | ledger.totals
            | {"judge_seconds": ledger.seconds}
            | _totals(made)
            | {f"{UNREADABLE}{path}": 1.0 for store in self._stores.values() for path in store.unreadable}
            | dict(reasons),
        )


def _row(row: dict[str, Any], made: Positive) -> dict[str, Any]:
    """A row of the table positives."""
    error, last = made.error, made.completion
    told = ("finish_reason", "prompt_tokens", "output_tokens")
    return {
        **{name: row.get(name) for name in tables.SCHEMAS["samples"].names},
        "model": made.by,
        "prompt": PROMPT,
        "draw": 0,
        "output": None if error else made.output,
        **{name: getattr(last, name, None) for name in told},
        "status": "failed" if error else "ok",
        "reason": error.reason if error else None,
        "detail": error.detail if error else None,
    }


def _reasons(positives: list[dict[str, Any]]) -> dict[str, float]:
    return tally("failed", (row["reason"] for row in positives if row["status"] == "failed"))


def _totals(made: list[Positive]) -> dict[str, float]:
    """`positives_KIND` (ok rows), texts that were written, and why which of them were refused."""
    good = [one for one in made if one.error is None]
    kinds = Counter(one.by if one.by in (ASSEMBLED, REFUSAL) else "written" for one in good)
    refused = sum((one.refused for one in made), Counter[str]())
    return {
        **{f"positives_{kind}": float(count) for kind, count in kinds.items()},
        **{f"refused_texts:{reason}": float(count) for reason, count in refused.items()},
        "texts_written": float(sum(one.texts for one in made)),
        "sentences_deleted": float(sum(one.deleted for one in good)),
        "prompt_tokens": float(sum(one.tokens[0] for one in made)),
        "output_tokens": float(sum(one.tokens[1] for one in made)),
    }
