"""Question sets as their authors released them."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trust.prepare.helpers import lines, prepare, write
from trust.errors import RowError
from trust.prepare.releases import split_of, to_row

ASQA = {
    "ambiguous_question": "When did it open?",
    "qa_pairs": [
        {
            "context": "c",
            "question": "When did the first one open?",
            "short_answers": ["1901", "in 1901"],
            "wikipage": "w",
        },
        {"context": "c", "question": "When did the second one open?", "short_answers": ["1950"], "wikipage": None},
    ],
    "wikipages": [{"title": "w", "url": "u"}],
    "annotations": [{"knowledge": [], "long_answer": "The first one opened in 1901, the second in 1950."}],
}


def test_asqa_has_an_answer_for_each_reading(tmp_path: Path) -> None:
    path = write(tmp_path / "ASQA.json", json.dumps({"train": {"-1": ASQA, "-2": ASQA}, "dev": {"7": ASQA}}))
    first, second = prepare(path, kind="asqa", name="asqa", split="train")["samples"]
    assert [first["sample_id"], second["sample_id"]] == ["asqa:-1", "asqa:-2"]
    assert (first["question"], first["answers"]) == ("When did it open?", [["1901", "in 1901"], ["1950"]])
    assert first["references"] == ["The first one opened in 1901, the second in 1950."]
    assert first["meta"]["split"] == "train"
    asked = json.loads(first["context"]["sub_questions"])
    assert asked == ["When did the first one open?", "When did the second one open?"]
    assert "annotations" not in first["meta"]
    [other] = prepare(path, kind="asqa", name="asqa", split="dev")["samples"]
    assert (other["sample_id"], other["meta"]["split"]) == ("asqa:7", "dev")


def test_qampari_is_read_without_its_markup(tmp_path: Path) -> None:
    row = {
        "qid": "8__wiki",
        "question_text": "Which towns lie there?",
        "answer_list": [
            {"answer_text": "[[Kiel|the town of Kiel]]", "aliases": ["Kyl"]},
            {"answer_text": '"kiel"', "aliases": ["again"]},
            {"answer_text": "Bremen {{flag}}", "aliases": []},
        ],
        "entities": [],
    }
    bad = row | {"qid": "9", "answer_list": [{"answer_text": "{{flag}}", "aliases": []}]}
    made = prepare(write(tmp_path / "train_data.jsonl", lines([row, bad])), kind="qampari", name="qampari", task="em5")
    [sample] = made["samples"]
    assert sample["sample_id"] == "qampari:8__wiki"
    assert sample["answers"] == [["Kiel", "the town of Kiel", "Kyl"], ["Bremen"]], "one answer under two names is one"
    assert sample["meta"] == {"split": "train"}
    assert [row["reason"] for row in made["failed"]] == ["empty_answer"]


def test_the_best_scored_answer_of_a_post_is_the_reference(tmp_path: Path) -> None:
    posts = [
        {
            "q_id": "a",
            "title": "Why?",
            "category": "Physics",
            "answers": {"text": ["low", "best", ""], "score": [2, 9, 50]},
        },
        {"q_id": "b", "title": "How?", "category": "Biology", "answers": {"text": ["none liked"], "score": [0]}},
    ]
    pq.write_table(pa.Table.from_pylist(posts), tmp_path / "validation1-00000.parquet")
    made = prepare(tmp_path / "validation1-00000.parquet", kind="eli5", name="eli5", task="cm")
    [sample] = made["samples"]
    assert (sample["sample_id"], sample["question"], sample["references"]) == ("eli5:a", "Why?", ["best"])
    assert sample["meta"] == {"split": "validation", "category": "Physics", "answer_score": "9.0"}
    assert [row["reason"] for row in made["failed"]] == ["no_reference"]


def test_an_experts_revision_is_the_reference() -> None:
    row = {
        "question": "What now?",
        "annotator_id": "x",
        "answers": {"gpt4": {"answer_string": "old", "revised_answer_string": "So [1]. And\nthen [2][3]."}},
        "metadata": {"field": "Law", "specific_field": "", "question_type": "A|B"},
    }
    assert to_row(row, "expertqa") == {
        "field": "Law",
        "question_type": "A|B",
        "question": "What now?",
        "references": ["So. And then."],
    }
    with pytest.raises(RowError, match="no answer was revised"):
        to_row(row | {"answers": {"gpt4": {"answer_string": "old", "revised_answer_string": ""}}}, "expertqa")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("a/train_data.jsonl.gz", "train"),
        ("rand_val.jsonl", "validation"),
        ("test-00000-of-00001.parquet", "test"),
        ("validation2.parquet", "validation"),
        ("training.json", None),
        ("train_test.json", None),
        ("latest.json", None),
    ],
)
def test_a_files_name_tells_the_split(name: str, split: str | None) -> None:
    assert split_of(name) == split
