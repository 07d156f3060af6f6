"""The demo data to build from keeps what it promises: answers in the corpus for two thirds, none for the others, no evaluation
question among them but one."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.prepare import prepare
from tests.jobs.test_evaluate import rows
from tests.trust.demo.test_demo import ROWS, occurs
from trust import demo
from trust.align.rows import check_split
from trust.config import load
from trust.prepare.job import PrepareConfig
from trust.runs import Run
from trust.text.normalize import normalize

FOLDER = Path(demo.__file__).parent


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


CORPUS = read("corpus")
QUESTIONS = {task: read(f"build_{task}") for task in demo.TASKS}


def test_the_corpus() -> None:
    assert len(CORPUS) == 292
    assert all(set(doc) == {"id", "title", "text"} for doc in CORPUS)
    for column in ("id", "text"):
        assert len({doc[column] for doc in CORPUS}) == len(CORPUS)
    assert all(28 <= len(doc["text"].split()) <= 70 for doc in CORPUS)
    shown = {doc["text"] for row in ROWS for doc in row["docs"]}
    assert not shown & {doc["text"] for doc in CORPUS}, "nothing that models are measured on"


@pytest.mark.parametrize("task", ["em", "em5"])
def test_two_thirds_have_all_their_answers_in_the_corpus_and_the_others_none(task: str) -> None:
    answered = 0
    for row in QUESTIONS[task]:
        held = [
            any(occurs(alias, doc["text"], "en") for alias in aliases for doc in CORPUS) for aliases in row["answers"]
        ]
        assert len(set(held)) == 1, row["question"]
        answered += held[0]
    assert (answered, len(QUESTIONS[task])) == {"em": (12, 18), "em5": (12, 16)}[task]


def test_claims() -> None:
    assert len(QUESTIONS["cm"]) == 16
    assert all(len(row["answers"]) == 3 for row in QUESTIONS["cm"])


def test_one_question_repeats_another_and_one_is_in_the_evaluation_set() -> None:
    asked = [normalize(row["question"], "en") for rows_ in QUESTIONS.values() for row in rows_]
    assert [count for count in Counter(asked).values() if count > 1] == [2]
    assert set(asked) & {normalize(row["question"], "en") for row in ROWS} == {
        normalize("Who discovered penicillin?", "en")
    }


def test_prepare_reads_it(tmp_path: Path, ray_session: None) -> None:
    config = load("prepare", PrepareConfig, ["data=demo_build", "run=build", f"storage.root={tmp_path}"])
    prepare(config)
    found = rows(Run.of(config), "samples")
    assert len(found) == 50
    for row in found:
        assert (dict(row["meta"])["split"], row["docs"]) == ("train", [])
        check_split(row | {"meta": dict(row["meta"])}, ["train"])
    config = load("prepare", PrepareConfig, ["data=demo", "run=demo", f"storage.root={tmp_path}"])
    prepare(config)
    assert len(rows(Run.of(config), "samples")) == 72
