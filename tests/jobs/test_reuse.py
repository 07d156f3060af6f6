"""Judged pairs are kept and reused: over runs, options, modes and models, by several jobs at once, past broken files."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.test_evaluate import evaluate, rows
from tests.kills import job
from trust.runs import Manifest, Run
from trust.storage import Storage, join
from trust.verdicts import VerdictStore

ROWS = 40


def items(model: str = "one", every: int = ROWS) -> list[dict[str, Any]]:
    """Rows with three statements each, of which each `every`-th row has other ones; the third cites three documents."""
    made = []
    for number in range(ROWS):
        other = f" as {model} says" if number % every == every - 1 else ""
        docs = [
            {"title": f"T{number}-{n}", "text": f"Thing {number} is number {n} here.", "answers_found": [int(n == 0)]}
            for n in range(3)
        ]
        output = (
            f"Thing {number} is number 0 here{other} [1]. It is number 1 of {number} [2][1]. "
            f"All of {number} is here [1][2][3]."
        )
        made.append({"id": f"{number:03d}", "question": "What is it?", "language": "en", "model": model})
        made[-1] |= {"answers": [[f"number {number}"]], "docs": docs, "output": output}
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(items()))
    return path


def words(path: Path, run: str, *more: str) -> list[str]:
    return [f"data.path={path}", "data.name=d", "task=em", "judge/entails=lexical", f"run={run}", *more]


def pairs(run: Run) -> set[str]:
    return {row["hash"] for row in rows(run, "verdicts")}


def asks(manifest: Manifest) -> dict[str, int]:
    return {key: int(manifest.totals[f"asks_{key}"]) for key in ("asked", "repeated", "reused", "failed")}


def store(root: Path, run: Run) -> VerdictStore:
    (row, *_) = rows(run, "verdicts")
    return VerdictStore(Storage(), str(root), row["judge"])


@pytest.mark.usefixtures("ray_session", "nltk_data")
def test_another_run_option_or_mode_asks_only_what_was_never_asked(data: Path, tmp_path: Path) -> None:
    run, manifest, (first,) = evaluate(tmp_path, *words(data, "a"))
    known = pairs(run)
    counts = asks(manifest)
    assert counts["asked"] == len(known) >= 3 * ROWS
    assert counts["reused"] == counts["failed"] == 0
    assert sum(counts.values()) == sum(len(score["asks"]) for score in rows(run, "scores"))

    run, manifest, (again,) = evaluate(tmp_path, *words(data, "b", "unit_rows=3"))
    assert asks(manifest) == counts | {"asked": 0, "reused": len(known)}
    assert {key: value for key, value in again.items() if key != "run"} == first
    assert pairs(run) == known, "the run's own table holds what it rests on, asked now or not"

    _, manifest, _ = evaluate(tmp_path, *words(data, "c", "+metrics.trust_score.refusal_phrases=['no comment']"))
    assert asks(manifest)["asked"] == 0

    # At most two citations: of the statement with three, two are asked about together, which nobody did before.
    run, manifest, _ = evaluate(tmp_path, *words(data, "d", "metrics.trust_score.at_most_citations=2"))
    assert asks(manifest)["asked"] == len(pairs(run) - known) > 0
    known |= pairs(run)

    run, manifest, _ = evaluate(tmp_path, *words(data, "e", "compat=upstream"))
    assert asks(manifest)["asked"] == len(pairs(run) - known)
    assert asks(manifest)["reused"] == len(pairs(run) & known) > 2 * ROWS


@pytest.mark.usefixtures("ray_session")
def test_of_another_models_responses_only_new_sentences_are_asked(data: Path, tmp_path: Path) -> None:
    run, _, _ = evaluate(tmp_path, *words(data, "a"))
    known = pairs(run)
    other = tmp_path / "other.json"
    other.write_text(json.dumps(items("two", every=4)))
    run, manifest, _ = evaluate(tmp_path, *words(other, "b", "unit_rows=7"))
    new = pairs(run) - known
    assert asks(manifest)["asked"] == len(new)
    assert 0 < len(new) <= ROWS // 4 * 2
    assert {row["sample_id"] for row in rows(run, "verdicts") if row["hash"] in new} == {
        f"d:{number:03d}" for number in range(3, ROWS, 4)
    }


@pytest.mark.usefixtures("ray_session")
def test_another_judge_shares_nothing(data: Path, tmp_path: Path) -> None:
    _, first, _ = evaluate(tmp_path, *words(data, "a"))
    _, second, _ = evaluate(tmp_path, *words(data, "b", "judge.entails.threshold=0.7"))
    assert second.totals["asks_asked"] > 0
    assert second.totals["asks_reused"] == 0
    assert first.identity["judge"] != second.identity["judge"]


@pytest.mark.usefixtures("ray_session")
def test_two_jobs_at_once_leave_a_whole_store(data: Path, tmp_path: Path, repo: Path) -> None:
    common = [f"storage.root={tmp_path}", "report=false", "replicates=200", "unit_rows=1"]
    both = [
        subprocess.Popen(job("evaluate", *words(data, name), *common), cwd=repo, stdout=subprocess.DEVNULL)
        for name in ("a", "b")
    ]
    assert [started.wait() for started in both] == [0, 0]
    run, manifest, _ = evaluate(tmp_path, *words(data, "c"))
    assert manifest.totals["asks_asked"] == 0

    kept = store(tmp_path, run)
    wanted = {(row["sample_id"], row["hash"]): row["answer"] for row in rows(run, "verdicts")}
    found = {(row["sample_id"], row["hash"]): row["answer"] for row in kept.load(f"d:{n:03d}" for n in range(ROWS))}
    assert found == wanted
    assert not kept.unreadable


@pytest.mark.usefixtures("ray_session")
def test_a_broken_file_is_named_and_its_pairs_asked_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trust import evaluate as evaluation

    run, _, (first,) = evaluate(tmp_path, *words(data, "a", "unit_rows=5"))
    kept = store(tmp_path, run)
    names = kept._storage.list_names(kept._folder)
    broken = join(kept._folder, names[2])
    Path(broken).write_bytes(Path(broken).read_bytes()[:-50])

    warned: list[str] = []
    monkeypatch.setattr(evaluation.log, "warning", lambda message, *values: warned.append(message % values))
    run, manifest, (second,) = evaluate(tmp_path, *words(data, "b"))
    gone = {f"d:{number:03d}" for number in range(10, 15)}
    assert asks(manifest)["asked"] == len([row for row in rows(run, "verdicts") if row["sample_id"] in gone]) > 0
    assert second == first
    assert len(warned) == 1
    assert broken in warned[0]
    assert "delete it" in warned[0]

    _, manifest, _ = evaluate(tmp_path, *words(data, "c"))
    assert asks(manifest)["asked"] == 0
