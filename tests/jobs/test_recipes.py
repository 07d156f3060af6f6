"""The commands of the README, run as they stand there; only the judge is word overlap, which needs no model."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Doc = dict[str, Any]


def recipe(repo: Path, heading: str) -> list[str]:
    """The commands below a heading of the README."""
    text = (repo / "README.md").read_text()
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"^```\w*\n(.*?)^```$", section, re.S | re.M)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("python -m ")]


def run(command: str, folder: Path, repo: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = command.replace("judge/entails=t5", "judge/entails=lexical")
    words = ["bash", "-c", f"{sys.executable} {command.removeprefix('python ')} {' '.join(more)}"]
    env = os.environ | {"PYTHONPATH": str(repo)}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)


def test_own_outputs_in_the_readmes_form_and_as_a_saved_data_set(tmp_path: Path, repo: Path) -> None:
    import datasets

    heading = "Score your own outputs"
    first, second = recipe(repo, heading)
    section = (repo / "README.md").read_text().split(f"## {heading}")[1]
    row = json.loads(section.split("```json\n")[1].split("```")[0])
    (tmp_path / "answers.json").write_text(json.dumps([row]))
    datasets.disable_progress_bars()
    datasets.DatasetDict({"test": datasets.Dataset.from_list([row])}).save_to_disk(str(tmp_path / "saved"))
    found = []
    for command, name in ((first, "mine"), (second, "saved")):
        done = run(command, tmp_path, repo)
        assert done.returncode == 0, done.stderr
        found.append(json.loads((tmp_path / "runs" / name / "summary.json").read_text()))
    assert [one.pop("dataset") for one in found] == ["answers", "saved"]
    assert found[0] == found[1]
    assert found[0]["calib_str_em_f1"] == 100


def support(wrong: int = 0) -> list[dict[str, Any]]:
    """Rows of a support desk under its own column names: every fourth question has no answer in the documents, and of the
    first `wrong` rows the answers cite the wrong document."""
    made = []
    for n in range(40):
        held = n % 4 > 0
        answer = f"The router R{n} has {n} ports [{2 if n < wrong else 1}]."
        contexts = [{"body": f"The router R{n} has {n} ports."}, {"body": "Our office is in Oslo."}]
        made.append(
            {
                "id": n,
                "query": f"How many ports has the router R{n}?",
                "gold": json.dumps([[f"R{n} has {n} ports"]]),
                "contexts": json.dumps(
                    [doc | {"answers_found": [int(held and i == 0)]} for i, doc in enumerate(contexts)]
                ),
                "output": answer if held else "I apologize, but I couldn't find an answer to your question.",
                "product": ["router", "switch", ""][n % 3],
            }
        )
    return made


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_slices_and_ci(tmp_path: Path, repo: Path) -> None:
    (evaluate,) = recipe(repo, "By slice")
    (compare,) = recipe(repo, "In your CI")
    write_csv(tmp_path / "support.csv", support())
    done = run(evaluate.replace("run=new", "run=main"), tmp_path, repo)
    assert done.returncode == 0, done.stderr
    write_csv(tmp_path / "support.csv", support(wrong=9))
    done = run(evaluate, tmp_path, repo)
    assert done.returncode == 0, done.stderr
    assert "slices.csv" in done.stdout

    read = [*csv.DictReader((tmp_path / "runs" / "new" / "slices.csv").read_text().splitlines())]
    assert [(row["slice"], row["slice_value"], row["n"]) for row in read] == [
        ("language", "en", "40"),
        ("product", "router", "14"),
        ("product", "switch", "13"),
        ("product", "(none)", "13"),
    ]
    summary = json.loads((tmp_path / "runs" / "new" / "summary.json").read_text())
    assert float(read[0]["answered_citation_f1"]) == summary["answered_citation_f1"]
    page = (tmp_path / "runs" / "new" / "report.html").read_text()
    assert "By <bdi>product</bdi>" in page
    assert "By <bdi>language</bdi>" not in page, "one language only"

    done = run(compare, tmp_path, repo)
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stderr.startswith("error: new=new is worse than allowed: trust_score of support: -")
    assert "**Regression**" in done.stdout
    assert (tmp_path / "runs" / "new" / "compare" / "main.md").read_text() in done.stdout
    assert run(compare.replace("new=new", "new=main"), tmp_path, repo).returncode == 0
    limits = "'fail_below={refuse_f1: -2, answered_citation_f1: -1}'"
    assert limits in (repo / "README.md").read_text()
    done = run(compare.replace("fail_below=-1", limits), tmp_path, repo)
    assert done.returncode == 4
    assert "answered_citation_f1 of support: -" in done.stderr
    done = run(compare, tmp_path, repo, "by=[colour]")
    assert done.returncode == 2
    assert "slices=[language,product,colour]" in done.stderr


def test_without_gold_answers(tmp_path: Path, repo: Path) -> None:
    (evaluate,) = recipe(repo, "Without gold answers")
    refusal = "I apologize, but I couldn't find an answer to your question."
    with open(tmp_path / "tickets.jsonl", "w") as file:
        for n in range(24):
            docs = [{"text": f"The ports of router R{n} are {n}."}, {"text": "Our office is in Oslo."}]
            about = f"The ports of router R{n}?" if n % 3 else f"Who sold the switch S{n}?"
            said = refusal if n % 3 == 0 else f"The ports of router R{n} are {n} [1]." if n > 4 else "Nobody knows [1]."
            file.write(json.dumps({"question": about, "docs": docs, "output": said}) + "\n")
    done = run(evaluate, tmp_path, repo)
    assert done.returncode == 0, done.stderr
    assert (
        "not given: F1_GR: of the metric trust_score, which was not asked for; F1_AC: needs gold answers" in done.stdout
    )
    summary = json.loads((tmp_path / "runs" / "tickets" / "summary.json").read_text())
    assert (summary["judged_answerable_num"], summary["judged_macro_f1"]) == (16, 100)
    assert summary["groundedness"] == pytest.approx(100 * 13 / 16)
    assert summary["groundedness_low"] < summary["groundedness"] < summary["groundedness_high"]
    assert "Trust-Score: needs gold answers" in summary["missing"]
    page = (tmp_path / "runs" / "tickets" / "report.html").read_text()
    assert "Not given for <bdi>tickets</bdi>." in page
    assert "The judge finds the answer in [1], so it should be answered" in page
    assert "by judged answerability" in page


def test_published_tables_without_data(tmp_path: Path, repo: Path) -> None:
    command = recipe(repo, "Published tables")[0]
    done = run(command, tmp_path, repo)
    assert done.returncode == 0, done.stderr
    assert (
        "| llama_3_8b_dpo | 56.43 | 53.94 | 65.49 | 88.26 | 69.23 | no data; no published checkpoint is known"
        in done.stdout
    )
    assert "| always_refuse | ours, exact | 0.00 | 0.00 | 44.23 | 0.00 | 14.74 |" in done.stdout
    written = tmp_path / "runs" / "paper" / "reproduce" / "trust_score_2.md"
    assert written.read_text() in done.stdout


def test_agreement_with_people(tmp_path: Path, repo: Path) -> None:
    evaluate, agree, correct = recipe(repo, "How far a metric agrees with people")
    rows = []
    for n in range(12):
        for k, system in enumerate(("human", "good", "bad")):
            said = f"I have seen it {n} times, in the {'summer' if k < 2 else 'hall'} of that {'year' if k < 1 else 'week'}."
            reference = f"I have seen it {n} times, in the summer of that year."
            scores = {"naturalness": 3 - k, "engagingness": (n + k) % 3}
            known = {"source": f"talk {n}", "context": "fact", "system_id": system, "reference": reference}
            rows.append(known | {"system_output": said, "scores": scores})
    (tmp_path / "topical_chat.json").write_text(json.dumps(rows))
    for command in (evaluate, agree):
        done = run(command, tmp_path, repo)
        assert done.returncode == 0, done.stderr
    with open(tmp_path / "runs" / "agreement" / "agreement.csv") as file:
        found = {(row["dimension"], row["metric"], row["level"], row["statistic"]): row for row in csv.DictReader(file)}
    assert float(found["naturalness", "overlap.bleu", "summary", "spearman"]["value"]) == 1
    assert abs(float(found["engagingness", "overlap.bleu", "summary", "spearman"]["value"])) < 1
    scores = tmp_path / "runs" / "mine" / "scores"
    ids = sorted({row["sample_id"] for row in pq.read_table(scores).to_pylist()})
    labels = "".join(
        f"{sample},{system},{0.5 + n / 40}\n" for n, sample in enumerate(ids) for system in ("human", "good")
    )
    (tmp_path / "labels.csv").write_text(f"sample_id,model,bleu\n{labels}")
    done = run(correct, tmp_path, repo)
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "runs" / "corrected" / "corrected.csv") as file:
        rated = {row["model"]: row for row in csv.DictReader(file)}
    assert [rated[model]["labels"] for model in ("human", "good", "bad")] == ["12", "12", "0"]
    assert rated["bad"]["status"] == "na"
