"""Means of evaluated runs, corrected by what people say of a sample of their rows or verdicts (trust.ppi).

The file of labels has a row a response (`sample_id`, where there are several also `model`, `prompt` and `draw`, and for any value
of the table scores a column of that name, `citation_recall` or `trust_score.citation_recall`, with what people say it should
be), or a row a verdict (`hash`, also `sample_id` where the pair was asked for several; `label`, 1 or 0). Labels have to be those
of rows drawn at random. Of each response, what was labelled anywhere is in the memory of this one process: an id and two numbers.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trust import ppi
from trust.agree.config import AgreeConfig
from trust.agree.items import place, read_rows, value_of
from trust.agree.scored import Score, open_run, scores
from trust.config import nearest
from trust.errors import PreflightError, RowError
from trust.prepare.config import DataConfig
from trust.report.sample import stream
from trust.runs import Run
from trust.storage import Storage

_KEY = ("sample_id", "model", "prompt", "draw")
_VERDICT = "label"

Key = tuple[str, ...]


@dataclass(frozen=True)
class Labels:
    """What people said of some rows.

    Attributes:
        names: the columns of `_KEY` that the file has.
        values: value's name -> key of a row -> what it should be.
        words: column -> its first cell that is no number, with its place; it is one for people, or a mistake.
        verdicts: (hash, sample_id or empty) -> what the answer should be.
        fingerprint: of the file's content.
    """

    names: tuple[str, ...]
    values: dict[str, dict[Key, float]]
    words: dict[str, str]
    verdicts: dict[Key, float]
    fingerprint: str


@dataclass
class _Means:
    """Judged values of one mean, with the label of each where there is one, and the question it belongs to."""

    judged: list[float]
    people: list[float]
    questions: list[str]


def read_labels(config: AgreeConfig, storage: Storage) -> Labels:
    """The file of `labels`.

    Raises:
        PreflightError: names file and row that cannot be used.
    """
    try:
        rows, fingerprint = read_rows(DataConfig(path=config.labels, name="labels"), storage)
    except PreflightError as error:
        raise PreflightError(str(error).replace("data.path=", "labels=")) from error
    values: dict[str, dict[Key, float]] = defaultdict(dict)
    words: dict[str, str] = {}
    verdicts: dict[Key, float] = {}
    names: tuple[str, ...] | None = None
    key: Key
    for raw in rows:
        try:
            if isinstance(raw.value, RowError):
                raise raw.value
            row = {key: value for key, value in raw.value.items() if value is not None and value != ""}
            if "hash" in row:
                key = (str(row["hash"]), str(row.get("sample_id", "")))
                _put(verdicts, key, value_of(row.get(_VERDICT), _VERDICT, config.scale))
                continue
            own = tuple(name for name in _KEY if name in row)
            if "sample_id" not in own:
                raise RowError("missing_field", "the row has neither a sample_id nor the hash of a verdict")
            if names not in (None, own):
                raise RowError(
                    "missing_field", f"the row is named by {', '.join(own)}, those before by {', '.join(names or ())}"
                )
            names = own
            key = tuple(str(row[name]) for name in own)
            for name in [name for name in row if name not in _KEY]:
                try:
                    _put(values[name], key, value_of(row[name], name, config.scale))
                except RowError as error:
                    words.setdefault(name, f"{place(raw)}: {error.detail}")
        except RowError as error:
            raise PreflightError(f"{place(raw)}: {error.detail}") from None
    if not values and not words and not verdicts:
        raise PreflightError(f"labels={config.labels}: no row holds a label")
    return Labels(names or (), dict(values), words, verdicts, fingerprint)


def corrected(config: AgreeConfig, labels: Labels) -> tuple[list[dict[str, Any]], list[str]]:
    """A row a run, model, prompt and labelled value: the judge's mean, people's by the labels alone, and the corrected one; and
    sentences about labels that met no score.

    Raises:
        PreflightError: a label is of no score or verdict of the runs, or stands for several responses.
    """
    rows: list[dict[str, Any]] = []
    used: set[tuple[str, Key]] = set()
    known: set[str] = set()
    for name in config.runs:
        run = open_run(name, config)
        means: dict[tuple[str, str, str], _Means] = defaultdict(lambda: _Means([], [], []))
        said = _said(run) if labels.verdicts else {}
        taken: dict[tuple[str, Key, str], Score] = {}
        for score in scores(run, config):
            known |= {alias for key in score.values for alias in (key, key.split(".", 1)[1])}
            for value, by_row in labels.values.items():
                _add_values(means, score, value, by_row, labels.names, used, taken)
            _add_verdicts(means, score, said, labels.verdicts, used)
        for (model, prompt, value), found in sorted(means.items()):
            rows.append({"run": run.name, "model": model, "prompt": prompt, "value": value} | _corrected(found, config))
    named = [*dict.fromkeys([*labels.values, *labels.words])]
    if wrong := next((name for name in labels.words if name in known), None):
        raise PreflightError(labels.words[wrong])
    if named and not known.intersection(named):
        near = next((hint for name in named if (hint := nearest(name, sorted(known)))), "")
        raise PreflightError(f"labels={config.labels}: no run has a value {', '.join(named)}{near}")
    others = [name for name in named if name not in known]
    notes = [f"{config.labels}: columns that are no value of the runs: {', '.join(others)}"] if others else []
    for value, by_row in labels.values.items():
        if value not in known:
            continue
        if lost := [key for key in by_row if (value, key) not in used]:
            shown = ", ".join(f"{name} {part}" for name, part in zip(labels.names, lost[0], strict=True))
            if len(lost) == len(by_row):
                raise PreflightError(f"labels={config.labels}: no run has {value} of any labelled row, such as {shown}")
            notes.append(f"{value}: {len(lost)} of {len(by_row)} labels meet no score, such as that of {shown}")
    if lost := [key for key in labels.verdicts if (_VERDICT, key) not in used]:
        if len(lost) == len(labels.verdicts):
            raise PreflightError(f"labels={config.labels}: no run has a verdict with the hash {lost[0][0]}")
        notes.append(f"{len(lost)} of {len(labels.verdicts)} labels meet no verdict, such as {lost[0][0]}")
    return rows, notes


def _add_values(
    means: dict[tuple[str, str, str], _Means],
    score: Score,
    value: str,
    by_row: Mapping[Key, float],
    names: tuple[str, ...],
    used: set[tuple[str, Key]],
    taken: dict[tuple[str, Key, str], Score],
) -> None:
    whole = {"sample_id": score.output.sample_id, "model": score.output.model, "prompt": score.prompt}
    key = tuple(str((whole | {"draw": score.draw})[name]) for name in names)
    for full, judged in score.values.items():
        if value not in (full, full.split(".", 1)[1]):
            continue
        label = by_row.get(key)
        if label is not None:
            used.add((value, key))
            first = taken.setdefault((full, key, value), score)
            if first is not score:
                raise PreflightError(
                    f"labels: the label of {value} of {', '.join(key)} stands for several responses ({first.output.model} and "
                    f"{score.output.model}, draws {first.draw} and {score.draw}): add columns model and draw"
                )
        _append(means[score.output.model, score.prompt, full], judged, label, score)


def _add_verdicts(
    means: dict[tuple[str, str, str], _Means],
    score: Score,
    said: Mapping[tuple[str, str], float],
    labels: Mapping[Key, float],
    used: set[tuple[str, Key]],
) -> None:
    sample = score.output.sample_id
    for role, digest in score.asks if labels else ():
        judged = said.get((digest, sample))
        if judged is None:
            continue
        key = (digest, sample) if (digest, sample) in labels else (digest, "")
        label = labels.get(key)
        if label is not None:
            used.add((_VERDICT, key))
        _append(means[score.output.model, score.prompt, f"verdict.{role}"], judged, label, score)


def _append(means: _Means, judged: float, label: float | None, score: Score) -> None:
    means.judged.append(judged)
    means.people.append(np.nan if label is None else label)
    means.questions.append(score.output.sample_id)


def _said(run: Run) -> dict[tuple[str, str], float]:
    """(hash, sample_id) -> 1 or 0, of the verdicts that are a yes or a no."""
    columns = ["hash", "sample_id", "answer", "status"]
    parts: Iterator[dict[str, Any]] = (
        row for part in run.parts("verdicts") for row in stream(run.storage, part["path"], columns)
    )
    return {(row["hash"], row["sample_id"]): float(row["answer"]) for row in parts if row["status"] == "ok"}


def _corrected(found: _Means, config: AgreeConfig) -> dict[str, Any]:
    judged, people = np.array(found.judged), np.array(found.people)
    labelled = people[~np.isnan(people)]
    row: dict[str, Any] = {
        "rows": len(judged),
        "labels": len(labelled),
        "judge": float(judged.mean()),
        "status": "na",
    }
    if len(labelled) < ppi.LEAST:
        why = f"{len(labelled)} labels; {ppi.LEAST} are needed"
        return row | {"reason": "too_few", "detail": why}
    if np.ptp(labelled) == 0 and labelled[0] not in (0, 1):
        return row | {"reason": "constant", "detail": f"people give all labelled rows {labelled[0]:g}"}
    made = ppi.corrected_mean(judged, people, np.array(found.questions), config.width)
    for name, each in (("corrected", made.corrected), ("labels_alone", made.alone)):
        row |= {name: each.value, f"{name}_low": each.low, f"{name}_high": each.high}
    return row | {
        "judge_bias": made.bias,
        "lambda": made.tuning,
        "wanted_width": config.width,
        "labels_needed": made.needed,
        "labels_needed_alone": made.needed_alone,
        "status": "scored",
    }


def _put(into: dict[Any, float], key: Any, label: float | None) -> None:
    if label is not None and into.setdefault(key, label) != label:
        raise RowError("repeated_label", f"{key} has another label in a row before: {into[key]:g}")
