"""`jobs.compare` from checked config to files."""

import pyarrow as pa
from pyarrow import csv

from trust import metrics
from trust.compare import runs
from trust.compare.config import CompareConfig
from trust.compare.differences import ALL, Difference, Key, Side, differences, same_questions
from trust.compare.gate import losses
from trust.compare.markdown import Comparison, render
from trust.compare.runs import Evaluation, Group, Pair
from trust.errors import ConfigError, PreflightError
from trust.runs import Run
from trust.stats import from_fixed
from trust.storage import absolute, join
from trust.summary import unreadable
from trust.sums import group_of

_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("dataset", "task")),
        *(pa.field(name, pa.string()) for name in ("base_model", "base_prompt", "new_model", "new_prompt")),
        *(pa.field(name, pa.string()) for name in ("slice", "slice_value", "key")),
        *(pa.field(name, pa.float64()) for name in ("base", "new")),
        *(pa.field(name, pa.float64()) for name in ("difference", "difference_low", "difference_high")),
        *(pa.field(name, pa.int64()) for name in ("base_n", "new_n")),
        pa.field("unchanged", pa.bool_()),
        pa.field("note", pa.string()),
    ]
)


def run_compare(config: CompareConfig) -> tuple[Comparison, str]:
    """Compares two evaluated runs; writes the differences of every number (CSV) and a short Markdown, and returns it.

    Raises:
        ConfigError, PreflightError: the runs are not there, were not measured alike, or are over different questions.
    """
    if config.dry_run:
        raise ConfigError("dry_run=true compares nothing: see trust.dry_run, or python -m jobs.compare dry_run=true")
    base, new, pairs, alone = open_pairs(config)
    found, notes = {}, {}
    scored = metrics.build(new.config.metrics, new.config.compat)
    for pair in pairs:
        sides, notes[pair] = _sides(base, new, pair, config)
        found[pair] = [*differences(*sides, scored, pair.new.task)]
    table, text = paths(base, new, config)
    made = Comparison(base, new, new.config.judge.describe(), found, notes, alone, losses(found, config), table)
    words = render(made, config)
    _write_table(new.run, table, found)
    new.run.storage.write_bytes(text, words.encode())
    return made, words


def open_pairs(config: CompareConfig) -> tuple[Evaluation, Evaluation, list[Pair], list[str]]:
    """Both runs, the groups that are compared, and a sentence for each data set that is left out.

    Raises:
        ConfigError, PreflightError: the runs are not there or were not measured alike.
    """
    base, new = (runs.open_run(label, getattr(config, label), config.storage) for label in ("base", "new"))
    runs.check(base, new, config.by)
    pairs, alone = runs.pair_up(base, new, config)
    if alone and config.questions == "same":
        raise PreflightError(f"{'; '.join(alone)}: with questions=shared only what both have is compared")
    return base, new, pairs, alone


def paths(base: Evaluation, new: Evaluation, config: CompareConfig) -> tuple[str, str]:
    """Where the table of all differences and the Markdown are written."""
    folder = absolute(config.out) if config.out else new.run.path("compare")
    return join(folder, f"{base.run.name}.csv"), join(folder, f"{base.run.name}.md")


def questions(base: Evaluation, new: Evaluation, pair: Pair, config: CompareConfig) -> str:
    """Over which questions two groups are compared, in words. Raises PreflightError where they cannot be."""
    sides = _side(base, pair.base, config), _side(new, pair.new, config)
    return _same(sides) or _shared(base, new, pair, config)


def _sides(base: Evaluation, new: Evaluation, pair: Pair, config: CompareConfig) -> tuple[tuple[Side, Side], str]:
    """The sums of both, and over which questions they are, in words."""
    sides = _side(base, pair.base, config), _side(new, pair.new, config)
    if same := _same(sides):
        return sides, same
    from trust.compare.shared import shared_sums

    words = _shared(base, new, pair, config)
    sums = shared_sums(base, new, pair, config.by)
    made = [Side(side.label, own, side.max_failed, side.why) for side, own in zip(sides, sums, strict=True)]
    return (made[0], made[1]), words


def _same(sides: tuple[Side, Side]) -> str:
    """In words, where both are over the same questions; else nothing."""
    return f"{_questions(sides[0]):,} questions, the same in both." if same_questions(*sides) else ""


def _shared(base: Evaluation, new: Evaluation, pair: Pair, config: CompareConfig) -> str:
    """How the questions overlap, in words. Raises PreflightError where those in both are none, or not to be taken alone."""
    from trust.compare.shared import overlap

    found = overlap(base, new, pair)
    if not found.counts["both"]:
        raise PreflightError(
            f"{pair.new.dataset}: {found}: nothing can be compared. Ids are `data set:id`, or made from question, documents "
            "and answers where rows have none: give them an id (data.columns.id), and the data set one name (data.name)"
        )
    if config.questions == "same":
        raise PreflightError(f"{pair.new.dataset}: {found}. With questions=shared those in both are compared")
    return f"{found}; compared over those in both."


def _side(evaluation: Evaluation, group: Group, config: CompareConfig) -> Side:
    def wanted(name: str) -> bool:
        found = group_of(name)
        mine = all(found[key] == getattr(group, key) for key in Group._fields)
        return mine and found["slice"] in ("", *config.by)

    sums = {}
    for name, array in evaluation.run.each_sum("evaluate", wanted):
        of = group_of(name)
        sums[Key(of["metric"], (of["slice"], of["slice_value"]))] = array
    _, why = unreadable(evaluation.run, evaluation.config)
    return Side(evaluation.label, sums, evaluation.config.max_failed, why)


def _questions(side: Side) -> int:
    return max(round(float(from_fixed(array[0, -1]))) for key, array in side.sums.items() if key.slice == ALL)


def _write_table(run: Run, path: str, found: dict[Pair, list[Difference]]) -> None:
    rows = [
        {
            "dataset": pair.new.dataset,
            "task": pair.new.task,
            "base_model": pair.base.model,
            "base_prompt": pair.base.prompt,
            "new_model": pair.new.model,
            "new_prompt": pair.new.prompt,
            "slice": each.slice[0],
            "slice_value": each.slice[1],
            "key": each.key,
            "base": each.base,
            "new": each.new,
            "difference": each.difference,
            "difference_low": each.low,
            "difference_high": each.high,
            "base_n": each.base_n,
            "new_n": each.new_n,
            "unchanged": each.unchanged,
            "note": each.note,
        }
        for pair, all_ in found.items()
        for each in all_
    ]
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.Table.from_pylist(rows, schema=_SCHEMA), sink)
    run.storage.write_bytes(path, sink.getvalue().to_pybytes())
