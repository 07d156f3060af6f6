"""From samples to seeds over the whole job on a real local Ray, with MiniLM's vectors and ratings of an endpoint."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.curate import curate
from jobs.prepare import prepare
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from tests.jobs.test_evaluate import rows
from trust.align.curate_job import CurateConfig
from trust.config import load
from trust.errors import ConfigError, JobStopped, PreflightError
from trust.prepare.job import PrepareConfig
from trust.runs import Run

KINDS = {
    "river": "Through which towns does the river {} flow?",
    "opera": "Who sang in the opera {} at its first night?",
    "metal": "At which temperature does the metal {} melt?",
}
NAMES = {
    "river": ["Elbe", "Rhine", "Oder", "Loire", "Rhone", "Ebro", "Douro", "Tiber"],
    "opera": ["Tosca", "Carmen", "Fidelio", "Aida", "Norma", "Salome", "Elektra"],
    "metal": ["iron", "zinc", "tin", "lead", "nickel", "cobalt"],
}
WORDS = {"river": "5", "opera": '"eight"', "metal": "2"}  # what the model answers of the demand
REPEAT, NEAR, TEST, ASKED, NEARLY = "zz-repeat", "zz-near", "zz-test", "zz-asked", "zz-nearly"


def reply(request: Request) -> Reply:
    kind = next((kind for kind in KINDS if f"the {kind} " in request.prompt), "river")
    return Reply(answer(f'{{"topic": "{kind}s & $x$", "demand": {WORDS[kind]}}}'))


def questions() -> list[dict[str, Any]]:
    made = [
        {"id": f"{kind}-{name}", "question": KINDS[kind].format(name), "split": "train", "topic": kind}
        for kind, names in NAMES.items()
        for name in names
    ]
    elbe, oder = KINDS["river"].format("Elbe"), KINDS["river"].format("Oder")
    return [
        *made,
        {"id": REPEAT, "question": elbe.lower().replace("?", " ?"), "split": "train"},
        {"id": NEAR, "question": oder.replace("towns", "towns and towns"), "split": "train"},
        {"id": TEST, "question": "Which river is it?", "split": "test"},
        {"id": ASKED, "question": "who painted MONA LISA"},
        {"id": NEARLY, "question": "Who has painted the Mona Lisa picture?"},
    ]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, ray_session: None) -> Path:
    """Samples in the runs `one` (one file) and `three` (three files, in another order), and evaluation sets."""
    folder = tmp_path_factory.mktemp("runs")
    items = [
        {"dataset": "d", "language": "en", "answers": [["x"]], "task": "em", "docs": []} | row for row in questions()
    ]
    for run, parts in (("one", [items]), ("three", [items[2::3], items[1::3][::-1], items[0::3]])):
        (folder / f"{run}_in").mkdir()
        for number, part in enumerate(parts):
            (folder / f"{run}_in" / f"{number}.json").write_text(json.dumps(part))
        sets = [f"data.path={folder}/{run}_in", f"run={run}", "data.name=d", f"storage.root={folder}"]
        prepare(load("prepare", PrepareConfig, sets))
    (folder / "eval.json").write_text(json.dumps([items[-2] | {"question": "Who painted the Mona Lisa?", "id": "e1"}]))
    words = [f"data.path={folder}/eval.json", "run=eval", f"storage.root={folder}"]
    prepare(load("prepare", PrepareConfig, words))
    return folder


def config(root: Path, *words: str) -> CurateConfig:
    common = [f"storage.root={root}", "max_failed=1", "judge/embed=minilm_l6", "unit_rows=7", "near.evaluation=0.9"]
    groups = ["clustering.method=hdbscan", "clustering.min_samples=2", "clustering.min_cluster_size=4"]
    return load("curate", CurateConfig, [*common, *groups, *words])


def endpoint(fake: FakeEndpoint) -> list[str]:
    model = [f"judge.complete.engine.base_url={fake.url}", "judge.complete.model.path=m"]
    return ["judge/complete=openai", *model, "judge.complete.engine.max_retries=0"]


def curated(root: Path, *words: str) -> tuple[Run, dict[str, dict[str, Any]], dict[str, Any]]:
    """The run, its seeds by id, and its card."""
    made = config(root, *words)
    curate(made)
    run = Run.of(made)
    card = json.loads(run.storage.read_bytes(run.path("cards", "curate.json")))
    return run, {row["sample_id"].removeprefix("d:"): row for row in rows(run, "seeds")}, card


def test_the_whole_job_on_one_and_three_files(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeEndpoint(reply) as fake:
        words = [*endpoint(fake), "from_run=one", "exclude=[eval]", "draw.size=5"]
        run, seeds, card = curated(root, "run=a", *words)
        asked = len(fake.requests)
        assert "clusters: 3, of 1 the rating failed" in capsys.readouterr().out
        _, others, again = curated(root, "run=b", *words, "from_run=three", "unit_rows=2")
        assert others == seeds
        left_out = ("dropped", "failed", "ok", "clusters")
        assert {key: again[key] for key in left_out} == {key: card[key] for key in left_out}
        # The same words again ask and write nothing.
        fake.requests.clear()
        curated(root, "run=a", *words)
        assert [request for request in fake.requests if "Questions:" in request.prompt] == []
    assert asked == 1 + 2 + 3, "the preflight, two ratings, and three tries at one that cannot be read"
    assert len(seeds) == 5
    assert all(name.startswith("river-") for name in seeds)
    first = next(iter(seeds.values()))
    assert (first["topic"], first["demand"], first["cluster"]) == ("rivers & $x$", 5.0, 0)
    assert (first["meta"]["split"], first["answers"]) == ("train", [["x"]])
    assert card["dropped"] == {
        "in_evaluation_set": 1,
        "near_evaluation_set": 1,
        "repeated_question": 1,
        "near_repeat": 1,
        "low_demand": 6,
        "not_drawn": 3,
    }
    assert card["failed"] == {"not_for_building": 1, "rating_failed": 7}
    assert card["rows_in"] == 26
    assert [(one["rows"], one["demand"], one["reason"]) for one in card["clusters"]] == [
        (8, 5.0, None),
        (7, None, "rating_unread"),
        (6, 2.0, None),
    ]
    bad = {row["row"].removeprefix("d:"): row for row in rows(run, "failed")}
    assert set(bad) == {TEST, *(f"opera-{name}" for name in NAMES["opera"])}
    assert "eight" in bad["opera-Aida"]["detail"]
    told = {row["sample_id"].removeprefix("d:"): row for row in rows(run, "selection")}
    assert "asks the same as d:river-Elbe" in told[REPEAT]["detail"]
    assert "asks nearly the same as d:river-Oder" in told[NEAR]["detail"]
    assert "of eval asks the same" in told[ASKED]["detail"]
    assert "rivers &amp; $x$" in run.storage.read_bytes(run.path("clusters.svg")).decode()


def test_clusters_that_failed_are_rated_again(root: Path) -> None:
    with FakeEndpoint(reply) as fake:
        words = [*endpoint(fake), "from_run=one", "run=again", "exclude=[eval]", "near.repeats=null"]
        _, seeds, card = curated(root, *words)
        assert card["failed"]["rating_failed"] == 7
        assert REPEAT not in seeds
        assert NEAR in seeds
        fake.requests.clear()
        fake.reply = lambda request: Reply(answer("Topic: operas\nDemand: six"))
        _, seeds, card = curated(root, *words, "retry_failed=true")
        assert sum("Questions:" in request.prompt for request in fake.requests) == 1
    assert card["failed"] == {"not_for_building": 1}
    assert {row["demand"] for row in seeds.values()} == {5.0, 6.0}
    assert [one["topic"] for one in card["clusters"]] == ["rivers & $x$", "operas", "metals & $x$"]


def test_stopped_on_the_way_it_goes_on_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with FakeEndpoint(reply) as fake:
        words = [*endpoint(fake), "from_run=one", "run=stopped", "exclude=[eval]"]
        with monkeypatch.context() as patched:
            patched.setattr("trust.align.curate_job.plan_selection", stop)
            with pytest.raises(KeyboardInterrupt):
                curate(config(root, *words))
        run = Run.of(config(root, *words))
        before = {name: run.manifest(name) for name in ("embed_questions", "cluster_questions", "rate_clusters")}
        assert run.manifest("select_seeds") is None
        fake.requests.clear()
        _, seeds, card = curated(root, *words)
        assert [request for request in fake.requests if "Questions:" in request.prompt] == []
        assert (len(seeds), card["failed"]["rating_failed"]) == (8, 7)
        assert {name: run.manifest(name) for name in before} == before
        with pytest.raises(
            PreflightError, match=r"run=stopped already holds cluster_questions rows of another config \(near"
        ):
            curate(config(root, *words, "near.repeats=null"))
        _, seeds, _ = curated(root, *words, "near.repeats=null", "overwrite=true")
    assert NEAR in seeds
    assert run.manifest("embed_questions") == before["embed_questions"], "its vectors are those that are wanted"


def test_published_arithmetic(root: Path) -> None:
    with FakeEndpoint(reply) as fake:
        words = [*endpoint(fake), "from_run=one", "run=upstream", "exclude=[eval]", "compat=upstream", "rating.tries=1"]
        _, seeds, card = curated(root, *words)
    assert card["failed"] == {"not_for_building": 1}
    assert card["dropped"]["rating_unread"] == 7
    assert "low_demand" not in card["dropped"]
    assert {row["demand"] for row in seeds.values()} == {5.0, 2.0}


def test_without_clusters_seeds_are_drawn_by_a_column(root: Path) -> None:
    skip = ["clustering.method=skip", "near.repeats=null", "near.evaluation=null", "draw.by=topic", "draw.size=10"]
    run, seeds, card = curated(root, "from_run=one", "run=skip", f"exclude=[{root}/eval.json]", *skip)
    # 8, 7 and 6 of 23, and two of no topic: 3.48, 3.04, 2.61 and 0.87 of 10.
    kinds = [name.split("-")[0] for name in seeds]
    assert [kinds.count(kind) for kind in ("river", "opera", "metal", "zz")] == [3, 3, 3, 1]
    assert card["dropped"] == {"in_evaluation_set": 1, "repeated_question": 1, "not_drawn": 13}
    assert card["clusters"] == []
    assert not run.storage.exists(run.path("clusters.svg"))
    assert run.manifest("embed_questions").totals["asks_asked"] == 0
    assert all(row["cluster"] is None for row in seeds.values())


def test_noise_is_dropped_or_kept(root: Path) -> None:
    few = ["clustering.min_samples=20", "clustering.min_cluster_size=20", "exclude=[eval]", "from_run=one"]
    with FakeEndpoint(reply) as fake:
        _, seeds, card = curated(root, *endpoint(fake), *few, "run=noise")
        assert (seeds, card["dropped"]["noise"]) == ({}, 21)
        _, seeds, card = curated(root, *endpoint(fake), *few, "run=noisy", "clustering.noise=keep")
    assert len(seeds) == 21
    assert {row["cluster"] for row in seeds.values()} == {-1}


def test_what_cannot_work_is_said_before(root: Path) -> None:
    with pytest.raises(ConfigError, match="judge/complete is not set"):
        config(root, "run=x")
    with pytest.raises(ConfigError, match=r"draw\.by=demand: clustering\.method=skip rates no demand"):
        config(root, "run=x", "clustering.method=skip", "draw.by=demand")
    with pytest.raises(ConfigError, match=r"near\.repeats=2: a cosine"):
        config(root, "run=x", "clustering.method=skip", "near.repeats=2")
    with pytest.raises(PreflightError, match=r"run=none has no finished samples table .*jobs\.prepare"):
        curate(config(root, "run=x", "clustering.method=skip", "from_run=none"))
    with pytest.raises(PreflightError, match=r"run=nobody has no finished samples table"):
        curate(config(root, "run=x", "clustering.method=skip", "from_run=one", "exclude=[nobody]"))
    with pytest.raises(PreflightError, match=r"exclude: .*nowhere\.json"):
        curate(config(root, "run=x", "clustering.method=skip", "from_run=one", f"exclude=[{root}/nowhere.json]"))
    (root / "odd.json").write_text('[{"text": "Who?"}]')
    with pytest.raises(JobStopped, match=r"odd\.json, row 1: no `question` can be read there; prepare the file"):
        curate(config(root, "run=x", "clustering.method=skip", "from_run=one", f"exclude=[{root}/odd.json]"))


def test_a_dry_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeEndpoint(reply) as fake:
        curate(config(root, *endpoint(fake), "from_run=one", "run=dry", "exclude=[eval]", "dry_run=true"))
    out = capsys.readouterr().out
    assert "dry run of jobs.curate" in out
    assert "eval: 1 questions" in out
    assert "4 have a receipt" not in out
    assert "cluster_questions, rate_clusters, select_seeds, curate" in out
    assert not (root / "dry").exists()
