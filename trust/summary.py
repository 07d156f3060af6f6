"""From sums to the published numbers: a flat object a model and data set, every rate with count and interval."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trust import flat, metrics, rates, slices
from trust.compat import choices
from trust.evaluate import EvaluateConfig
from trust.runs import Manifest, Run
from trust.sums import by_term, group_of
from trust.text.languages import support

_GROUP = (*rates.GROUP, "slice", "slice_value")
_MANY, _WIDEST = 4, 5  # data sets side by side; numbers side by side where there are more data sets
_COUNTS = ("num_scored", "num_na", "num_failed")

# What people look at first: label -> the key that holds it, by task.
MAIN = {
    "Trust-Score": ("trust_score",),
    "F1_GR  grounded refusals": ("macro_f1",),
    "F1_AC  answer correctness": ("calib_str_em_f1", "calib_qampari_em_f1", "calib_claims_nli_f1"),
    "F1_GC  grounded citations": ("answered_citation_f1",),
    "answered ratio": ("answered_ratio",),
    "refusal precision": ("refuse_prec",),
    "refusal recall": ("refuse_rec",),
    "answer precision": ("answerable_prec",),
    "answer recall": ("answerable_rec",),
    "citation recall": ("answered_citation_rec",),
    "citation precision": ("answered_citation_prec",),
    "groundedness": ("groundedness",),
    "judged refusals, F1": ("judged_refuse_f1",),
    "judged answers, F1": ("judged_answer_f1",),
    "hallucination rate (of valid)": ("hallucination_rate_of_valid",),
    "hallucination rate (invalid is wrong)": ("hallucination_rate_invalid_wrong",),
    "error rate (of valid)": ("error_rate_of_valid",),
    "error rate (invalid is wrong)": ("error_rate_invalid_wrong",),
}
# And those of metrics that name their numbers by what they are given.
_OTHERS = re.compile(
    r"(geval|gptscore|bartscore|bertscore|ragas|rule|code)_(?!num_|(mode|steps|setting|baseline)$)"
    r"\w+(?<!_low)(?<!_high)(?<!_n)|rules_passed|bleu|chrf|rouge(1|2|L|Lsum)"
)
_WHOLE, _REFUSALS, _CORRECTNESS, _CITED = list(MAIN)[:4]


def summarise(run: Run, manifest: Manifest, config: EvaluateConfig) -> list[dict[str, Any]]:
    """One flat summary a data set, task, model and prompt.

    Keys: the published names; `KEY_low`, `KEY_high` (95 %) and `KEY_n` beside each; null is not applicable. Where more
    than `max_failed` of the rows failed every rate is null and `withheld` says why.

    `judge` names who judged; `num_unreadable` counts rows of the file that never became responses; `missing` says which of
    the four Trust-Score numbers are not there, and why; `num_outside_judge_languages` counts rows that the judge was asked
    about in a language that it is not for, and `outside_judge_languages` says which (`ja 12, und 3`);
    `num_undetermined_language` and `num_unsupported_language` count rows without a language and in one that the mode has
    no rules for (`unsupported_languages` names those), see `trust.text.languages`.
    """
    lost, why = unreadable(run, config)
    head = {"compat": config.compat, "judge": config.judge.describe(), "num_unreadable": lost}
    spoken = _languages(run, config)
    over = rates.over_languages(run, config, why)
    for metric in metrics.build(config.metrics, config.compat):
        head |= metric.notes() if hasattr(metric, "notes") else {}
    known = choices(config.compat).known_languages
    summaries = []
    for group, numbers in _by_group(run, config, why, [""]):
        whole = {key: group[key] for key in rates.GROUP}
        languages = spoken[tuple(whole.values())]
        told = whole | head | _outside(languages) | _standing(languages, known) | numbers
        summaries.append(told | over.get(tuple(whole.values()), {}))
    parts_wanted = bool({"trust_score", "no_gold"} & set(config.metrics))
    for summary in summaries if parts_wanted else ():
        if lacking := missing(summary, "trust_score" in config.metrics):
            summary["missing"] = lacking
    return summaries


def _languages(run: Run, config: EvaluateConfig) -> dict[tuple[str, ...], dict[str, dict[str, int]]]:
    """Group -> language -> its rows and those of them that are `outside` the judge's languages."""
    by_name = {metric.name: metric for metric in metrics.build(config.metrics, config.compat)}
    found: dict[tuple[str, ...], dict[str, dict[str, int]]] = defaultdict(dict)
    for name, array in run.each_sum("evaluate", lambda name: group_of(name)["slice"] == slices.LANGUAGE):
        group = group_of(name)
        sums = by_term(by_name[group["metric"]], array[:1])
        rows = sum(int(sums[f"rows_{status}"][0]) for status in ("scored", "na", "failed"))
        counts = found[tuple(group[key] for key in rates.GROUP)].setdefault(group["slice_value"], Counter())
        counts["rows"] = max(counts["rows"], rows)  # every metric has all of them
        counts["outside"] = max(counts["outside"], int(sums["rows_outside"][0]))
    return found


def _outside(languages: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    counts = {language: rows["outside"] for language, rows in sorted(languages.items()) if rows["outside"]}
    told = ", ".join(f"{language} {count}" for language, count in counts.items())
    return {"num_outside_judge_languages": sum(counts.values()), "outside_judge_languages": told}


def _standing(languages: Mapping[str, Mapping[str, int]], known: frozenset[str]) -> dict[str, Any]:
    standing = {language: support(language, known) for language in languages}
    strangers = sorted(language for language in languages if standing[language] == "unsupported")
    return {
        "num_undetermined_language": sum(
            rows["rows"] for name, rows in languages.items() if standing[name] == "undetermined"
        ),
        "num_unsupported_language": sum(languages[name]["rows"] for name in strangers),
        "unsupported_languages": ", ".join(strangers),
    }


def summarise_slices(run: Run, config: EvaluateConfig) -> list[dict[str, Any]]:
    """The same numbers for every slice: a row a data set, task, model, prompt, `slice` (the column) and `slice_value`.

    `n` counts the slice's rows, whatever became of them. Rows without a value are the slice `(none)`, which comes last.
    """
    _, why = unreadable(run, config)
    rows = []
    for group, numbers in _by_group(run, config, why, config.slices):
        n = sum(numbers[key] for key in _COUNTS)
        rows.append(group | {"n": n} | numbers)
    return sorted(
        rows,
        key=lambda row: (
            *(row[key] for key in rates.GROUP),
            config.slices.index(row["slice"]),
            row["slice_value"] == slices.NONE,
            row["slice_value"],
        ),
    )


def _by_group(
    run: Run, config: EvaluateConfig, why: str, columns: Sequence[str]
) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Each slice by the columns, of each group of rows, with its flat numbers; the column "" has one slice of all rows."""
    by_name = {metric.name: metric for metric in metrics.build(config.metrics, config.compat)}
    found: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for name, array in run.each_sum("evaluate", lambda name: group_of(name)["slice"] in columns):
        group = group_of(name)
        flats = found.setdefault(tuple(group[key] for key in _GROUP), {})
        flats[group["metric"]] = flat.of_metric(by_name[group["metric"]], array, group["task"], config.max_failed, why)
    for names, flats in sorted(found.items()):
        yield dict(zip(_GROUP, names, strict=True)), _joined({name: flats[name] for name in by_name if name in flats})


def _joined(flats: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The numbers of several metrics as those of one. What two of them give alike stands once (see `trust.metrics.build`);
    `num_scored` and its like are those of the first metric, and of each metric under its name (`no_gold_num_scored`)."""
    if len(flats) == 1:
        return next(iter(flats.values()))
    joined: dict[str, Any] = {}
    for numbers in flats.values():
        joined = numbers | joined
    for name, numbers in flats.items():
        joined |= {f"{name}_{key}": numbers[key] for key in _COUNTS}
    if told := [f"{name}: {numbers['withheld']}" for name, numbers in flats.items() if "withheld" in numbers]:
        joined["withheld"] = "; ".join(told)
    return joined


def unreadable(run: Run, config: EvaluateConfig) -> tuple[int, str]:
    """How many rows of the file at `data.path` could not be read, and, where they are too many, that in words."""
    prepared = run.manifest("prepare") if config.data.path else None
    if not prepared:
        return 0, ""
    failed = prepared.counts.get("failed", 0)
    if prepared.failed_share <= config.max_failed:
        return failed, ""
    return failed, f"{failed} of {prepared.rows} rows could not be read, more than max_failed={config.max_failed:g}"


def missing(summary: dict[str, Any], asked: bool) -> str:
    """Which of the Trust-Score and its parts a summary lacks, and why, in words; empty where it lacks none.

    Args:
        asked: whether the metric `trust_score` was.
    """
    if "withheld" in summary:
        return ""
    lacking = {}
    for label in (_REFUSALS, _CORRECTNESS, _CITED, _WHOLE):
        name = next((name for name in MAIN[label] if name in summary), None)
        if name is None or summary[name] is None:
            lacking[label.split()[0]] = _why(label, summary, name, asked)
    return "; ".join(f"{label}: {why}" for label, why in lacking.items())


def _why(label: str, summary: dict[str, Any], name: str | None, asked: bool) -> str:
    if summary["task"] == "none" and label in (_CORRECTNESS, _WHOLE):
        return "needs gold answers, and the data has none (task none)"
    if name is None:
        return "not measured" if asked else "of the metric trust_score, which was not asked for"
    if label == _WHOLE:
        return "the mean of three parts, of which one is not applicable"
    if label == _CITED:
        return "no answer makes a statement, or none cites"
    if summary[f"{name}_n"] == 0:
        return "no document says which answers it holds (answers_found)"
    if label == _REFUSALS:
        return "every question is answerable, or none is"
    return "no question is answerable, or none was answered"


def show(summaries: list[dict[str, Any]]) -> None:
    """Prints the main numbers: a column a data set, each with its 95 % interval, or a line a data set where there are many."""
    from rich.console import Console

    columns, lines = _many(summaries) if len(summaries) > _MANY else _few(summaries)
    console = Console(width=max(100, 34 + 30 * (len(columns) - 1)))
    console.print(_printed("The main numbers (95 % interval)", columns, lines))
    for judge, mode in sorted({(s["judge"], s["compat"]) for s in summaries}):
        console.print(f"judge: {judge}   mode: {mode}", highlight=False)
    for note in dict.fromkeys(note for summary in summaries for note in _notes(summary)):
        console.print(note, highlight=False, soft_wrap=True)


def _few(summaries: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    lines = []
    for label, names in MAIN.items():
        cells = [_cell(summary, names) for summary in summaries]
        if any(cells):
            lines.append([label, *(cell or "-" for cell in cells)])
    others = [key for key in dict.fromkeys(key for summary in summaries for key in summary) if _OTHERS.fullmatch(key)]
    for key in others:
        lines.append([key, *(_cell(summary, (key,)) or "-" for summary in summaries)])
    lines.append(["rows scored / n.a. / failed", *map(_outcomes, summaries)])
    if any(summary.get("num_unreadable") for summary in summaries):
        lines.append(["rows that could not be read", *(str(summary["num_unreadable"]) for summary in summaries)])
    return ["", *(f"{s['dataset']} ({s['task']})\n{s['model']}" for s in summaries)], lines


def _many(summaries: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    labels = [label for label, names in MAIN.items() if any(_cell(summary, names) for summary in summaries)][:_WIDEST]
    one = len({(summary["dataset"], summary["task"]) for summary in summaries}) == 1
    lines = [
        [
            s["model"] if one else f"{s['dataset']} ({s['task']}) {s['model']}",
            *(_cell(s, MAIN[label]) or "-" for label in labels),
            _outcomes(s),
        ]
        for s in summaries
    ]
    return ["", *(" ".join(label.split()) for label in labels), "scored / n.a. / failed"], lines


def _printed(title: str, columns: list[str], lines: list[list[str]]) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for line in lines:
        table.add_row(*line)
    return table


def _outcomes(summary: dict[str, Any]) -> str:
    return " / ".join(str(summary[key]) for key in _COUNTS)


def _notes(summary: dict[str, Any]) -> list[str]:
    """What is to be said beside the numbers of a summary."""
    told = [outside_told(summary)]
    told.append(f"rates withheld: {summary['withheld']}" if "withheld" in summary else "")
    told.append(f"not given: {summary['missing']}" if "missing" in summary else "")
    return [f"{summary['dataset']}: {note}" for note in (*told, *language_notes(summary)) if note]


def outside_told(summary: dict[str, Any]) -> str:
    """What is to be said of rows in languages that the judge is not for; empty where there are none."""
    if not summary.get("num_outside_judge_languages"):
        return ""
    unknown = (
        "; a row's `language`, or data.language, tells what und is"
        if "und " in summary["outside_judge_languages"]
        else ""
    )
    return (
        f"{summary['num_outside_judge_languages']} rows are in languages that the judge is not for "
        f"({summary['outside_judge_languages']}): do not rely on what it says of them{unknown}"
    )


def language_notes(summary: dict[str, Any]) -> list[str]:
    """What is to be said of rows that no rules of their own language were there for; empty where there are none."""
    notes = []
    if lost := summary.get("num_unsupported_language"):
        only = " (this mode reads every text as English)" if summary["compat"] == "upstream" else ""
        notes.append(
            f"{lost:,} rows are in languages without rules of their own ({summary['unsupported_languages']}){only}: "
            "they are scored by what holds for any language, so refusals and answers may be missed"
        )
    if lost := summary.get("num_undetermined_language"):
        notes.append(
            f"{lost:,} rows have no language (und): no articles are dropped, and refusals are looked for in every known "
            "language; give a column `language`, or data.language=…"
        )
    return notes


def _cell(summary: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if name in summary:
            if summary[name] is None:
                return "n.a."
            low, high = summary[f"{name}_low"], summary[f"{name}_high"]
            return f"{summary[name]:.2f}" + (f" [{low:.1f}, {high:.1f}]" if low is not None else "")
    return ""
