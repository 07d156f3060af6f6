"""From samples to labels to variants over the whole jobs on a real local Ray."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.label import label
from jobs.recombine import recombine
from tests.jobs.test_evaluate import rows
from tests.jobs.test_label import THREE, items, prepared
from trust.align.label_job import LabelConfig
from trust.align.recombine_job import RecombineConfig
from trust.config import load
from trust.errors import ConfigError, PreflightError, TooManyFailed
from trust.runs import Manifest, Run

TOTALS = ("variants_answerable", "variants_unanswerable", "patterns", "patterns_covered")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, ray_session: None) -> Path:
    """A run `labelled`; one question of it is of a test split."""
    folder = tmp_path_factory.mktemp("runs")
    data = items()
    for number, item in enumerate(data):
        item["split"] = "test" if number == 7 else "train"
    prepared(folder, "raw", data, "em")
    words = [f"storage.root={folder}", "from_run=raw", "run=labelled", "judge/entails=lexical"]
    label(load("label", LabelConfig, [*words, "judge.entails.threshold=0.7"]))
    return folder


def recombined(root: Path, *words: str) -> tuple[Run, Manifest]:
    config = load("recombine", RecombineConfig, [f"storage.root={root}", "run=labelled", "max_failed=0.1", *words])
    recombine(config)
    run = Run.of(config)
    manifest = run.manifest("recombine")
    assert manifest
    return run, manifest


def test_variants_are_made_and_accounted_for_on_any_number_of_actors(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    recombine(load("recombine", RecombineConfig, [f"storage.root={root}", "run=labelled", "dry_run=true"]))
    dry = capsys.readouterr().out
    run, manifest = recombined(root)
    said = capsys.readouterr().out
    samples = {row["sample_id"]: row for row in rows(run, "samples")}
    made = rows(run, "variants")
    assert manifest.counts == {"ok": len(samples) - 1, "failed": 1}
    assert [(row["row"], row["reason"]) for row in rows(run, "failed")] == [("raw:007", "not_for_building")]

    totals = manifest.totals
    kinds = Counter(row["kind"] for row in made)
    assert kinds == {"supported": totals["variants_answerable"], "unanswerable": totals["variants_unanswerable"]}
    assert min(kinds.values()) > 30
    assert totals["patterns_covered"] > 100
    seeds = ("seeds_answerable_only", "seeds_unanswerable_only", "seeds_both")
    assert sum(totals[key] for key in seeds) == len(samples) - 1
    assert len({row["sample_id"] for row in made}) == len(made)
    for row in made:
        parent = {doc["doc_id"]: doc for doc in samples[row["parent_id"]]["docs"]}
        assert len(row["docs"]) == 5
        assert all(parent[doc["doc_id"]] == doc for doc in row["docs"])
        assert row["pattern"] == [
            max(column) for column in zip(*(d["answers_found"] for d in row["docs"]), strict=True)
        ]
        assert (row["kind"] == "supported") == any(row["pattern"])
    assert f"variants: {kinds['supported']} answerable, {kinds['unanswerable']} unanswerable" in said
    share = len(samples) / 40  # the dry run looks at all of them
    expected = [round(kinds[kind] * share) for kind in ("supported", "unanswerable")]
    assert f"about {expected[0]:,} answerable and {expected[1]:,} unanswerable ones" in dry
    card = json.loads(Path(run.path("cards", "recombine.json")).read_text())
    assert card["failed"] == {"not_for_building": 1}
    assert card["tables"] == {"failed": 1, "variants": len(made)}
    assert all(card["numbers"][key] == totals[key] for key in TOTALS)

    other, again = recombined(root, "from_run=labelled", "run=three", *THREE)
    assert rows(other, "variants") == made
    assert {key: again.totals[key] for key in TOTALS} == {key: totals[key] for key in TOTALS}


def test_other_words_are_refused_and_too_many_failures_end_it(root: Path) -> None:
    words = [f"storage.root={root}", "from_run=labelled"]
    with pytest.raises(TooManyFailed, match=r"39 of 40 rows failed \(not_for_building: 39\)"):
        recombine(load("recombine", RecombineConfig, [*words, "run=tests", "splits=[test]"]))
    with pytest.raises(PreflightError, match=r"another config \(variants\.docs was 5, is 3"):
        recombine(load("recombine", RecombineConfig, [*words, "run=tests", "splits=[test]", "variants.docs=3"]))


def test_published_numbers_and_own_ones(root: Path) -> None:
    run, manifest = recombined(
        root, "from_run=labelled", "run=small", "compat=upstream", "variants.docs=3", "variants.answerable=2"
    )
    made: dict[str, list[dict[str, Any]]] = {}
    for row in rows(run, "variants"):
        made.setdefault(row["parent_id"], []).append(row)
    assert all(len(row["docs"]) == 3 for group in made.values() for row in group)
    assert max(sum(row["kind"] == "supported" for row in group) for group in made.values()) == 2
    assert manifest.counts.get("dropped", 0) == manifest.totals.get("dropped:no_support", 0)


def test_a_wrong_config_is_named(tmp_path: Path) -> None:
    for word, message in {
        "variants.doc=3": "did you mean variants.docs?",
        "variants.supporting=60": "subsets a question are too many",
        "from_table=variants": "not of variants",
        "from_table=pairs": "from_table=pairs",
    }.items():
        with pytest.raises(ConfigError) as error:
            load("recombine", RecombineConfig, [word])
        assert message in str(error.value)
    with pytest.raises(PreflightError, match=r"run=x has no finished samples table .*jobs\.prepare"):
        recombine(load("recombine", RecombineConfig, [f"storage.root={tmp_path}", "run=x"]))
