"""From Python, as the published evaluator's example does it: a config, one call, a flat result."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trust.config import MODES, build, load, one_of, plain
from trust.errors import ConfigError
from trust.metrics import TASKS


@dataclass
class RunConfig:
    """What `trust_score` needs to know; the keys are the published ones, and some of our own.

    Attributes:
        eval_file: data in a form that `jobs.prepare` reads; rows without an `output` get one from `model`.
        output_dir: folder or s3:// address for all tables; the run is named `run`.
        eval_type: em (ASQA), em5 (QAMPARI) or cm (ELI5, ExpertQA), for rows that do not say.
        prompt_file: prompt in the published JSON form; null takes the project's own for the task.
        model: who answers: folder, hub id, s3:// or package:// address; null where every row has an output.
        max_length: context in tokens; null takes the model's own.
        max_new_tokens: length of an answer.
        temperature, top_p: of sampling.
        vllm: must be true: every answer is generated with vLLM.
        no_demo: answer without demonstrations.
        shot, seed: how many demonstrations, and the seed of their choice and of sampling.
        ndoc: documents shown; 0 is closed-book.
        ndoc_in_demo: documents that a demonstration shows; null is `ndoc`.
        engine: `cpu` or `gpu` (a file of conf/engine).
        judge, judge_model: `t5` with its model, or `lexical`.
        compat: `strict`, or `upstream` for the published arithmetic.
    """

    eval_file: str = ""
    output_dir: str = "runs"
    eval_type: str | None = None
    prompt_file: str | None = None
    model: str | None = None
    max_length: int | None = None
    max_new_tokens: int = 300
    temperature: float = 0.1
    top_p: float = 0.95
    vllm: bool = True
    no_demo: bool = False
    shot: int = 2
    seed: int = 42
    ndoc: int = 5
    ndoc_in_demo: int | None = None
    engine: str = "cpu"
    judge: str = "t5"
    judge_model: str | None = None
    compat: str = "strict"
    run: str = "trust_score"
    overwrite: bool = False

    def __post_init__(self) -> None:
        if self.eval_type is not None:
            one_of("eval_type", self.eval_type, TASKS)
        one_of("compat", self.compat, MODES)
        one_of("engine", self.engine, ("cpu", "gpu"))
        one_of("judge", self.judge, ("t5", "lexical"))

    def update_from_dict(self, values: dict[str, Any]) -> "RunConfig":
        """Sets keys; an unknown key or a wrong type is a ConfigError that names the nearest right one."""
        checked = build(RunConfig, plain(self) | values)
        for item in dataclasses.fields(checked):
            setattr(self, item.name, getattr(checked, item.name))
        return self

    @classmethod
    def from_file(cls, path: str | Path) -> "RunConfig":
        """A config from a YAML or JSON file."""
        try:
            values = yaml.safe_load(Path(path).read_text())
        except FileNotFoundError as error:
            raise ConfigError(f"{path}: no such file") from error
        except yaml.YAMLError as error:
            raise ConfigError(f"{path}: not YAML or JSON: {' '.join(str(error).split())}") from error
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: expected keys and values")
        return cls().update_from_dict(values)


def trust_score(config: RunConfig) -> dict[str, Any]:
    """Generates where `output` is missing, evaluates, and returns the flat result (keys as in `summary.json`).

    Raises:
        ConfigError, PreflightError: something is wrong with the config, the file or the models.
        TooManyFailed: too many rows failed for a rate to be given.
    """
    from trust.evaluate import EvaluateConfig, run_evaluate
    from trust.outcome import check_failed
    from trust.prepare.job import PrepareConfig, run_prepare
    from trust.respond import RespondConfig, run_respond
    from trust.results import write
    from trust.runs import Run

    if not config.eval_file:
        raise ConfigError("eval_file is not set")
    if not config.vllm:
        raise ConfigError("vllm=false: every answer is generated with vLLM; leave it true")
    common = [
        f"run={_quote(config.run)}",
        f"storage.root={_quote(config.output_dir)}",
        f"compat={_quote(config.compat)}",
        f"overwrite={str(config.overwrite).lower()}",
    ]
    respond = load("respond", RespondConfig, [*common, *_respond_words(config)]) if config.model else None
    names = (
        [f"data.model={_quote(respond.model.name)}", f"data.prompt={_quote(respond.prompt.name)}"] if respond else []
    )
    words = [f"data.path={_quote(config.eval_file)}", f"data.outputs={'split' if respond else 'require'}", *names]
    if config.eval_type:
        words.append(f"task={_quote(config.eval_type)}")
    judge = [f"judge/entails={config.judge}"]
    if config.judge_model:
        judge.append(f"judge.entails.model={_quote(config.judge_model)}")
    evaluate = load("evaluate", EvaluateConfig, [*common, *judge, "report=false"])

    prepared = run_prepare(load("prepare", PrepareConfig, [*common, *words]))
    if prepared.tables.get("samples") and respond:
        run_respond(respond)
    manifest, run = run_evaluate(evaluate), Run.of(evaluate)
    for made in (prepared, manifest):
        check_failed(made, run, evaluate)
    summaries = write(run, manifest, evaluate).summaries
    if len(summaries) > 1:
        groups = ", ".join(f"{summary['dataset']} ({summary['task']})" for summary in summaries)
        raise ConfigError(
            f"eval_file holds several data sets ({groups}); their results are in {run.root}/summary.parquet"
        )
    return summaries[0]


def _respond_words(config: RunConfig) -> list[str]:
    words = [
        "model=hf",
        f"model.path={_quote(config.model or '')}",
        f"engine={config.engine}",
        f"prompt={'file' if config.prompt_file else 'auto' if config.ndoc else 'closedbook'}",
        f"prompt.shots={0 if config.no_demo else config.shot}",
        f"prompt.seed={config.seed}",
        f"prompt.docs={config.ndoc}",
        f"prompt.demo_docs={'null' if config.ndoc_in_demo is None else config.ndoc_in_demo}",
        f"sampling.temperature={config.temperature}",
        f"sampling.top_p={config.top_p}",
        f"sampling.max_tokens={config.max_new_tokens}",
        f"sampling.seed={config.seed}",
    ]
    if config.prompt_file:
        words += [f"prompt.file={_quote(config.prompt_file)}", f"prompt.name={_quote(Path(config.prompt_file).stem)}"]
    if config.max_length:
        words.append(f"model.max_model_len={config.max_length}")
    return words


def _quote(text: str) -> str:
    """`text` as a quoted value of Hydra's grammar."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
