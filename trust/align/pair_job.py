"""The job that makes training rows: the tables `sft` and `pairs`, with an audit of their lengths and a Hugging Face folder."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from trust import cluster, models, tables, tokenizer
from trust.align import rows
from trust.align.audit import histograms
from trust.align.pair import Fitted, LengthConfig, Maker, Tokens, worst
from trust.align.select import key as rank
from trust.align.select_job import select_most_severe, with_error
from trust.config import JobConfig, plain
from trust.errors import ConfigError, PreflightError, RowError
from trust.execute import already, execute
from trust.models import ModelConfig
from trust.prompts import Messages, Prompt, PromptConfig
from trust.runs import Manifest, Plan, Run
from trust.storage import open_storage
from trust.units import Unit, UnitResult, read_rows, row_units

UNIT_ROWS = 256  # at most

_NO_TEMPLATE = "{}: this model has no chat template, and training rows are chat messages"
_MADE_BY = {"positives": "jobs.positives", "errors": "jobs.negatives"}
_OF_A_NEGATIVE = [
    *tables.SORT_KEYS["errors"],
    *("docs", "output", "answerable", "severity", "primary_type"),
    *(f"e_{number}" for number in range(1, 6)),
]


@dataclass(kw_only=True)
class PairConfig(JobConfig):
    """`jobs.pair`.

    Attributes:
        sft_run: the run whose positives become SFT rows; null makes none.
        positives_run: the run whose positives are chosen in pairs; null makes no pairs.
        errors_run: the run whose errors are rejected in them; null as positives_run.
        model: the model that is trained: of it only the tokenizer is read.
        prompt: how a row is put to the model, as in jobs.respond.
        lengths: what the training takes.
        keep: share of the responses with an error that are negatives, the most severe, of answerable and of unanswerable
            questions apart; rounded up.
        test_share: share of the questions that are held out as the test side.
        seed: of the split.
        splits: splits that may be built from (`meta.split`); rows that say of none may.
        license: of the data, as the Hugging Face card names it; null is `unknown`.
    """

    sft_run: str | None = None
    positives_run: str | None = None
    errors_run: str | None = None
    model: ModelConfig
    prompt: PromptConfig
    lengths: LengthConfig = field(default_factory=LengthConfig)
    keep: float = 0.5
    test_share: float = 0.05
    seed: int = 42
    splits: list[str] = field(default_factory=lambda: ["train"])
    license: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.positives_run is None) != (self.errors_run is None):
            missing, other = ("positives_run", "errors_run") if self.errors_run else ("errors_run", "positives_run")
            raise ConfigError(f"{missing} is not set: pairs need it beside {other}")
        if not (self.sft_run or self.positives_run):
            raise ConfigError("nothing to make: give sft_run for SFT rows, positives_run and errors_run for pairs")
        if not 0 < self.keep <= 1:
            raise ConfigError(f"keep={self.keep:g}: a share above 0, at most 1")
        if not 0 <= self.test_share < 1:
            raise ConfigError(f"test_share={self.test_share:g}: a share from 0, below 1")
        if not self.prompt.chat:
            raise ConfigError("prompt.chat=false: training rows are chat messages; set prompt.chat=true")


def run_pair(config: PairConfig) -> Manifest:
    """Makes the tables `sft` and `pairs`.

    What goes in are positives, once for each table that is made of them: `ok` became a row, `dropped` has no partner (or failed
    before), `failed` cannot be trained on.

    Raises:
        ConfigError, PreflightError: tables, prompt or model are not there; nothing has been read then.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    for table in ("sft", "pairs"):
        rows.check_target(config, "pair", table)
    cluster.connect(config.cluster)
    plan = plan_pair(config, run)
    if plan.worker_config["errors"] and not already(plan, run, config):
        errors = plan.worker_config["errors"]
        found = select_most_severe(errors, config.keep, run.storage, config.cluster)
        plan.worker_config["selected"] = plan.config["selected"] = found
    return execute(plan, run, config)


def plan_pair(config: PairConfig, run: Run) -> Plan:
    """What is to be done, but for which errors are kept.

    Raises:
        ConfigError, PreflightError: tables, prompt or model are not there.
    """
    sft, positives = _parts(config, config.sft_run, "positives"), _parts(config, config.positives_run, "positives")
    errors = _parts(config, config.errors_run, "errors")
    model = config.model
    model.revision = models.preflight(model.path, model.revision, run.storage)
    place = None if models.is_gguf(model.path) else models.locate(model.path, model.revision, run.storage)
    if place and not models.has_chat_template(place):
        raise PreflightError(_NO_TEMPLATE.format(model.path))
    prompt = Prompt.load(config.prompt, run.storage)
    how = {
        "lengths": plain(config.lengths),
        "test_share": config.test_share,
        "seed": config.seed,
        "splits": sorted(config.splits),
    }
    content = models.fingerprint(model.path, model.revision, run.storage)
    return Plan(
        job="pair",
        identity={
            "sft": sft[1],
            "positives": positives[1],
            "errors": errors[1],
            "model": {"content": content, "chat_template_kwargs": model.chat_template_kwargs},
            "prompt": prompt.identity(),
            "keep": config.keep,
            **how,
        },
        units=[*_units(config, "sft", sft[0]), *_units(config, "pairs", positives[0])],
        worker="trust.align.pair_job:PairWorker",
        worker_config={
            "errors": [part["path"] for part in errors[0]],
            "model": model.for_actor(models.portable),
            "prompt": prompt.to_plain(),
            "storage": plain(config.storage),
            **how,
        },
        config=plain(config),
        cpus=config.cluster.actor_cpus or 1.0,
    )


def _parts(config: PairConfig, run: str | None, table: str) -> tuple[list[dict[str, Any]], str | None]:
    """Parts of a table and a hash over their manifests; nothing where no run is named. Raises PreflightError."""
    return Run.of(config, run).inputs(table, _MADE_BY[table]) if run else ([], None)


def _units(config: PairConfig, table: str, parts: list[dict[str, Any]]) -> list[Unit]:
    units = row_units(parts, config.unit_rows, UNIT_ROWS) if parts else []
    return [Unit(f"{table}-{unit.name}", {**unit.source, "table": table}, unit.rows) for unit in units]


def read_tokenizer(model: Mapping[str, Any], lengths: LengthConfig, storage: Any) -> tokenizer.Reading:
    """The tokenizer of the model that is trained.

    Raises:
        PreflightError: it has no chat template, or the model does not take what the training gives it.
    """
    reading = tokenizer.without_weights(model["path"], model["revision"], storage)
    if not reading.tokenizer.chat_template:
        raise PreflightError(_NO_TEMPLATE.format(model["path"]))
    context = model["max_model_len"] or reading.context
    if context and context < lengths.max_length:
        raise PreflightError(
            f"{model['path']}: the model holds {context} tokens, lengths.max_length={lengths.max_length}: lower it, and train "
            "with the same max_length"
        )
    return reading


def measure(reading: tokenizer.Reading, options: Mapping[str, Any], prompt: Messages, answer: Messages) -> Tokens:
    """Tokens of a prompt, up to where the answer begins, and of the answer with what the template puts behind it."""
    asked = len(tokenizer.encode(reading.tokenizer, prompt, options))
    whole = len(tokenizer.encode_dialogue(reading.tokenizer, prompt + answer, options))
    return Tokens(asked, max(0, whole - asked))


class PairWorker:
    """Makes rows of units of positives (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._storage = open_storage(config["storage"]["root"], config["storage"])
        lengths, model = LengthConfig(**config["lengths"]), config["model"]
        reading = read_tokenizer(model, lengths, self._storage)
        prompt = Prompt.from_plain(config["prompt"], partial(tokenizer.cut, reading.tokenizer))
        counted = partial(measure, reading, model["chat_template_kwargs"])
        self._maker = Maker(prompt, lengths, counted, config["test_share"], config["seed"])
        self._splits = config["splits"]
        self._errors: list[str] = config["errors"]
        found = config.get("selected") or {}
        self._last = {name == "answerable": bytes.fromhex(one["last"] or "") for name, one in found.items()}

    async def close(self) -> None:
        """Nothing is held."""

    async def work(self, unit: Unit) -> UnitResult:
        positives = await asyncio.to_thread(read_rows, unit, self._storage)
        table = unit.source["table"]
        met: list[dict[str, Any]] = []
        if table == "pairs":
            met = await asyncio.to_thread(self._errors_of, {row["sample_id"] for row in positives})
        kept = [row for row in met if rank(row) <= self._last[row["answerable"]]]
        unit_of = _Made(table, {row["sample_id"] for row in met}, worst(kept, rank))
        for row in positives:
            self._make(row, unit_of)
        return unit_of.result(len(kept))

    def _errors_of(self, samples: Iterable[str]) -> list[dict[str, Any]]:
        """Responses to these samples that have an error."""
        only = tables.of_samples(samples) & with_error()
        found = (self._storage.read_table(path, _OF_A_NEGATIVE, only) for path in self._errors)
        return [row for content in found for row in content.to_pylist()]

    def _make(self, positive: dict[str, Any], made: "_Made") -> None:
        """Adds what becomes of one positive."""
        sample = positive["sample_id"]
        if positive["status"] != "ok":
            made.dropped.append("no_positive")
            return
        try:
            rows.check_split(positive, self._splits)
            if made.table == "sft":
                made.add(positive, *self._maker.sft(positive))
            elif sample in made.negatives:
                made.add(positive, *self._maker.pair(positive, made.negatives[sample]))
            else:
                made.dropped.append("less_severe" if sample in made.with_error else "no_error")
        except RowError as error:
            made.failed.append(rows.failed("pair", sample, error))


class _Made:
    """What a unit has made so far.

    Args:
        table: `sft` or `pairs`.
        with_error: samples to which there is a response with an error.
        negatives: sample -> the response that is rejected.
    """

    def __init__(self, table: str, with_error: set[str], negatives: dict[str, dict[str, Any]]) -> None:
        self.table, self.with_error, self.negatives = table, with_error, negatives
        self.dropped: list[str] = []
        self.failed: list[dict[str, Any]] = []
        self._rows: list[dict[str, Any]] = []
        self._fitted: list[Fitted] = []
        self._totals: Counter[str] = Counter()

    def add(self, positive: Mapping[str, Any], row: dict[str, Any], fitted: Fitted) -> None:
        self._rows.append(row)
        self._fitted.append(fitted)
        self._totals.update(f"{self.table}:{name}" for name in (row["split"], *_told(positive, row)))
        self._totals["docs_dropped"] += fitted.docs_dropped
        self._totals["prompts_shortened"] += fitted.docs_dropped > 0

    def result(self, kept: int) -> UnitResult:
        """As a unit leaves it.

        Args:
            kept: responses to its samples that are severe enough.
        """
        if self.table == "pairs":
            self._totals["negatives_met"] = kept
        counts = {"ok": len(self._rows), "dropped": len(self.dropped), "failed": len(self.failed)}
        return UnitResult(
            {self.table: tables.to_table(self.table, self._rows), "failed": tables.to_table("failed", self.failed)},
            counts,
            {key: float(number) for key, number in self._totals.items()}
            | rows.tally("dropped", self.dropped)
            | rows.tally("failed", (row["reason"] for row in self.failed)),
            self._sums(),
        )

    def _sums(self) -> dict[str, np.ndarray]:
        answers = ("completion",) if self.table == "sft" else ("chosen", "rejected")
        lengths: dict[str, list[int]] = {
            "prompt": [fitted.tokens[0].prompt for fitted in self._fitted],
            "longest": [max(map(sum, fitted.tokens)) for fitted in self._fitted],
        }
        for index, name in enumerate(answers):
            lengths[name] = [fitted.tokens[index].answer for fitted in self._fitted]
        return histograms(self.table, lengths)


def _told(positive: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """What a card says of a row, as parts of the names of counts."""
    told = [f"dataset:{row['dataset']}", f"language:{row['language']}"]
    if "primary_type" in row:
        told += [f"primary:{row['primary_type']}", *(f"type:{name}" for name in row["error_types"])]
    return told
