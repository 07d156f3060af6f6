"""What people said, in every form, and what is wrong with a row."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trust.agree.helpers import config, lines, rated
from trust.agree.config import AgreeConfig, PairsConfig
from trust.agree.items import Item, Rated, read_rated
from trust.errors import ConfigError, PreflightError
from trust.prepare.config import DataConfig
from trust.storage import open_storage


def read(config: AgreeConfig) -> Rated:
    return read_rated(config, open_storage())


def test_own_form_in_all_files(tmp_path: Path) -> None:
    rows = [rated(1, "a", 4, 0.5), rated(1, "b", [3, None, 5], 0.25), rated(2, "a", None)]
    found = []
    for name in ("rows.jsonl", "rows.json", "rows.json.gz", "rows.parquet"):
        path = tmp_path / name
        if name.endswith(".parquet"):
            listed = [row | {"ratings": {"quality": [row["ratings"]["quality"]]}} for row in (rows[0], rows[2])]
            pq.write_table(pa.Table.from_pylist([listed[0], rows[1], listed[1]]), path)
        elif name.endswith("jsonl"):
            lines(path, rows)
        else:
            data = json.dumps(rows).encode()
            path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        found.append([(i.sample_id, i.model, i.ratings, i.metrics) for i in read(config(tmp_path, path)).items])
    assert found[0] == [
        ("rated:d1", "a", {"quality": [4.0]}, {"m": 0.5}),
        ("rated:d1", "b", {"quality": [3.0, None, 5.0]}, {"m": 0.25}),
    ]
    assert all(each == found[0] for each in found)


def test_columns_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "key,system,thread,ann,bob,score\n1,x,t1,complete,partial,0.5\n2,x,t1,none,,0.25\n3,y,t2,,,1\n4,y,t2,none,none,\n"
    )
    options: dict[str, Any] = {
        "data_columns": {"id": "key", "model": "system"},
        "ratings": {"support": ["ann", "bob"]},
        "metrics": {"mine": "score"},
        "group": "thread",
        "scale": {"complete": 1.0, "partial": 0.5, "none": 0.0},
    }
    first, second, last = read(config(tmp_path, path, **options)).items
    assert (first.sample_id, first.model, first.group, first.cluster) == ("rated:1", "x", "t1", "t1")
    assert first.rating("support") == 0.75
    assert second.rating("support") == 0
    assert (first.metrics, last.metrics) == ({"mine": 0.5}, {})
    with pytest.raises(PreflightError, match=r"own.csv, line 2: ann is 'complete', which is no number; scale="):
        read(config(tmp_path, path, **options | {"scale": {}}))
    with pytest.raises(PreflightError, match=r"no cat \(ratings.support=cat\)"):
        read(config(tmp_path, path, **options | {"ratings": {"support": "cat"}}))


def test_annotators_with_rows_of_their_own(tmp_path: Path) -> None:
    rows = [
        rated(1, "a", 4, 0.5) | {"who": "ann"},
        rated(1, "a", 2) | {"who": "bob"},
        rated(2, "a", 1) | {"who": "bob"},
    ]
    path = lines(tmp_path / "rows.jsonl", rows)
    (first, _) = read(config(tmp_path, path, annotator="who")).items
    assert (first.ratings, first.metrics) == ({"quality": [4.0, 2.0]}, {"m": 0.5})
    with pytest.raises(PreflightError, match=r"line 2 rates the same output as .*line 1.*annotator=COLUMN"):
        read(config(tmp_path, path))
    lines(path, [*rows, rows[0]])
    with pytest.raises(PreflightError, match="the same output by ann as"):
        read(config(tmp_path, path, annotator="who"))


def test_pairs(tmp_path: Path) -> None:
    rows = [
        {"question_id": 81, "model_a": "x", "model_b": "y", "winner": winner, "sa": 0.1, "sb": 0.2}
        for winner in ("model_a", "y", "tie", "tie (inconsistent)", None)
    ]
    path = lines(tmp_path / "pairs.jsonl", rows)
    found = read(config(tmp_path, path, pairs=PairsConfig(), metrics={"m": ["sa", "sb"]}))
    assert (found.preferences, found.ties) == (True, 3)
    assert [(i.sample_id, i.model, i.rating("preference"), i.metrics["m"]) for i in found.items] == [
        ("rated:81", "x", 1, 0.1),
        ("rated:81", "y", 0, 0.2),
        ("rated:81", "x", 0, 0.1),
        ("rated:81", "y", 1, 0.2),
    ]
    assert len({i.group for i in found.items}) == 2
    assert len({i.cluster for i in found.items}) == 1
    lines(path, [rows[0] | {"winner": "z"}])
    with pytest.raises(PreflightError, match=r"line 1: winner is 'z': neither of \['x', 'y'\]"):
        read(config(tmp_path, path, pairs=PairsConfig()))


def published(kind: str, path: Path, rows: list[dict[str, Any]], tmp_path: Path) -> list[Item]:
    return read(config(tmp_path, lines(path, rows), kind)).items


def test_published_forms(tmp_path: Path) -> None:
    summary = {
        "id": "dm-test-1",
        "model_id": "M11",
        "decoded": "A summary.",
        "references": ["one", "two"],
        "expert_annotations": [{"coherence": 2, "fluency": 5}, {"coherence": 1, "fluency": 5}],
        "turker_annotations": [{"coherence": 3, "fluency": 3}],
        "metric_scores_1": {"rouge": {"rouge_1_f_score": 0.5}, "bert": 0.25, "name": "x"},
    }
    (item,) = published("summeval", tmp_path / "s.jsonl", [summary], tmp_path)
    assert (item.sample_id, item.model) == ("rated:dm-test-1", "M11")
    assert item.ratings == {"coherence": [2, 1], "fluency": [5, 5]}
    assert item.metrics == {"rouge.rouge_1_f_score": 0.5, "bert": 0.25}
    with pytest.raises(PreflightError, match="scale"):
        published(
            "summeval", tmp_path / "s.jsonl", [summary | {"expert_annotations": [{"coherence": "good"}]}], tmp_path
        )

    talk = {"source": "hi\n", "context": "a fact", "system_output": "oh", "scores": {"naturalness": 2.3}}
    first, second, third = published(
        "unieval",
        tmp_path / "t.json",
        [talk | {"system_id": "A"}, talk | {"system_id": "B"}, talk | {"source": "ho", "system_id": "A"}],
        tmp_path,
    )
    assert first.group == second.group != third.group
    assert (first.model, first.rating("naturalness")) == ("A", 2.3)

    question = {
        "question": "When?",
        "answer": "In 2022.",
        "ungrounded_answer": "In 2021.",
        "poor_answer": "Once.",
        "context_v1": ["It was in 2022."],
        "context_v2": ["It was in 2022.", "Much else."],
        "metrics": {"answer": {"f": 1.0}, "poor_answer": {"f": 0.5}},
    }
    found = published("wikieval", tmp_path / "w.jsonl", [question], tmp_path)
    assert [(i.model, i.ratings) for i in found] == [
        ("answer", {"faithfulness": [1], "answer_relevance": [1], "context_relevance": [1]}),
        ("ungrounded_answer", {"faithfulness": [0]}),
        ("poor_answer", {"answer_relevance": [0]}),
        ("context_v2", {"context_relevance": [0]}),
    ]
    assert len({i.group for i in found}) == 1
    assert [i.metrics for i in found] == [{"f": 1}, {}, {"f": 0.5}, {}]


def test_rows_that_cannot_be_used_are_told_of_and_limited(tmp_path: Path) -> None:
    rows = [rated(n, "a", n, 0.5) for n in range(100)]
    path = lines(tmp_path / "rows.jsonl", [*rows, {"id": "x"}])
    found = read(config(tmp_path, path))
    assert len(found.items) == 100
    assert found.failed == [f"{path}, line 101: the row has no `ratings`; ratings.DIMENSION=COLUMN names columns"]
    with pytest.raises(PreflightError, match="1 of 101 rows cannot be used, more than max_failed"):
        read(config(tmp_path, path, max_failed=0.0))
    lines(path, [rated(1, "a", float("nan"))])
    with pytest.raises(PreflightError, match="quality is nan"):
        read(config(tmp_path, path))
    lines(path, [rated(1, "a", None)])
    with pytest.raises(PreflightError, match="no row says what people think"):
        read(config(tmp_path, path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"data.path is not set"),
        ({"labels": "x.csv"}, r"runs=\[NAME\]"),
        ({"data": DataConfig(path="x"), "values": ["m.v"]}, r"runs=\[NAME\]"),
        ({"data": DataConfig(path="x"), "runs": ["a", "a"]}, "runs names a twice"),
        ({"data": DataConfig(path="x"), "alpha": "ratio"}, "alpha=ratio: unknown value"),
        ({"data": DataConfig(path="x"), "metrics": {"m": ["a", "b"]}}, r"metrics.m: 1 column\(s\) are needed, not 2"),
        ({"data": DataConfig(path="x"), "pairs": PairsConfig(), "ratings": {"q": "c"}}, "pairs and ratings"),
        ({"data": DataConfig(path="x"), "pairs": PairsConfig(), "annotator": "c"}, "annotator does nothing"),
        ({"data": DataConfig(path="x"), "width": 0.0}, "width=0: must be above 0"),
        ({"data": DataConfig(path="x"), "replicates": 10}, "replicates=10"),
        ({"data": DataConfig(path="x"), "run": "a/b"}, "a run's name has no slash"),
    ],
)
def test_configs_that_cannot_be_run(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AgreeConfig(**options)
