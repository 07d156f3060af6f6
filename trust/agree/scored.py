"""The scores of evaluated runs, value by value, and how they meet what people said."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trust.agree.config import AgreeConfig
from trust.agree.items import Item
from trust.config import nearest
from trust.errors import ConfigError, PreflightError
from trust.report.sample import stream
from trust.runs import Run
from trust.storage import absolute, open_storage

_COLUMNS = ["sample_id", "model", "prompt", "draw", "metric", "values", "status", "asks"]


class Output(NamedTuple):
    """Whose output of what; the draws of one question are one."""

    sample_id: str
    model: str


@dataclass(frozen=True)
class Score:
    """What a metric said of one response.

    Attributes:
        values: `metric.value` -> number.
        asks: (role, hash of the verdict) of what was asked for it.
    """

    output: Output
    prompt: str
    draw: int
    values: dict[str, float]
    asks: list[tuple[str, str]]


def open_run(name: str, config: AgreeConfig) -> Run:
    """A finished evaluation, by name or by the address of its folder.

    Raises:
        PreflightError: there is no such run, or `jobs.evaluate` has not finished in it.
    """
    root, _, last = absolute(name).rpartition("/") if "/" in name else (config.storage.root, "", name)
    run = Run(open_storage(root, config.storage), root, last)
    if run.manifest("evaluate") is None:
        others = run.storage.list_folders(absolute(root))
        raise PreflightError(f"runs: no finished evaluation in {run.root}{nearest(last, others)}")
    return run


def scores(run: Run, config: AgreeConfig) -> Iterator[Score]:
    """The scored rows of a run under the prompt that was chosen, in the order of its parts.

    Raises:
        ConfigError: the run has several prompts and none was chosen, or not the one that was.
    """
    prompts: set[str] = set()
    for part in run.parts("scores"):
        for row in stream(run.storage, part["path"], _COLUMNS):
            prompts.add(row["prompt"])
            if config.prompt is None and len(prompts) > 1:
                raise ConfigError(f"runs={run.name} has several prompts: add prompt= ({', '.join(sorted(prompts))})")
            if row["status"] == "scored" and config.prompt in (None, row["prompt"]):
                yield _score(row)
    if config.prompt is not None and config.prompt not in prompts:
        raise ConfigError(f"prompt={config.prompt}: runs={run.name} has {', '.join(sorted(prompts))}")


def join(items: Sequence[Item], config: AgreeConfig) -> list[str]:
    """Adds the values of all `runs` to the items as metrics, and returns a sentence for people about each run.

    A value of several draws is their mean. Where there are several runs, a metric's name begins with its run's.

    Raises:
        PreflightError: a run has no score of any of the items.
        ConfigError: `values` names one that no run has.
    """
    wanted, told, seen = set(config.values), [], set()
    for name in config.runs:
        run = open_run(name, config)
        found = _by_output(scores(run, config))
        models = {output.model for output in found}
        alone = len(models) == 1 and len({item.model for item in items}) == 1
        joined = 0
        for item in items:
            values = next((found[key] for key in _keys(item, models if alone else ()) if key in found), None)
            joined += values is not None
            for key, numbers in (values or {}).items():
                seen.add(key)
                if not wanted or key in wanted:
                    item.metrics[f"{run.name}: {key}" if len(config.runs) > 1 else key] = sum(numbers) / len(numbers)
        if not joined:
            raise PreflightError(_apart(run, items, found))
        told.append(f"{run.name}: scores of {joined:,} of {len(items):,} rated outputs")
    for key in config.values:
        if key not in seen:
            raise ConfigError(
                f"values: no run has {key}{nearest(key, sorted(seen))}; there are {', '.join(sorted(seen))}"
            )
    return told


def _keys(item: Item, models: Iterable[str]) -> Iterator[Output]:
    """Under which a run may hold an output: its own; under `compat=upstream` ids are numbered; and of the only model there is,
    whatever it is called in the file."""
    for model in (item.model, *models):
        for key in (item.sample_id, f"{item.sample_id}#0"):
            yield Output(key, model)


def _by_output(found: Iterable[Score]) -> dict[Output, dict[str, list[float]]]:
    made: dict[Output, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in found:
        for key, value in score.values.items():
            made[score.output][key].append(value)
    return dict(made)


def _score(row: dict[str, Any]) -> Score:
    return Score(
        Output(row["sample_id"], row["model"]),
        row["prompt"],
        row["draw"],
        {f"{row['metric']}.{key}": value for key, value in row["values"].items() if value is not None},
        [(ask["role"], ask["hash"]) for ask in row["asks"] or ()],
    )


def _apart(run: Run, items: Sequence[Item], found: Iterable[Output]) -> str:
    mine, other = items[0], next(iter(found), None)
    has = "nothing scored" if other is None else f"{other.sample_id} by {other.model}, for one"
    return (
        f"runs={run.name} has no score of any rated output: the file has {mine.sample_id} by {mine.model}, for one, "
        f"the run {has}. Ids are `data set:id`: give the data set the same name (data.name=NAME), and rows the same id and model"
    )
