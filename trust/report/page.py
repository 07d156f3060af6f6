"""The page: what it says of a run, and how it is put together. It reads only what manifests and the summary name."""

import base64
import hashlib
import json
from collections import Counter
from importlib import resources
from itertools import compress, groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trust import config as configs
from trust import summary as summaries
from trust.ask.lexical import LexicalConfig
from trust.errors import PreflightError
from trust.evaluate import EvaluateConfig
from trust.report import numbers, origin, plot, rows
from trust.report.explain import verdicts
from trust.report.sample import ANSWERABLE, RESPONSES, Choice, Group, Tally, choose, tally
from trust.runs import Run

_TASKS = {
    "em": "short answers, found by string match",
    "em5": "lists of answers, five found ones count as all",
    "cm": "explanations, judged by gold claims",
    "none": "no gold answers",
}
_MODES = {
    "strict": "strict: each rule read the right way",
    "upstream": "upstream: the published arithmetic, bug for bug, to compare with the papers",
}
_FEW = 30  # rows; what a smaller slice says is marked


def write_report(run: Run, max_rows: int = rows.MAX_ROWS, max_bytes: int = rows.MAX_BYTES) -> str:
    """Writes `{run}/report.html` and returns its path.

    One pass over the scores and one over the responses, part by part; what is held is bounded by `max_rows`.

    Args:
        max_rows: rows embedded at most; above it a sample, which the page describes.
        max_bytes: of JSON that the embedded rows may take.

    Raises:
        PreflightError: `jobs.evaluate` has not finished in this run.
    """
    manifest = run.manifest("evaluate")
    if manifest is None:
        raise PreflightError(f"run={run.name} has no finished evaluation in {run.root}: run jobs.evaluate first")
    config = configs.build(EvaluateConfig, manifest.config)
    sources = origin.jobs(run, config.from_run)
    scores = [part | {"path": run.path(part["path"])} for part in manifest.tables.get("scores", [])]
    tallies = tally(run.storage, scores, max_rows)
    choices = choose(tallies, max_rows)
    meanings = verdicts(config.compat)
    responses = origin.beside(run, config.from_run).parts("responses")
    shown, reasons = rows.gather(run.storage, scores, responses, choices, meanings, max_bytes)
    found = numbers.read(run)
    lexical = isinstance(config.judge.entails, LexicalConfig)
    page = _render(
        run=run.name,
        finished=manifest.finished,
        judge=config.judge.describe(),
        lexical=lexical,
        mode=_MODES[config.compat],
        withheld=[(s["dataset"], s["withheld"]) for s in found if s.get("withheld")],
        missing=[(s["dataset"], s["missing"]) for s in found if s.get("missing")],
        outside=[(s["dataset"], told) for s in found if (told := summaries.outside_told(s))],
        languages=[(s["dataset"], note) for s in found for note in summaries.language_notes(s)],
        models=sorted({group[2] for group in tallies}),
        datasets=sorted({group[0] for group in tallies}),
        jobs=[origin.describe(where, m, tallies) for where, m in sources],
        unreadable=origin.unreadable(sources),
        overview=_overview(found) if len(found) > 1 else None,
        groups=_groups(found, tallies, _slices(run, config)),
        verdicts=meanings,
        sample=_statement(choices, reasons),
        rows=_json(shown),
        replicates=config.replicates,
        few=_FEW,
    )
    path = run.path("report.html")
    run.storage.write_bytes(path, page.encode())
    return path


def _render(**context: Any) -> str:
    environment = Environment(
        loader=PackageLoader("trust.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates = resources.files("trust.report") / "templates"
    script = (templates / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        context
        | {
            "style": Markup((templates / "report.css").read_text(encoding="utf-8")),
            "script": Markup(script),
            "script_hash": digest,
        }
    )


def _json(value: Any) -> Markup:
    """JSON that no text in it can end early: the marks that HTML looks for are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def _groups(
    found: list[dict[str, Any]], tallies: dict[Group, Tally], slices: dict[Group, list[tuple[str, Any]]]
) -> list[dict[str, Any]]:
    """A section a data set, task, model and prompt, in the order of the embedded rows' `group`."""
    by_group = {tuple(summary[name] for name in numbers.GROUP): summary for summary in found}
    made = []
    for index, (group, counted) in enumerate(tallies.items()):
        summary = by_group.get(group, {})
        points = numbers.points(summary)
        made.append(
            {
                **dict(zip(numbers.GROUP, group, strict=True)),
                "id": f"set-{index}",
                "about": _TASKS.get(group[1], ""),
                "plot": Markup(plot.intervals(points, f"plot-{index}")) if points else None,
                "sections": numbers.sections(summary),
                "refusals": _contingency(counted),
                "slices": slices.get(group, []),
            }
        )
    return made


def _contingency(counted: Tally) -> dict[str, Any]:
    """Answerable or not, against answered, refused or empty, with sums."""
    cells = counted.refusals
    kinds = [kind for kind in ANSWERABLE if kind != "unknown" or any(cells[kind, name] for name in RESPONSES)]
    return {
        "rows": [(kind, [cells[kind, name] for name in RESPONSES]) for kind in kinds],
        "total": [sum(cells[kind, name] for kind in kinds) for name in RESPONSES],
        "uncounted": counted.rows - sum(cells.values()),
    }


def _slices(run: Run, config: EvaluateConfig) -> dict[Group, list[tuple[str, Any]]]:
    """Per data set, each slice column with its slices and their main numbers; a column of one value says nothing new."""
    made: dict[Group, list[tuple[str, Any]]] = {}
    rows = summaries.summarise_slices(run, config)
    for (*group, column), found in groupby(rows, key=lambda row: [row[name] for name in (*numbers.GROUP, "slice")]):
        items = [(row, numbers.main(row, short=True)) for row in found]
        given = [any(cells) for cells in zip(*([number for _, number in cells] for _, cells in items), strict=True)]
        items = [(row, [*compress(cells, given)]) for row, cells in items]
        if len(items) > 1:
            made.setdefault((group[0], group[1], group[2], group[3]), []).append((column, items))
    return made


def _overview(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The main numbers of all data sets side by side; a line where any of them has one."""
    columns = [numbers.main(summary) for summary in found]
    lines = [(cells[0][0], [number for _, number in cells]) for cells in zip(*columns, strict=True)]
    return {"sets": found, "lines": [(label, cells) for label, cells in lines if any(cells)]}


def _statement(choices: dict[Group, Choice], reasons: dict[Group, list[str]]) -> list[str]:
    """Which rows the page shows, in words: one line, or one a data set where it is a sample of any."""
    if all(len(reasons[group]) == choice.rows for group, choice in choices.items()):
        return [f"All {sum(choice.rows for choice in choices.values()):,} rows are here."] if choices else []
    lines = []
    for group, choice in choices.items():
        dataset, task, model, prompt = group
        name = f"{dataset} ({task}, {model}, {prompt}): " if len(choices) > 1 else ""
        lines.append(f"{name}{_part(choice, Counter(reasons[group]))}")
    return lines


def _part(choice: Choice, count: Counter[str]) -> str:
    shown = count.total()
    if shown == choice.rows:
        return f"all {shown:,} rows are here."
    picked = []
    if choice.failed:
        part = "all" if count["failed"] == choice.failed else f"{count['failed']:,} of the"
        picked.append(f"{part} {choice.failed:,} failed rows")
    if count["worst"]:
        picked.append(f"the {count['worst']:,} with the worst scores")
    if count["random"] + count["all"]:
        picked.append(f"{count['random'] + count['all']:,} drawn by lot from their ids (the same every time)")
    left = len(choice.keys) - shown
    full = f" {left:,} more were chosen, but would make the page too large." if left else ""
    return f"{shown:,} of {choice.rows:,} rows are here: {', '.join(picked)}.{full}"
