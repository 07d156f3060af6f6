"""Every job killed with -9 at about half and started again with the same words: the same tables as an unbroken run, and at
most a tenth of what was finished is done again."""

import json
from pathlib import Path

import pytest

from jobs.evaluate import evaluate
from jobs.prepare import prepare
from tests.kills import answered, finish, job, kill_when, receipts, table
from trust.config import load
from trust.evaluate import EvaluateConfig
from trust.prepare.job import PrepareConfig
from trust.runs import Run
from trust.storage import Storage

SIZES = [(400, 40), pytest.param(2000, 200, marks=pytest.mark.slow)]  # rows, units


def items(rows: int) -> list[dict]:
    made = []
    for number in range(rows):
        docs = [
            {"title": f"T{number}", "text": f"Fact {number} is about item {number}.", "answers_found": [1]},
            {"title": "Other", "text": "Nothing of that kind.", "answers_found": [0]},
        ]
        answer = {"answers": [[f"item {number}"]], "docs": docs, "output": f"Fact {number} is about item {number} [1]."}
        made.append({"id": f"{number:04d}", "question": f"What is fact {number}?", "language": "en"} | answer)
    return made


def write_items(path: Path, rows: int) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in items(rows)))
    return path


class Runs:
    """A killed and an unbroken run below one folder, each with its call log."""

    def __init__(self, root: Path) -> None:
        self.root, self.storage = root, Storage()
        for name in ("killed", "whole"):
            self.log(name).mkdir(parents=True)

    def log(self, name: str) -> Path:
        return self.root / f"log_{name}"

    def env(self, name: str) -> dict[str, str]:
        return {"TRUST_CALL_LOG": str(self.log(name))}

    def run(self, name: str) -> Run:
        return Run(self.storage, str(self.root / "runs"), name)

    def words(self, name: str, *more: str) -> list[str]:
        return [f"storage.root={self.root / 'runs'}", f"run={name}", *more]

    def at_half(self, name: str, units: int) -> bool:
        return len(receipts(self.storage, self.run("killed"), name)) >= units // 2


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(("rows", "units"), SIZES)
def test_prepare(runs: Runs, tmp_path: Path, repo: Path, rows: int, units: int) -> None:
    data = write_items(tmp_path / "data.jsonl", rows)
    more = (f"data.path={data}", "data.name=d", "task=em", "data.outputs=require", f"unit_rows={rows // units}")
    words = job("prepare", *runs.words("killed", *more))
    kill_when(words, repo, {}, lambda: runs.at_half("prepare", units), 120)
    folder = next(Path(runs.run("killed").path("_units", "prepare")).iterdir())
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    assert units // 2 <= len(kept) < units
    assert not Path(runs.run("killed").path("manifests", "prepare.json")).exists()
    assert not list(Path(runs.run("killed").path("responses")).glob("*.parquet")), "a half-made table"
    logged = finish(words, repo, {})
    assert "units are done already" in logged
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "a finished unit was done again"
    prepare(load("prepare", PrepareConfig, runs.words("whole", *more)))
    resumed, unbroken = (table(runs.run(name), "responses") for name in ("killed", "whole"))
    assert resumed.num_rows == rows
    assert resumed.equals(unbroken)
    assert runs.run("killed").manifest("prepare").counts == {"ok": rows}


def check_evaluate(runs: Runs, repo: Path, rows: int, units: int, *judge: str) -> None:
    data = write_items(runs.root / "data.jsonl", rows)
    more = (f"data.path={data}", "data.name=d", "task=em", "replicates=100", f"unit_rows={rows // units}", *judge)
    words = job("evaluate", *runs.words("killed", *more))
    kill_when(words, repo, runs.env("killed"), lambda: runs.at_half("evaluate", units), 550)
    before = answered(runs.log("killed"))
    assert not Path(runs.run("killed").path("manifests", "evaluate.json")).exists()
    assert not list(Path(runs.run("killed").path("scores")).glob("*.parquet")), "a half-made table"
    finish(words, repo, runs.env("killed"))
    others = str(runs.root / "others")  # where not even the killed run's verdicts are found
    evaluate(load("evaluate", EvaluateConfig, [f"storage.root={others}", "run=whole", *more]))
    unbroken = Run(runs.storage, others, "whole")

    for name in ("responses", "scores", "verdicts"):
        first, second = table(runs.run("killed"), name), table(unbroken, name)
        same = [column for column in first.column_names if column not in ("trace", "score")]  # these hold raw scores
        assert first.select(same).equals(second.select(same)), name
    assert table(runs.run("killed"), "scores").num_rows == rows
    summaries = [json.loads(Path(run.path("summary.json")).read_text()) for run in (runs.run("killed"), unbroken)]
    assert summaries[0] == summaries[1]
    assert Path(runs.run("killed").path("report.html")).exists()

    asked, once = answered(runs.log("killed")), table(unbroken, "verdicts")["hash"].to_pylist()
    assert sorted(set(asked)) == sorted(once), "not the same asks"
    repeated = len(asked) - len(set(asked))
    print(f"evaluate: {len(before)} of {len(once)} asks answered when killed, {repeated} of them again")
    assert 0.4 * len(once) < len(before) < 0.8 * len(once)
    assert repeated <= 0.1 * len(before)
    resumed, whole = (run.manifest("evaluate").totals for run in (runs.run("killed"), unbroken))
    # A verdict that was kept before its unit's receipt is reused, all others are asked, in either try.
    assert resumed["asks_asked"] + resumed["asks_reused"] == whole["asks_asked"]
    assert resumed["asks_repeated"] == whole["asks_repeated"]


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize(("rows", "units"), SIZES)
def test_evaluate(runs: Runs, repo: Path, rows: int, units: int) -> None:
    check_evaluate(runs, repo, rows, units, "judge/entails=lexical")


@pytest.mark.slow
@pytest.mark.usefixtures("ray_session")
@pytest.mark.timeout(1500)
def test_evaluate_with_a_model(runs: Runs, repo: Path, shared: Path) -> None:
    check_evaluate(runs, repo, 2000, 200, f"judge.entails.model={shared / 'models' / 'tiny_true_nli'}")


@pytest.mark.slow
@pytest.mark.usefixtures("smollm2")
@pytest.mark.timeout(1500)
def test_respond(runs: Runs, tmp_path: Path, repo: Path) -> None:
    rows = 200
    data = write_items(tmp_path / "data.jsonl", rows)
    prompt = {
        "instruction": "Answer.",
        "demo_sep": "\n",
        "demo_prompt": "{INST} {Q}\n{D}{A}",
        "doc_prompt": "[{ID}] {P}\n",
    }
    (tmp_path / "prompt.json").write_text(json.dumps(prompt))
    more = [
        "model=smollm2",
        "prompt=file",
        f"prompt.file={tmp_path / 'prompt.json'}",
        "prompt.shots=0",
        "prompt.docs=1",
    ]
    more += ["sampling.max_tokens=8", "sampling.temperature=0", "model.max_model_len=512"]
    for name in ("killed", "whole"):
        finish(job("prepare", *runs.words(name, f"data.path={data}", "data.name=d", "task=em")), repo, {})
    words = job("respond", *runs.words("killed", *more))
    kill_when(words, repo, runs.env("killed"), lambda: runs.at_half("respond", rows), 550)
    before = answered(runs.log("killed"))
    finish(words, repo, runs.env("killed"))
    finish(job("respond", *runs.words("whole", *more)), repo, runs.env("whole"))

    resumed, unbroken = (table(runs.run(name), "responses") for name in ("killed", "whole"))
    columns = ["sample_id", "model", "prompt", "draw", "docs", "status", "prompt_tokens"]
    assert resumed.num_rows == rows
    assert resumed.select(columns).equals(unbroken.select(columns))
    asked = answered(runs.log("killed"))
    repeated = len(asked) - len(set(asked))
    outputs = zip(resumed["output"].to_pylist(), unbroken["output"].to_pylist(), strict=True)
    print(
        f"respond: {len(before)} answered when killed, {repeated} again; {sum(a != b for a, b in outputs)} texts differ"
    )
    assert sorted(set(asked)) == sorted(answered(runs.log("whole")))
    assert repeated <= 0.1 * len(before)
    totals = runs.run("killed").manifest("respond").totals
    assert totals["prompt_tokens"] == runs.run("whole").manifest("respond").totals["prompt_tokens"]
