"""The same data on one actor and on four, with files renamed, reordered and split otherwise: the same results."""

import gzip
import json
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rapidfuzz.distance import Levenshtein

from tests.jobs.test_evaluate import TASKS, rows
from tests.kills import finish, job
from trust import demo
from trust.config import load
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.report import write_report
from trust.results import write
from trust.runs import Manifest, Run
from trust.storage import Storage

FOUR = ("cluster.min_actors=4", "cluster.max_actors=4", "cluster.actor_cpus=0.5", "unit_rows=7")


class Result(NamedTuple):
    run: Run
    manifest: Manifest
    summaries: list[dict[str, Any]]


def one_file(folder: Path, items: list[Any]) -> Path:
    """All rows in one JSON file, in their order."""
    folder.mkdir()
    (folder / "all.json").write_text(json.dumps({"data": items}))
    return folder / "all.json"


def five_files(folder: Path, items: list[Any]) -> Path:
    """The same rows in another order, in five files of unequal sizes and other names and forms."""
    folder.mkdir()
    mixed = items[:]
    random.Random(5).shuffle(mixed)
    cuts = [0, 3, 10, len(mixed) // 2, len(mixed) - 5, len(mixed)]
    for name, (start, end) in zip("zmaxb", pairwise(cuts), strict=True):
        lines = "".join(json.dumps(item) + "\n" for item in mixed[start:end])
        if name == "a":
            (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        else:
            (folder / f"{name}.jsonl").write_text(lines)
    return folder


def evaluate(root: Path, path: Path, *words: str) -> Result:
    common = [f"storage.root={root}", f"data.path={path}", "data.name=d", "replicates=200", "max_failed=1"]
    config = load("evaluate", EvaluateConfig, [*common, *words])
    manifest, run = run_evaluate(config), Run.of(config)
    summaries = write(run, manifest, config).summaries
    write_report(run)
    return Result(run, manifest, summaries)


def content(result: Result, table: str, *but: str) -> list[str]:
    """The rows of a table, whatever their order, without the columns `but`."""
    found = rows(result.run, table)
    return sorted(
        json.dumps({k: v for k, v in row.items() if k not in but}, ensure_ascii=False, sort_keys=True) for row in found
    )


def reported(result: Result) -> Any:
    """The rows that the report shows, in its order."""
    page = (Path(result.run.root) / "report.html").read_text()
    found = re.search(r'<script type="application/json" id="rows">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def sliced(result: Result) -> bytes:
    """The numbers by slice, as people get them."""
    return (Path(result.run.root) / "slices.csv").read_bytes()


def same(first: Result, second: Result) -> None:
    """Every table, number and reported row, to the last digit; only where a row stood may differ."""
    for table in ("responses", "scores", "verdicts"):
        assert content(first, table) == content(second, table), table
    places = ("file", "line", "row")
    assert content(first, "failed", *places) == content(second, "failed", *places)
    assert first.summaries == second.summaries
    assert sliced(first) == sliced(second)
    assert first.manifest.counts == second.manifest.counts
    assert reported(first) == reported(second)


def items(shared: Path) -> list[Any]:
    """A few hundred rows of all kinds: real ones of each task, other languages, several draws and models, repeated ids,
    and rows that cannot be used."""
    made: list[Any] = []
    for name, task in TASKS.items():
        golden = json.loads((shared / "data/trust_golden" / name / "input.json").read_text())["data"]
        made += [item | {"task": task, "language": "en", "dataset": name} for item in golden]
        made += [item | {"task": task, "language": "en", "dataset": name, "model": "m2"} for item in golden[::5]]
    for task in demo.TASKS:
        for line in demo.path(task).read_text().splitlines():
            item = json.loads(line)
            texts = [doc["text"] for doc in item["docs"]]
            draws = [f"{texts[0]} [1] {texts[1]} [1][2]", f"{item['answers'][0][0]} [2][3].", "I don't know."]
            made.append(item | {"output": draws})
            del made[-1]["id"]  # some ids are made from content
    made += [made[3], made[3] | {"output": "Something else [1]."}, made[60], made[1] | {"question": "Another one?"}]
    made += [made[0] | {"id": "bad", "docs": "none"}, made[0] | {"id": "odd", "output": None}, 7, {"question": "?"}]
    return made


@pytest.mark.usefixtures("ray_session")
def test_lexical_judge_and_replayed_asks(shared: Path, tmp_path: Path) -> None:
    data = items(shared)
    first, second = one_file(tmp_path / "one", data), five_files(tmp_path / "five", data)
    words = ("judge/entails=lexical", "judge.entails.threshold=0.6", "slices=[language,kind]")
    one = evaluate(tmp_path / "runs", first, *words, "run=one")
    assert one.manifest.totals["asks_asked"] > 300
    assert len(rows(one.run, "failed")) >= 7
    assert sliced(one).count(b"\n") > 20

    four = evaluate(tmp_path / "other", second, *words, *FOUR, "run=four")
    assert four.manifest.units > 50
    same(one, four)

    replayed = evaluate(tmp_path / "runs", second, *words, *FOUR, "run=replayed")
    assert replayed.manifest.totals["asks_asked"] == 0
    same(one, replayed)


@pytest.mark.usefixtures("ray_session")
def test_the_real_judge(shared: Path, tmp_path: Path) -> None:
    data = json.loads((shared / "data/trust_golden/asqa/input.json").read_text())["data"][:24]
    words = ("task=em", f"judge.entails.model={shared}/models/tiny_true_nli")
    one = evaluate(tmp_path / "runs", one_file(tmp_path / "one", data), *words, "run=one")
    four = evaluate(tmp_path / "other", five_files(tmp_path / "five", data), *words, *FOUR, "run=four")
    assert one.manifest.totals["asks_asked"] > 40

    assert content(one, "responses") == content(four, "responses")
    assert content(one, "scores", "trace") == content(four, "scores", "trace")
    assert content(one, "verdicts", "score") == content(four, "verdicts", "score")
    assert one.summaries == four.summaries
    raw = [{row["hash"]: row["score"] for row in rows(result.run, "verdicts")} for result in (one, four)]
    assert raw[0] == pytest.approx(raw[1], abs=0.01)


def differing(first: dict[Any, str], second: dict[Any, str]) -> tuple[float, float]:
    """Share of responses whose text differs, and how different those are on average (0 to 1, edits by length)."""
    assert first.keys() == second.keys()
    pairs = [(text, second[key]) for key, text in first.items() if text != second[key]]
    distance = [Levenshtein.normalized_distance(*pair) for pair in pairs]
    return len(pairs) / len(first), sum(distance) / len(distance) if distance else 0.0


def test_how_much_text_differs() -> None:
    assert differing({1: "abcd", 2: "x"}, {1: "abcd", 2: "x"}) == (0.0, 0.0)
    assert differing({1: "abcd", 2: "x"}, {1: "abce", 2: "x"}) == (0.5, 0.25)


@pytest.mark.slow
def test_generated_responses(smollm2: str, tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = [json.loads(line) for line in demo.path("em").read_text().splitlines()]
    data.append(data[0] | {"id": "long", "docs": [{"title": "Long", "text": "word " * 3000}]})
    made: list[dict[Any, dict[str, Any]]] = []
    asked: list[list[dict[str, Any]]] = []
    layouts = [(one_file(tmp_path / "one", data), ()), (five_files(tmp_path / "five", data), ("unit_rows=3",))]
    for number, (path, more) in enumerate(layouts):
        log = tmp_path / f"log{number}"
        log.mkdir()
        words = [f"storage.root={tmp_path}", f"run=r{number}", "max_failed=1", *more]
        finish(job("prepare", f"data.path={path}", "data.name=d", "task=em", *words), repo, {})
        model = ["model=smollm2", "engine=cpu", "model.max_model_len=2048"]
        sampling = ["prompt.shots=0", "sampling.max_tokens=40", "sampling.temperature=0.5", "sampling.draws=2"]
        finish(job("respond", *model, *sampling, *words), repo, {"TRUST_CALL_LOG": str(log)})
        found = rows(Run(Storage(), str(tmp_path), f"r{number}"), "responses")
        made.append({(row["sample_id"], row["draw"]): row for row in found})
        lines = [line for file in log.glob("*.jsonl") for line in file.read_text().splitlines()]
        asked.append(sorted((json.loads(line) for line in lines), key=lambda line: line["hash"]))

    assert asked[0] == asked[1], "each prompt with its sampling and seed"
    assert len(made[0]) == 2 * len(data)
    sampled = ("output", "output_tokens", "finish_reason")
    kept = [{key: {k: v for k, v in row.items() if k not in sampled} for key, row in part.items()} for part in made]
    assert kept[0] == kept[1]
    assert {row["reason"] for row in made[0].values()} == {None, "prompt_too_long"}
    texts = [{key: row["output"] or "" for key, row in part.items()} for part in made]
    share, distance = differing(texts[0], texts[1])
    with capsys.disabled():
        print(f"\nsampled text: {share:.0%} of {len(texts[0])} responses differ, by {distance:.0%} of their length")
