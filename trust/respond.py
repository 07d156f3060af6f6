"""Bulk generation: a response for each row and draw, one `complete` a response."""

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trust import cluster, cost, tables
from trust.align.rows import SampleSource, source
from trust.ask import Ask, engines
from trust.ask.endpoint import EndpointConfig
from trust.ask.runner import Ledger, Runner
from trust.config import AskingJobConfig, plain
from trust.errors import ConfigError, PreflightError, RowError
from trust.execute import execute
from trust.models import ModelConfig
from trust.prompts import Prompt, PromptConfig
from trust.retry import changed, failed_before
from trust.runs import Manifest, Plan, Run
from trust.storage import open_storage
from trust.units import Unit, UnitResult, read_rows, row_units

UNIT_ROWS = 64  # at most

# End marks that models write out as plain text; those the tokenizer knows as special never reach the output.
_END = re.compile(r"(\s|<\|im_end\|>|<\|eot_id\|>|<\|end\|>|<\|endoftext\|>|<end_of_turn>|</s>)+\Z")


@dataclass
class SamplingConfig:
    """How answers are drawn. The defaults are how the Trust-Score paper ran its aligned models; its baselines were run
    at temperature 0.5.

    Attributes:
        temperature: 0 takes the likeliest token each time.
        top_p: share of probability that is drawn from.
        max_tokens: length of an answer; a longer one ends there with finish_reason `length`. Null takes what the prompt
            says.
        draws: answers a question.
        seed: of the run; each row and draw has its own, made from it and the row's id.
        stop: texts that end an answer; they are not part of it.
    """

    temperature: float = 0.1
    top_p: float = 0.95
    max_tokens: int | None = None
    draws: int = 1
    seed: int = 42
    stop: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ConfigError(f"sampling.temperature={self.temperature}: cannot be negative")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"sampling.top_p={self.top_p}: a share above 0, at most 1")
        for key in ("max_tokens", "draws"):
            if (value := getattr(self, key)) is not None and value < 1:
                raise ConfigError(f"sampling.{key}={getattr(self, key)}: must be at least 1")
        if self.draws > 1 and self.temperature == 0:
            raise ConfigError(f"sampling.draws={self.draws}: at temperature 0 all draws are the same; raise it")

    def of(self, sample_id: str, draw: int) -> dict[str, Any]:
        """The sampling of one request, with the seed of this row and draw."""
        key = json.dumps([sample_id, draw, self.seed], ensure_ascii=False).encode()
        options = asdict(self) | {"seed": int.from_bytes(hashlib.sha256(key).digest()[:4]) >> 1}
        del options["draws"]
        return options


@dataclass(kw_only=True)
class RespondConfig(AskingJobConfig, SampleSource):
    """The job `respond`."""

    model: ModelConfig
    engine: Any = field(metadata={"choices": engines.CHOICES, "by": "backend"})
    prompt: PromptConfig
    sampling: SamplingConfig = field(default_factory=SamplingConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_source()
        if self.sampling.max_tokens is None:
            self.sampling.max_tokens = self.prompt.max_tokens
        if self.prompt.doc_tokens is not None and isinstance(self.engine, EndpointConfig):
            raise ConfigError(
                f"prompt.doc_tokens={self.prompt.doc_tokens}: only the model's own tokenizer can cut documents, and an endpoint "
                "has none; set prompt.doc_tokens=null"
            )


def run_respond(config: RespondConfig) -> Manifest:
    """Answers every sample of a run; the table `responses`.

    Raises:
        ConfigError, PreflightError: prompt, model, samples or room are not there; nothing has been loaded then.
        JobStopped: `engine.cost_limit` was reached before every row was answered.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    plan, engine = plan_respond(config, run)[0], config.engine
    cluster.connect(config.cluster)
    plan.cpus, plan.gpus = cluster.actor_resources([engine], config.cluster)
    plan.worker_config["budget"] = cost.share(engine.cost_limit, plan, run, config)
    manifest = execute(plan, run, config, config.retry_failed)
    cost.check(engine.cost_limit, manifest)
    return manifest


def plan_respond(config: RespondConfig, run: Run) -> tuple[Plan, Prompt]:
    """What is to be done, after checks that load nothing, and the prompt. The cluster is not looked at: an actor that is to
    have all CPUs of a node has 1 in the plan.

    Raises:
        ConfigError, PreflightError: prompt, model or samples are not there.
    """
    parts, read = source(config)
    engine: engines.CompleteConfig = config.engine
    engine.preflight(config.model, run.storage, config.prompt.chat, config.sampling.of("preflight", 0))
    prompt = Prompt.load(config.prompt, run.storage)
    plan = Plan(
        job="respond",
        identity={**read, **identity(config, prompt)},
        units=row_units(parts, config.unit_rows, UNIT_ROWS),
        worker="trust.respond:RespondWorker",
        worker_config=worker_config(config, prompt),
        config=plain(config),
        cpus=config.cluster.actor_cpus or 1.0,
        gpus=engine.gpus,
        rows_in_flight=-(-engine.requests_in_flight // config.sampling.draws),
    )
    return plan, prompt


def identity(config: RespondConfig, prompt: Prompt) -> dict[str, Any]:
    """All of `config` that changes results (plain JSON types); the input's is the caller's to add."""
    return {
        "model": {
            "name": config.model.name,
            **config.engine.identity(config.model, open_storage(config=config.storage)),
        },
        "prompt": prompt.identity(),
        "sampling": asdict(config.sampling),
    }


def worker_config(config: RespondConfig, prompt: Prompt) -> dict[str, Any]:
    """What `RespondWorker` is built from: plain containers, absolute paths, no file of the driver's but the model."""
    return {
        "model": config.model.for_actor(config.engine.portable),
        "engine": plain(config.engine),
        "prompt": prompt.to_plain(),
        "sampling": plain(config.sampling),
        "storage": plain(config.storage),
    }


async def respond_row(
    row: Mapping[str, Any], prompt: Prompt, sampling: SamplingConfig, ask: Ask, draw: int, model_name: str
) -> dict[str, Any]:
    """The response (a row of the responses table) to one row of the samples table.

    A row that cannot be answered is `failed` with a reason and keeps its key and documents; an empty answer is `ok`.
    """
    response = {
        **{name: row.get(name) for name in tables.SCHEMAS["samples"].names},
        "docs": prompt.shown(row),
        "model": model_name,
        "prompt": prompt.config.name,
        "draw": draw,
    }
    try:
        completion = await ask.complete(prompt.render(row), sampling.of(row["sample_id"], draw))
    except RowError as error:
        return {**response, "status": "failed", "reason": error.reason, "detail": error.detail}
    return {
        **response,
        "output": clean(completion.text),
        "finish_reason": completion.finish_reason,
        "prompt_tokens": completion.prompt_tokens,
        "output_tokens": completion.output_tokens,
        "status": "ok",
    }


def clean(text: str) -> str:
    """`text` without surrounding blanks and without end marks that the model wrote out."""
    return _END.sub("", text).lstrip()


class RespondWorker:
    """Answers units of the samples table (`trust.units.Worker`); the engine batches over rows, draws and units."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["storage"]["root"], config["storage"])
        self._sampling = SamplingConfig(**config["sampling"])
        self._model_name: str = config["model"]["name"]
        self._backend = engines.load(config, self._storage)
        self._prompt = Prompt.from_plain(config["prompt"], getattr(self._backend, "cut", None))
        if self._prompt.config.chat and not self._backend.has_chat_template:
            raise PreflightError(f"model {self._model_name} has no chat template; set prompt.chat=false")
        self._runner = Runner({"complete": self._backend})

    async def work(self, unit: Unit) -> UnitResult:
        ledger = Ledger()
        rows = await asyncio.to_thread(read_rows, unit, self._storage)
        again = await asyncio.to_thread(
            failed_before, unit, self._storage, "responses", [row["sample_id"] for row in rows]
        )
        wanted = [(row, draw) for row in rows for draw in range(self._sampling.draws)]
        if again is not None:
            keys = {(row["sample_id"], row["draw"]) for row in again}
            wanted = [(row, draw) for row, draw in wanted if (row["sample_id"], draw) in keys]
        result = unit_result(await asyncio.gather(*(self._one(row, draw, ledger) for row, draw in wanted)))
        result.totals |= ledger.totals
        if again is not None:
            result.counts = changed(result.counts, again)
            reasons = Counter(result.totals)
            reasons.subtract(_reasons(again))
            result.totals = dict(reasons)
        return result

    async def _one(self, row: dict[str, Any], draw: int, ledger: Ledger) -> dict[str, Any]:
        ask = self._runner.ask_for(row["sample_id"], ledger)
        return await respond_row(row, self._prompt, self._sampling, ask, draw, self._model_name)

    async def close(self) -> None:
        self._backend.close()


def unit_result(responses: list[dict[str, Any]]) -> UnitResult:
    """The responses of a unit as its table, counts and totals."""
    totals = {key: float(sum(row.get(key) or 0 for row in responses)) for key in ("prompt_tokens", "output_tokens")}
    counts = Counter(row["status"] for row in responses)
    return UnitResult(
        {"responses": tables.to_table("responses", responses)}, dict(counts), totals | _reasons(responses)
    )


def _reasons(responses: list[dict[str, Any]]) -> dict[str, float]:
    failed = (row["reason"] for row in responses if row["status"] == "failed")
    return {f"failed:{reason}": float(count) for reason, count in Counter(failed).items()}
