"""`jobs.reproduce`: the whole path, against an endpoint in this process and with a real model."""

import csv
import json
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.reproduce import reproduce
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from trust.config import load
from trust.errors import TooManyFailed
from trust.reproduce import ReproduceConfig

REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."
ASKED = "How many ports has router "


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Thirty-two questions, every second of them answerable."""
    made = []
    for n in range(32):
        docs = [{"title": f"R{n}", "text": f"The router R{n} has {n} ports.", "answers_found": [n % 2]}]
        made.append({"id": n, "question": f"{ASKED}{n:02d}?", "answers": [[f"{n} ports"]], "docs": docs})
    (tmp_path / "asqa.json").write_text(json.dumps(made))
    return tmp_path


def run(root: Path, *words: str) -> list[dict[str, Any]]:
    common = [f"storage.root={root}/runs", "run=paper", "replicates=200", "judge/entails=lexical"]
    reproduce(load("reproduce", ReproduceConfig, [*common, *words]))
    table = next(word.removeprefix("table=") for word in words if word.startswith("table="))
    folder = root / "runs" / "paper" / "reproduce"
    lines = pq.read_table(folder / f"{table}.parquet").to_pylist()
    read = [*csv.DictReader((folder / f"{table}.csv").read_text().splitlines())]
    assert [line["row"] for line in read] == [line["row"] for line in lines]
    return lines


def of(lines: list[dict[str, Any]], row: str, dataset: str) -> dict[str, dict[str, Any]]:
    return {line["column"]: line for line in lines if (line["row"], line["dataset"]) == (row, dataset)}


def said(request: Request) -> Reply:
    """Answers what is answerable, but cites nothing in four of sixteen answers, and refuses the rest."""
    n = int(request.prompt.partition(ASKED)[2][:2] or 0)
    return Reply(answer(f"The router R{n} has {n} ports{'' if n < 8 else ' [1]'}." if n % 2 else REFUSAL))


@pytest.mark.usefixtures("ray_session", "nltk_data")
def test_ours_beside_the_printed_number_and_finished_rows_are_taken(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["table=trust_score_2", "rows=[llama_3_8b_*]", "datasets=[asqa,eli5]", f"data.asqa={root}/asqa.json"]
    with FakeEndpoint(said) as fake:
        words += ["engine=openai", f"engine.base_url={fake.url}", "models.llama_3_8b=m"]
        lines = run(root, *words)
        asked = sum(ASKED in prompt for prompt in fake.prompts)
        assert asked == 32
        printed = capsys.readouterr().out
        assert run(root, *words) == lines, "the same once more"
        assert sum(ASKED in prompt for prompt in fake.prompts) == asked, "a finished row is not asked again"
        assert capsys.readouterr().out == printed

        found = of(lines, "llama_3_8b_icl", "asqa")
        summary = json.loads((root / "runs" / "paper-llama_3_8b_icl-asqa" / "summary.json").read_text())
        for column, key in {
            "answered_ratio": "answered_ratio",
            "f1_ac": "calib_str_em_f1",
            "f1_gr": "macro_f1",
        }.items():
            line = found[column]
            assert (line["status"], line["ours"]) == ("run", summary[key])
            assert (line["ours_low"], line["ours_high"]) == (summary[f"{key}_low"], summary[f"{key}_high"])
        ratio, cited = found["answered_ratio"], found["f1_gc"]
        assert (ratio["ours"], ratio["printed"], ratio["inside"]) == (50, 1.48, False)
        assert ratio["difference"] == pytest.approx(48.52)
        assert (cited["ours"], cited["printed"], cited["inside"]) == (75, 86.5, True)
        assert ratio["version"] == "v4 (ICLR 2025)"
        assert ratio["note"] == "over 32 questions, 16 of them answerable; published: 948, 610"

        other = of(lines, "llama_3_8b_icl", "eli5")["trust_score"]
        assert (other["status"], other["reason"], other["remedy"]) == ("not_run", "no data", "data.eli5=FILE")
        assert (other["ours"], other["printed"]) == (None, 14.74)
        assert of(lines, "llama_3_8b_front", "asqa")["f1_gr"]["reason"].startswith("not what this job does")
        exact = of(lines, "always_refuse", "eli5")["trust_score"]
        assert (exact["status"], exact["printed"], exact["inside"]) == ("exact", 14.74, True)
        assert exact["note"] == "printed of llama_3_8b_icl"

        assert "| llama_3_8b_icl | ours | 50.00 |" in printed
        assert "| | printed | 1.48 | 3.01 | 28.58 | 86.50 | 39.36 |" in printed
        assert "+48.52 ✗" in printed
        assert "-11.50 ✓" in printed
        assert "Rows run: 1, not run: 9." in printed
        assert "Judge: lexical" in printed


@pytest.mark.slow
@pytest.mark.usefixtures("ray_session", "nltk_data")
def test_numbers_of_a_row_that_failed_are_withheld(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(request: Request) -> Reply:
        return Reply({"error": {"message": "no"}}, 400) if ASKED in request.prompt else said(request)

    words = ["table=trust_score_2", "rows=[llama_3_8b_icl]", "datasets=[asqa]", f"data.asqa={root}/asqa.json"]
    with FakeEndpoint(fails) as fake:
        words += ["engine=openai", f"engine.base_url={fake.url}", "models.llama_3_8b=m"]
        with pytest.raises(TooManyFailed, match=r"too many rows failed in paper-llama_3_8b_icl-asqa"):
            run(root, *words)
    assert "run, but withheld: 32 of 32 rows failed" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("ray_session", "nltk_data", "smollm2")
def test_the_whole_path_with_a_real_model(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads((root / "asqa.json").read_text())[:4]
    (root / "four.json").write_text(json.dumps(rows))
    words = ["table=demo", "datasets=[demo_em]", f"data.demo_em={root}/four.json"]
    lines = run(root, *words)
    found = of(lines, "smollm2_short", "demo_em")
    assert {line["status"] for line in found.values()} == {"run"}
    assert all(0 <= line["ours"] <= 100 and line["printed"] is None for line in found.values())
    parts = [found[column]["ours"] for column in ("f1_ac", "f1_gr", "f1_gc")]
    assert found["trust_score"]["ours"] == pytest.approx(sum(parts) / 3)
    assert "| | printed: none |" in capsys.readouterr().out
    began = time.monotonic()
    assert run(root, *words) == lines
    assert time.monotonic() - began < 30, "no engine was started again"
