"""The published numbers of a run, read back from its summary and sorted for reading."""

import io
import json
import math
import re
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from trust.report.plot import Point
from trust.runs import Run
from trust.summary import MAIN

GROUP = ("dataset", "task", "model", "prompt")
PARTS = {
    "Trust-Score": "Trust-Score",
    "F1_GR  grounded refusals": "F1_GR refusals",
    "F1_AC  answer correctness": "F1_AC answers",
    "F1_GC  grounded citations": "F1_GC citations",
}

_WHO = {
    "calib_answered": "answered questions, gold answers that the documents hold",
    "calib_answerable": "answerable questions, gold answers that the documents hold",
    "parametric_answered": "answered questions, gold answers beyond the documents",
    "parametric": "answered questions, gold answers beyond the documents",
    "regular": "all questions",
    "answered": "answered questions",
}
_WHAT = {
    "str_em": "share of gold answers found",
    "claims_nli": "share of gold claims entailed",
    "num_preds": "answers listed per response",
    "qampari_prec": "precision of the listed answers",
    "qampari_rec": "recall of the gold answers",
    "qampari_rec_top5": "recall, five found answers count as all",
    "qampari_f1": "F1 of the listed answers",
    "qampari_f1_top5": "F1 with recall capped at five",
    "citation_rec": "citation recall",
    "citation_prec": "citation precision",
    "citation_f1": "citation F1",
    "length": "words per response",
}
_WORDS = {
    "trust_score": "Trust-Score: mean of its three parts",
    "macro_f1": "F1_GR, grounded refusals: mean of the F1 of refusing and the F1 of answering",
    "calib_str_em_f1": "F1_AC, answer correctness",
    "calib_qampari_em_f1": "F1_AC, answer correctness",
    "calib_claims_nli_f1": "F1_AC, answer correctness",
    "answered_citation_f1": "F1_GC, grounded citations",
    "answered_ratio": "answered, of all questions",
    "answered_num": "questions answered",
    "answerable_num": "questions that the documents answer",
    "overlapped_num": "answerable questions that were answered",
    "num_samples": "questions counted",
    "refuse_rec": "recall of refusals: unanswerable questions refused",
    "refuse_prec": "precision of refusals: refused questions that are unanswerable",
    "refuse_f1": "F1 of refusals",
    "answerable_rec": "recall of answers: answerable questions answered",
    "answerable_prec": "precision of answers: answered questions that are answerable",
    "answerable_f1": "F1 of answers",
    "macro_avg": "mean of both recalls",
    "empty_num": "empty responses",
    "uncited_format_num": "answers whose only citations are in a form that is not read",
    "answered_citation_rec_by_sentence": "statements that their citations entail, of all statements of all answers",
    "answered_citation_prec_by_citation": "citations that are right, of all citations of all answers",
    "groundedness": "share of an answer's statements that the documents shown entail, cited or not",
    "groundedness_by_statement": "statements that the documents shown entail, of all statements of all answers",
    "judged_answerable_num": "questions that a document answers, by the judge",
    "judged_refuse_rec": "recall of refusals, by judged answerability",
    "judged_refuse_prec": "precision of refusals, by judged answerability",
    "judged_refuse_f1": "F1 of refusals, by judged answerability",
    "judged_answer_rec": "recall of answers, by judged answerability",
    "judged_answer_prec": "precision of answers, by judged answerability",
    "judged_answer_f1": "F1 of answers, by judged answerability",
    "judged_macro_f1": "mean of both F1, by judged answerability",
    "qampari_presence": "wrong answers that stand in the documents",
    "qampari_absence": "wrong answers that stand in no document",
}
_FIRST = [name for label in PARTS for name in MAIN[label]]
_SECTIONS = {
    "Trust-Score and its parts": re.compile("|".join(f"^{name}$" for name in _FIRST)),
    "Without gold answers": re.compile("^judged_|^grounded"),
    "Answering and refusing": re.compile(
        r"refus|overlap|^answered_ratio$|^answered_num$|^empty_num$|^answerable_|^num_samples$|^macro_avg$"
    ),
    "Correctness": re.compile(r"str_em|qampari|claims_nli|num_preds"),
    "Citations": re.compile("citation"),
    "Other numbers": re.compile(""),
}


@dataclass(frozen=True)
class Number:
    """A published number as it is shown; `interval` is empty where there is none."""

    key: str
    words: str
    value: str
    interval: str
    n: str


def read(run: Run) -> list[dict[str, Any]]:
    """The flat summaries of a run, from `summary.json` or `summary.parquet`; empty where nothing was scored.

    Keys that only other data sets of the table have are left out; what is left and null is not applicable.
    """
    try:
        return [json.loads(run.storage.read_bytes(run.path("summary.json")))]
    except FileNotFoundError:
        pass
    try:
        rows = pq.read_table(io.BytesIO(run.storage.read_bytes(run.path("summary.parquet")))).to_pylist()
    except FileNotFoundError:
        return []
    return [_without_strangers(row) for row in rows]


def keys(summary: dict[str, Any]) -> list[str]:
    """Names of the published numbers in a summary."""
    return [key for key in summary if f"{key}_low" in summary and f"{key}_n" in summary]


def sections(summary: dict[str, Any]) -> list[tuple[str, list[Number]]]:
    """All numbers of a summary under headings, in the order of reading."""
    found: dict[str, list[Number]] = {name: [] for name in _SECTIONS}
    for key in keys(summary):
        name = next(name for name, pattern in _SECTIONS.items() if pattern.search(key))
        found[name].append(number(summary, key))
    found["Trust-Score and its parts"].sort(key=lambda item: _FIRST.index(item.key))
    return [(name, numbers) for name, numbers in found.items() if numbers]


def number(summary: dict[str, Any], key: str) -> Number:
    """One number of a summary, formatted."""
    value, low, high, n = (summary.get(name) for name in (key, f"{key}_low", f"{key}_high", f"{key}_n"))
    counts = key.endswith("_num") or key.startswith("num_")
    interval = "" if counts or value is None or low is None or high is None else f"{low:.1f} – {high:.1f}"
    return Number(key, describe(key), show(value, counts), interval, "" if n is None else f"{n:,}")


def main(summary: dict[str, Any], short: bool = False) -> list[tuple[str, Number | None]]:
    """The numbers people look at first, a label each; None where the data set has no such number.

    Args:
        short: leave out what the table of answers and refusals shows already.
    """
    return [
        (" ".join(label.split()), next((number(summary, name) for name in names if name in summary), None))
        for label, names in MAIN.items()
        if not (short and label.startswith(("refusal", "answer ")))
    ]


def points(summary: dict[str, Any]) -> list[Point]:
    """Trust-Score and its three parts, for the plot."""
    found = []
    for label, short in PARTS.items():
        name = next((name for name in MAIN[label] if name in summary), None)
        if name:
            value, low, high = summary[name], summary.get(f"{name}_low"), summary.get(f"{name}_high")
            found.append(Point(short, _finite(value), _finite(low), _finite(high)))
    return found


def describe(key: str) -> str:
    """A published key in words; the key itself where it is of a metric not known here."""
    if key in _WORDS:
        return _WORDS[key]
    for scope, who in _WHO.items():
        what = _WHAT.get(key.removeprefix(f"{scope}_"))
        if key.startswith(f"{scope}_") and what:
            return f"{what}; {who}"
    return key.replace("_", " ")


def show(value: float | None, counts: bool = False) -> str:
    """A number for people; `n.a.` for what is not applicable."""
    if value is None or not math.isfinite(value):
        return "n.a."
    return f"{value:,.0f}" if counts else f"{value:.2f}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _without_strangers(row: dict[str, Any]) -> dict[str, Any]:
    strangers = {key for key in keys(row) if row[key] is None and row[f"{key}_n"] is None}
    gone = strangers | {f"{key}_{end}" for key in strangers for end in ("low", "high", "n")}
    kept = {key: value for key, value in row.items() if key not in gone}
    for said in ("withheld", "missing"):
        if kept.get(said, "") is None:
            del kept[said]
    return kept
