"""From positives and errors to training rows that TRL takes, over the whole job on a real local Ray."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.pair import pair
from tests.jobs.test_evaluate import rows
from tests.trust.report.helpers import response, save
from trust import tables
from trust.align import select_job
from trust.align.pair_job import PairConfig
from trust.config import load
from trust.errors import ConfigError, PreflightError
from trust.runs import Run
from trust.storage import Storage
from trust.units import UnitResult

N, ERRORS = 40, 24
SORRY = "I apologize, but I couldn't find an answer to your question in the search results."
LICENSE = "cc-by-4.0"


def docs(n: int, found: int) -> list[dict[str, Any]]:
    return [
        {
            "doc_id": "a",
            "title": "Ports",
            "text": f"Router R{n} has {n} ports.",
            "score": 2.0,
            "answers_found": [found],
        },
        {"doc_id": "b", "title": "Office", "text": "The office is in Oslo. " * 20, "score": 1.0, "answers_found": [0]},
    ]


def sample(n: int, **changes: Any) -> dict[str, Any]:
    """Every fourth question cannot be answered; two variants share a question."""
    known = {"question": f"How many ports has router R{n // 2}?", "parent_id": f"demo:q{n // 2}"}
    return response(n, "x", docs=docs(n, int(n % 4 > 0)), answers=[[f"{n} ports"]], **known) | changes


def positive(n: int, **changes: Any) -> dict[str, Any]:
    text = f"Router R{n} has {n} ports [1]." if n % 4 else SORRY
    return sample(n, model="gold", prompt="positive", output=text) | changes


def error(n: int, **changes: Any) -> dict[str, Any]:
    """Answerable: half of them refuse, half are the worse the higher `n` is."""
    sizes: list[float] = [0, 1, 0, 0, 0] if n % 4 == 0 else [1, 0, 0, 0, 0] if n % 4 == 1 else [0, 0, 0, 0, n / N]
    severity = sum(weight * size for weight, size in zip((0.5, 0.5, 0.34, 0.26, 0.4), sizes, strict=True))
    types = ("over_responsiveness", "unwarranted_refusal", "inaccurate_claims", "inaccurate_claims")
    made = sample(n, model="sft", output=SORRY if n % 4 == 1 else f"Router R{n} has {n + 1} ports [1].")
    made |= {f"e_{number}": size for number, size in enumerate(sizes, 1)}
    return made | {"answerable": n % 4 > 0, "severity": severity, "primary_type": types[n % 4]} | changes


def right(n: int) -> dict[str, Any]:
    return error(n) | {"severity": 0.0, "primary_type": None} | {f"e_{number}": 0.0 for number in range(1, 6)}


def write(root: Path, name: str, job: str, table: str, made: list[dict[str, Any]]) -> Run:
    run = Run(Storage(), str(root), name)
    save(run, job, {}, UnitResult({table: tables.to_table(table, made)}, {"ok": len(made)}))
    return run


def source(root: Path) -> None:
    positives = [
        *(positive(n) for n in range(N - 3)),
        positive(N - 3, status="failed", output=None, reason="not_perfect"),
        positive(N - 2, output=" "),
        positive(N - 1, meta={"split": "test"}),
    ]
    errors = [
        *(error(n) for n in range(ERRORS)),
        error(2, draw=1, severity=0.9, output="Something worse [2]."),
        *(right(n) for n in range(ERRORS, N)),
    ]
    write(root, "gold", "positives", "positives", positives)
    write(root, "sft", "negatives", "errors", errors)


def config(root: Path, *words: str) -> PairConfig:
    runs = ["sft_run=gold", "positives_run=gold", "errors_run=sft"]
    return load("pair", PairConfig, [f"storage.root={root}", "run=pairs", "max_failed=1", *runs, *words])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, ray_session: None, smollm2: str) -> Run:
    root = tmp_path_factory.mktemp("runs")
    source(root)
    pair(config(root, "unit_rows=7", "test_share=0.3", f"license={LICENSE}"))
    return Run(Storage(), str(root), "pairs")


def test_what_became_of_the_positives(made: Run) -> None:
    card = json.loads(Path(made.path("cards", "pair.json")).read_text())
    pairs, sft = rows(made, "pairs"), rows(made, "sft")
    assert card["tables"] == {"sft": len(sft), "pairs": len(pairs), "failed": 3}
    assert card["rows_in"] == 2 * N
    assert card["ok"] == len(sft) + len(pairs)
    assert len(sft) == N - 3
    # 19 answerable ones with an error (18 and a second draw) and 6 others: the worse half of each, rounded up.
    assert made.manifest("pair").config["selected"]["answerable"].items() >= {"with_error": 19, "kept": 10}.items()
    assert made.manifest("pair").config["selected"]["unanswerable"].items() >= {"with_error": 6, "kept": 3}.items()
    assert card["numbers"]["negatives_met"] == 13
    assert card["dropped"] == {"no_positive": 2, "less_severe": ERRORS - len(pairs), "no_error": N - ERRORS - 2}
    assert card["failed"] == {"blank": 1, "not_for_building": 2}
    assert [row["reason"] for row in rows(made, "failed")].count("not_for_building") == 2


def test_pairs_are_of_the_most_severe_errors(made: Run) -> None:
    found = {int(row["sample_id"][-5:]): row for row in rows(made, "pairs")}
    of_answerable = [n for n in found if n % 4]
    assert found[2]["severity"] == 0.9, "the worst of two"
    assert found[2]["rejected"][0]["content"] == "Something worse [2]."
    # The others, by severity: refusals (0.5), then 0.4 n / 40.
    assert {n for n in of_answerable if n % 4 == 1} == {1, 5, 9, 13, 17, 21}
    assert {n for n in of_answerable if n % 4 > 1} == {2, 19, 22, 23}
    assert sum(n % 4 == 0 for n in found) == 3
    one = found[21]
    assert one["chosen"] == [{"role": "assistant", "content": "Router R21 has 21 ports [1]."}]
    assert one["rejected"] == [{"role": "assistant", "content": SORRY}]
    assert (one["error_types"], one["primary_type"]) == (["unwarranted_refusal"], "unwarranted_refusal")
    prompt = one["prompt"][0]["content"]
    assert prompt.index("Document [1](Title: Ports): Router R21 has 21 ports.") < prompt.index(
        "Document [2](Title: Office)"
    )
    assert prompt.endswith("Answer:")


def test_no_question_is_on_both_sides(made: Run) -> None:
    sides: dict[str, set[str]] = {}
    for table in ("sft", "pairs"):
        for row in rows(made, table):
            sides.setdefault(row["parent_id"], set()).add(row["split"])
    assert all(len(found) == 1 for found in sides.values())
    assert {side for found in sides.values() for side in found} == {"train", "test"}


def test_the_export_is_what_load_dataset_and_trl_read(made: Run, smollm2: str, tmp_path: Path) -> None:
    import datasets
    from transformers import AutoTokenizer
    from trl.data_utils import apply_chat_template, is_conversational

    datasets.disable_progress_bars()
    folder = made.path("hub")
    dpo = datasets.load_dataset(folder, "dpo", cache_dir=str(tmp_path))
    sft = datasets.load_dataset(folder, "sft", cache_dir=str(tmp_path))
    for found, table in ((dpo, "pairs"), (sft, "sft")):
        by_side = {side: sum(row["split"] == side for row in rows(made, table)) for side in ("train", "test")}
        assert {side: content.num_rows for side, content in found.items()} == by_side
        assert "split" not in found["train"].column_names
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    first = dpo["train"][0]
    assert is_conversational(first)
    assert is_conversational(sft["train"][0])
    told = apply_chat_template({key: first[key] for key in ("prompt", "chosen", "rejected")}, tokenizer)
    assert told["prompt"].endswith("<|im_start|>assistant\n")
    assert told["chosen"] == first["chosen"][0]["content"] + "<|im_end|>\n"
    told = apply_chat_template({key: sft["train"][0][key] for key in ("prompt", "completion")}, tokenizer)
    assert told["completion"].endswith("<|im_end|>\n")

    audit = json.loads(Path(made.path("audit", "pair.json")).read_text())
    whole = [
        len(tokenizer.apply_chat_template(row["prompt"] + row["completion"], return_dict=True)["input_ids"])
        for row in rows(made, "sft")
    ]
    assert audit["tokens"]["sft:longest"]["most"] == max(whole)
    assert audit["tokens"]["sft:longest"]["rows"] == len(whole)
    assert audit["limits"]["max_length"] == 2048


def test_the_card_tells_sources_and_no_secrets(made: Run) -> None:
    text = Path(made.path("hub", "README.md")).read_text()
    assert "license: cc-by-4.0" in text
    assert made.manifest("pair").fingerprint in text
    assert "answerable: 10 kept of 19 responses with an error" in text
    assert "| unwarranted_refusal | 6 | 6 |" in text
    assert "| dropped:no_error | 14 |" in text
    assert made.root.rsplit("/", 1)[0] not in text
    assert not [word for word in text.split() if word.startswith(("/", "s3://"))]


def test_the_same_rows_on_other_shards_and_nothing_is_done_twice(made: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(made.root).parent
    card = Path(made.path("hub", "README.md"))
    before, kept = {table: rows(made, table) for table in ("sft", "pairs")}, card.stat().st_mtime_ns
    words = ["test_share=0.3", f"license={LICENSE}"]
    with monkeypatch.context() as within:
        within.setattr("trust.align.pair_job.select_most_severe", None)  # nothing is selected again
        pair(config(root, *words, "unit_rows=7"))
    assert card.stat().st_mtime_ns == kept
    pair(config(root, *words, "unit_rows=100", "overwrite=true"))
    assert {table: rows(made, table) for table in ("sft", "pairs")} == before
    other = config(root, "run=alone", "positives_run=null", "errors_run=null")
    pair(other)
    assert Run.of(other).storage.list_folders(Run.of(other).path("hub")) == ["sft"]
    assert "license: unknown" in Path(Run.of(other).path("hub", "README.md")).read_text()


@pytest.mark.usefixtures("ray_session", "smollm2")
def test_long_prompts_lose_documents_and_the_audit_tells(tmp_path: Path) -> None:
    source(tmp_path)
    pair(config(tmp_path, "lengths.max_length=280", "lengths.max_prompt_length=null"))
    run = Run(Storage(), str(tmp_path), "pairs")
    audit = json.loads(Path(run.path("audit", "pair.json")).read_text())
    pairs = {int(row["sample_id"][-5:]): row for row in rows(run, "pairs")}
    assert 2 not in pairs, "its negative cites the long document"
    assert "Document [2]" not in pairs[21]["prompt"][0]["content"]
    assert audit["docs_dropped"] == audit["prompts_shortened"] == len(pairs) + len(rows(run, "sft"))
    assert audit["too_long"] == 1
    assert audit["tokens"]["pairs:longest"]["most"] <= 280
    assert [row["row"] for row in rows(run, "failed") if row["reason"] == "too_long"] == ["demo:00002"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["errors_run=null"], "errors_run is not set: pairs need it beside positives_run"),
        (["sft_run=null", "positives_run=null", "errors_run=null"], "nothing to make"),
        (["keep=0"], "keep=0: a share above 0"),
        (["test_share=1"], "test_share=1: a share from 0, below 1"),
        (["prompt.chat=false"], "training rows are chat messages"),
        (["lengths.max_lenght=1"], "did you mean lengths.max_length"),
    ],
)
def test_a_wrong_config_is_named(tmp_path: Path, words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as told:
        config(tmp_path, *words)
    assert message in str(told.value)


def test_nothing_starts_without_its_tables(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"run=gold has no finished positives table .*jobs\.positives"):
        pair(config(tmp_path, "dry_run=true"))
    write(tmp_path, "gold", "positives", "positives", [positive(1)])
    with pytest.raises(PreflightError, match=r"run=sft has no finished errors table .*jobs\.negatives"):
        pair(config(tmp_path, "dry_run=true"))


@pytest.mark.usefixtures("smollm2")
def test_a_dry_run_writes_nothing_and_shows_a_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    pair(config(tmp_path, "dry_run=true"))
    assert sorted(tmp_path.rglob("*")) == before
    said = capsys.readouterr().out
    assert f"of run sft: {N + 1} rows" in said
    assert "How many ports has router R0?" in said
    with pytest.raises(PreflightError, match=r"the model holds 8192 tokens, lengths\.max_length=9000"):
        pair(config(tmp_path, "dry_run=true", "lengths.max_length=9000"))


def test_a_filter_takes_rows_with_an_error_alone(tmp_path: Path) -> None:
    made = [error(1), right(2), error(3, status="failed", severity=None)]
    path = str(tmp_path / "errors.parquet")
    Storage().write_table(path, tables.to_table("errors", made))
    assert int(select_job.count_part(Storage(), path, True, b"").sum()) == 1
    assert int(select_job.count_part(Storage(), path, False, b"").sum()) == 0
    assert select_job.collect_part(Storage(), path, False, b"") == []
