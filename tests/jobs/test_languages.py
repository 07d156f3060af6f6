"""A new user's first run on data in Japanese and in Arabic, every number worked out by hand; and languages we do not know."""

import json
from pathlib import Path
from typing import Any

import pytest

from trust import tables
from trust.config import load
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.runs import Run
from trust.summary import show, summarise

ROWS = Path(__file__).resolve().parents[1] / "data" / "rows"

# Rows 1, 2, 4, 6, 7, 8 are answerable and 3, 5 not; 3 and 4 are refused. Rows 1, 2, 7 (ja) or 6 (ar) and 8 give the gold
# answer; 6 (ja) names Indonesia for India, 7 (ar) engineering (al-handasa) for India (al-hind).
REFUSALS = {
    "num_samples": 8,
    "answered_ratio": 100 * 6 / 8,
    "refuse_rec": 100 * 1 / 2,
    "refuse_prec": 100 * 1 / 2,
    "answerable_rec": 100 * 5 / 6,
    "answerable_prec": 100 * 5 / 6,
    "macro_f1": (50 + 100 * 5 / 6) / 2,
}
CORRECTNESS = {
    "calib_answered_str_em": 100 * 4 / 6,
    "calib_answerable_str_em": 100 * 4 / 6,
    "calib_str_em_f1": 100 * 4 / 6,
}
# Recall over the six answers: rows 5 (no citation), 6 or 7 (not entailed) and 8 (no such document) have none. Precision over
# the five that cite; in Arabic row 2 cites one document too many: 2 of 3.
CITATIONS = {
    "ja": {"answered_citation_rec": 100 * 3 / 6, "answered_citation_prec": 100 * 3 / 5},
    "ar": {"answered_citation_rec": 100 * 3 / 6, "answered_citation_prec": 100 * (2 + 2 / 3) / 5},
}
ROW_VALUES = {  # answered, answer_correctness, citation_recall, citation_precision
    "ja": [(1, 1, 1, 1), (1, 1, 1, 1), (0,), (0, 0), (1, None, 0), (1, 0, 0, 0), (1, 1, 1, 1), (1, 1, 0, 0)],
    "ar": [(1, 1, 1, 1), (1, 1, 1, 2 / 3), (0,), (0, 0), (1, None, 0), (1, 1, 1, 1), (1, 0, 0, 0), (1, 1, 0, 0)],
}


def evaluate(root: Path, path: Path, *words: str) -> tuple[Run, list[dict[str, Any]]]:
    config = load(
        "evaluate",
        EvaluateConfig,
        [f"storage.root={root}", f"data.path={path}", "task=em", "judge/entails=lexical", "replicates=200", *words],
    )
    manifest = run_evaluate(config)
    run = Run.of(config)
    return run, summarise(run, manifest, config)


def scores(run: Run) -> list[dict[str, Any]]:
    return [row for part in run.parts("scores") for row in tables.to_rows(run.storage.read_table(part["path"]))]


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("language", ["ja", "ar"])
def test_every_number_is_the_one_worked_out_by_hand(tmp_path: Path, language: str) -> None:
    run, (summary,) = evaluate(tmp_path, ROWS / f"{language}.json", f"data.language={language}", "run=first")
    recall, precision = CITATIONS[language].values()
    f1 = 2 * recall * precision / (recall + precision)
    expected = REFUSALS | CORRECTNESS | CITATIONS[language] | {"answered_citation_f1": f1}
    expected["trust_score"] = (REFUSALS["macro_f1"] + CORRECTNESS["calib_str_em_f1"] + f1) / 3
    assert {key: summary[key] for key in expected} == pytest.approx(expected)
    assert (summary["num_unsupported_language"], summary["num_undetermined_language"]) == (0, 0)
    names = ("answered", "answer_correctness", "citation_recall", "citation_precision")
    for row in scores(run):
        number = int(row["sample_id"].rsplit("-", 1)[1])
        wanted = ROW_VALUES[language][number - 1]
        got = tuple(row["values"].get(name) for name in names)
        assert got == pytest.approx(wanted + (None,) * (4 - len(wanted))), row["sample_id"]


@pytest.mark.usefixtures("ray_session")
def test_rows_in_other_languages_are_scored_marked_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = [{"title": "Ankara", "text": "Ankara Türkiye'nin başkentidir.", "answers_found": [1]}]
    base = {"question": "Türkiye'nin başkenti neresidir?", "answers": [["Ankara"]], "docs": docs}
    items = [
        base | {"id": "1", "language": "tr", "output": "Ankara Türkiye'nin başkentidir [1]."},
        base | {"id": "2", "language": "vi", "output": "Ankara [1]."},
        base | {"id": "3", "output": "Ankara [1]."},
        base | {"id": "4", "language": "de", "output": "Ankara [1]."},
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(items), encoding="utf-8")
    run, (summary,) = evaluate(tmp_path, path, "run=others")
    assert summary["num_unsupported_language"] == 2
    assert summary["unsupported_languages"] == "tr, vi"
    assert summary["num_undetermined_language"] == 1
    assert summary["num_scored"] == 4
    marks = {row["sample_id"].rsplit(":", 1)[1]: json.loads(row["trace"]).get("language") for row in scores(run)}
    assert marks == {"1": "unsupported", "2": "unsupported", "3": "undetermined", "4": None}
    show([summary])
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 rows are in languages without rules of their own (tr, vi)" in printed
    assert "1 rows have no language (und)" in printed
