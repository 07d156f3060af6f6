"""The parts of the benchmarks that numbers rest on; nothing here is timed."""

import json
import os
from pathlib import Path

import pytest
import torch

from tests.bench import bare, judge, judge_model, published, respond, rows, units
from tests.bench.measure import Answers, Ratio, parts, spread, take_turns, unequal

PAIRS = [{"premise": "p" * n, "hypothesis": "h", "label": n % 2} for n in range(10)]


@pytest.fixture(scope="module")
def short(shared: Path) -> list[dict]:
    """The shortest golden pairs, one of them twice."""
    pairs = spread(judge.golden_pairs(), None)[:11]
    return [*pairs, pairs[3]]


def test_all_sides_give_the_known_labels(short: list[dict]) -> None:
    known = [pair["label"] for pair in short]
    assert set(known) == {0, 1}
    assert published.judge(judge.SMALL, short, 2).labels == known
    assert judge.OurWay(judge.SMALL, 2).judge(short).labels == known
    loop = bare.BareLoop(judge.SMALL, 2, widened=True)
    assert loop.find_batch_size(short) in bare._SIZES
    assert loop.judge(short).labels == known


def test_the_published_program_takes_the_default_device_along(short: list[dict]) -> None:
    assert published.judge(judge.SMALL, short[:2], 2, "cpu:0").labels == [pair["label"] for pair in short[:2]]


def test_the_published_program_says_its_own_rates(shared: Path) -> None:
    assert published.written_rate("small") > published.written_rate("base") > 0
    written = published.written_rate("small")
    assert "same class" in published.verdict_on_machine("small", written * 1.1)
    assert "not that class" in published.verdict_on_machine("small", written * 0.5)
    assert published.read_rate("626 pairs, 41.25 pairs/s, median 20 ms") == 41.25
    with pytest.raises(ValueError, match="printed no rate"):
        published.read_rate("killed")


def test_rounds_hold_all_pairs_short_and_long_ones() -> None:
    rounds = parts(PAIRS, 3)
    assert sorted(pair["premise"] for part in rounds for pair in part) == sorted(pair["premise"] for pair in PAIRS)
    assert all(len(part[0]["premise"]) < 3 and len(part[-1]["premise"]) > 6 for part in rounds)
    assert [len(pair["premise"]) for pair in spread(PAIRS, 5)] == [0, 2, 4, 6, 8]


def test_sides_take_turns_and_labels_are_compared() -> None:
    order = []

    def side(name: str, wrong: int) -> object:
        def answer(pairs: list[dict]) -> Answers:
            order.append(name)
            return Answers([pair["label"] if i >= wrong else 1 - pair["label"] for i, pair in enumerate(pairs)], 2.0)

        return answer

    rounds = parts(PAIRS, 2)
    found = take_turns({"a": side("a", 0), "b": side("b", 1)}, rounds)
    assert order == ["a", "b", "b", "a"]
    assert unequal(found["a"], rounds) == 0
    assert unequal(found["b"], rounds) == 2
    assert unequal(found["b"], rounds, found["a"]) == 2
    assert found["a"][0].rate == 2.5


def test_a_ratio_is_taken_round_by_round() -> None:
    ratio = Ratio.of([2.0, 3.0, 8.0], [1.0, 1.0, 2.0])
    assert (ratio.median, ratio.low, ratio.high) == (3.0, 2.0, 4.0)
    assert ratio.against(2.9).endswith(": met")
    assert ratio.against(3.1).endswith("NOT met")


def test_rows_are_composed_anew_from_their_own_documents(shared: Path) -> None:
    golden = shared / "data" / "trust_golden"
    made = rows.make(golden, 300)
    assert made[:40] == rows.make(golden, 40), "a row does not depend on the count"
    assert len({row["output"] for row in made}) == 300
    assert {row["task"] for row in made} == {"em", "cm"}
    for row in made:
        first = row["output"].split(" [")[0].rstrip(".")
        assert any(first in doc["text"] for doc in row["docs"]) or "." in first


def test_units_span_from_the_first_begin_to_the_last_end(tmp_path: Path) -> None:
    for name, end, took in (("a", 100.0, 30.0), ("b", 150.0, 20.0), ("c", 110.0, 45.0)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"totals": {"unit_seconds": took}}))
        os.utime(path, (end, end))
    assert units.unit_seconds(tmp_path) == pytest.approx(85.0)


def test_a_job_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"jobs.evaluate ended with 2: .*mertics"):
        units.run_job("evaluate", tmp_path, "r", ["mertics=x"])


def test_a_random_judge_says_one_token_and_ends(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    monkeypatch.setitem(judge_model.SHAPES, "mini", (128, 256, 2, 2))
    folder = judge_model.write("mini", judge.SMALL, tmp_path)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.dtype == torch.bfloat16
    ids = tokenizer("premise: a hypothesis: b", return_tensors="pt").input_ids
    said = model.generate(ids, max_new_tokens=10)[0].tolist()
    assert tokenizer.decode(said, skip_special_tokens=True) == "1"
    assert len(said) == 3, "the start, one token, the end"


def test_bare_vllm_gets_the_arguments_of_the_job(shared: Path) -> None:
    words = ["model=hf", f"model.path={judge.SMALL}", "engine=gpu", "engine.tensor_parallel=2"]
    args = respond.arguments(respond.job_words(words, 7))
    assert args["model"] == str(judge.SMALL)
    assert (args["tensor_parallel_size"], args["distributed_executor_backend"]) == (2, "mp")
