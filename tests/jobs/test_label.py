"""Labels over the whole job on a real local Ray."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from jobs.label import label
from jobs.prepare import prepare
from tests.fake_endpoint import FakeEndpoint, Reply, answer
from tests.jobs.test_evaluate import rows
from trust.align.label_job import LabelConfig
from trust.config import load
from trust.prepare.job import PrepareConfig
from trust.runs import Manifest, Run

ROWS, DOCS, ANSWERS = 40, 20, 5


def items() -> list[dict[str, Any]]:
    """Questions about towns, each with documents of which some hold an answer, some of these with the question's words."""
    draw = random.Random(1)
    made = []
    for number in range(ROWS):
        towns = [f"Town{number}x{place}" for place in range(ANSWERS)]
        docs = []
        for place in range(DOCS):
            held = [town for town in towns if draw.random() < 0.2]
            text = f"Note {number} {place}: {' and '.join(held)} {'lie on the coast' if place % 2 else 'are old'}."
            docs.append({"id": f"{number}-{place}", "title": "Towns", "text": text, "score": float(DOCS - place)})
        question = "Which towns lie on the coast?"
        made.append({"id": f"{number:03d}", "question": question, "answers": [[town] for town in towns], "docs": docs})
    return made


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, ray_session: None) -> Path:
    """A run `raw` with samples."""
    folder = tmp_path_factory.mktemp("runs")
    prepared(folder, "raw", items(), "em")
    return folder


def prepared(root: Path, run: str, data: list[dict[str, Any]], task: str) -> None:
    root.mkdir(exist_ok=True)
    path = root / f"{run}.json"
    path.write_text(json.dumps(data))
    words = [f"storage.root={root}", f"run={run}", f"data.path={path}", "data.language=en", f"task={task}"]
    prepare(load("prepare", PrepareConfig, words))


def labelled(root: Path, name: str, *words: str, source: str = "raw") -> tuple[Run, Manifest]:
    common = [f"storage.root={root}", f"from_run={source}", f"run={name}", "judge/entails=lexical", "max_failed=1"]
    config = load("label", LabelConfig, [*common, *words])
    label(config)
    run = Run.of(config)
    manifest = run.manifest("label")
    assert manifest
    return run, manifest


THREE = ("cluster.min_actors=3", "cluster.max_actors=3", "cluster.actor_cpus=0.5", "unit_rows=3")


def test_pairs_are_accounted_for_and_asked_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, manifest = labelled(root, "one", "judge.entails.threshold=0.7")
    totals = manifest.totals
    assert manifest.counts == {"ok": ROWS}
    assert totals["pairs"] == ROWS * DOCS * ANSWERS
    asks = sum(totals[f"asks_{key}"] for key in ("asked", "repeated", "reused"))
    assert asks == totals["pairs"] - totals["pairs_skipped_by_string"]
    assert totals["pairs_skipped_by_string"] > 0.7 * totals["pairs"]
    assert (totals["asks_reused"], totals["asks_truncated"], totals["asks_failed"]) == (0, 0, 0)
    said = capsys.readouterr().out
    assert f"{totals['pairs']:.0f} pairs of document and answer" in said

    wanted = {item["id"]: item for item in items()}
    found = {row["sample_id"].removeprefix("raw:"): row for row in rows(run, "samples")}
    assert len(found) == ROWS
    supported = 0
    for name, row in found.items():
        assert [doc["doc_id"] for doc in row["docs"]] == [doc["id"] for doc in wanted[name]["docs"]]
        for doc in row["docs"]:
            # The words decide, and the judge: only the documents about the coast have enough of the question's words.
            expected = [int(town in doc["text"] and "coast" in doc["text"]) for (town,) in wanted[name]["answers"]]
            assert doc["answers_found"] == expected
            assert doc["rec_score"] == pytest.approx(100 * sum(expected) / ANSWERS)
            supported += sum(expected)
    assert supported == totals["pairs_supported"] > 0

    oracle = {row["sample_id"].removeprefix("raw:"): row for row in rows(run, "oracle")}
    for name, row in oracle.items():
        assert len(row["docs"]) == 5
        all_found, held = (
            {place for doc in docs for place, one in enumerate(doc["answers_found"]) if one}
            for docs in (found[name]["docs"], row["docs"])
        )
        assert held == all_found, "five documents hold whatever of five answers there is"
    card = json.loads(Path(run.path("cards", "label.json")).read_text())
    assert (card["rows_in"], card["ok"], card["tables"]) == (ROWS, ROWS, {"oracle": ROWS, "samples": ROWS})
    assert card["numbers"]["pairs_skipped_by_string"] == totals["pairs_skipped_by_string"]

    # What was asked is not asked again, and three actors that know nothing of it make the same tables.
    _, again = labelled(root, "again", "judge.entails.threshold=0.7")
    assert (again.totals["asks_asked"], again.totals["asks_reused"]) == (0, totals["asks_asked"])
    prepared(root / "elsewhere", "raw", items(), "em")
    three, anew = labelled(root / "elsewhere", "three", "judge.entails.threshold=0.7", *THREE)
    assert anew.totals["asks_asked"] == totals["asks_asked"]
    for table in ("samples", "oracle"):
        assert rows(three, table) == rows(run, table)


def test_claims_are_written_by_an_endpoint_once(root: Path) -> None:
    docs = [{"text": "Rain falls from clouds."}, {"text": "Snow is frozen rain."}]
    data: list[dict[str, Any]] = [
        {"id": "a", "question": "What falls?", "references": ["Rain falls. Snow is frozen."], "docs": docs},
        {"id": "b", "question": "What rises?", "references": ["Steam rises."], "docs": docs},
        {"id": "c", "question": "What stays?", "answers": [["Rain falls"]], "references": ["x"], "docs": docs},
    ]
    prepared(root, "long", data, "cm")
    written = json.dumps({"claims": ["Rain falls.", "Snow is frozen.", "Clouds sing."]})
    with FakeEndpoint(lambda request: Reply(answer(written if "What falls?" in request.prompt else "no"))) as fake:
        words = ["judge/complete=openai", "judge.complete.model.path=m", f"judge.complete.engine.base_url={fake.url}"]
        run, manifest = labelled(root, "claims", *words, source="long")
        asked = [request for request in fake.requests if "long answer" in request.prompt]
        assert len(asked) == 2
        assert asked[0].body["response_format"]["json_schema"]["schema"]["properties"]["claims"]["maxItems"] == 3
        _, again = labelled(root, "claims", *words, "overwrite=true", source="long")
        assert len([request for request in fake.requests if "long answer" in request.prompt]) == 2
    assert manifest.counts == again.counts == {"ok": 2, "failed": 1}
    assert manifest.totals["claims_written"] == 1
    found = {row["sample_id"]: row for row in rows(run, "samples")}
    assert found["long:a"]["answers"] == [["Rain falls."], ["Snow is frozen."], ["Clouds sing."]]
    assert [doc["answers_found"] for doc in found["long:a"]["docs"]] == [[1, 0, 0], [0, 1, 0]]
    assert found["long:a"]["meta"]["claims_by"] == "m"
    assert found["long:c"]["answers"] == [["Rain falls"]]
    assert [(row["row"], row["reason"]) for row in rows(run, "failed")] == [("long:b", "claims_unreadable")]


def test_a_dry_run_counts_what_would_be_asked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = [f"storage.root={root}", "from_run=raw", "run=dry", "judge/entails=lexical", "dry_run=true"]
    label(load("label", LabelConfig, common))
    said = capsys.readouterr().out
    _, manifest = labelled(root, "one", "judge.entails.threshold=0.7")
    asked = round(manifest.totals["asks_asked"] + manifest.totals["asks_repeated"])
    assert f"about {asked:,} to {asked:,} different pairs for {ROWS} rows" in said
    assert not (root / "dry").exists()


def test_real_questions_with_their_gold_passage(root: Path, shared: Path) -> None:
    path = shared / "data" / "rag" / "nq_open_oracle_first60.jsonl"
    if not path.exists():
        pytest.skip(f"no {path}")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    passages = [line["ctxs"][0] for line in lines]
    data = [
        {
            "id": f"{n:02d}",
            "question": line["question"],
            "answers": [line["answers"]],
            "docs": (passages * 2)[n : n + 10],
        }
        for n, line in enumerate(lines)
    ]
    prepared(root, "nq", data, "em")
    run, manifest = labelled(root, "nq_labelled", "judge.entails.threshold=0.6", source="nq")
    assert manifest.counts == {"ok": len(lines)}
    found = [[doc["answers_found"][0] for doc in row["docs"]] for row in rows(run, "samples")]
    gold = sum(one[0] for one in found) / len(found)
    others = sum(sum(one[1:]) for one in found) / (9 * len(found))
    print(f"labelled: {gold:.0%} of the gold passages, {others:.1%} of those of other questions")
    assert gold >= 0.5, "each of them holds the answer, and most of the question's words"
    assert others <= 0.01
    asked = manifest.totals["pairs"] - manifest.totals["pairs_skipped_by_string"]
    assert len(lines) <= asked <= 1.5 * len(lines), "few of the other passages have the words of the answer"
