"""The printed numbers as they lie in the repository, against their own arithmetic and the metric's."""

import asyncio
from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.golden import Replay, to_row
from trust.errors import ConfigError
from trust.metrics.trust_score import TrustScore, TrustScoreConfig
from trust.reproduce import arithmetic, published

DATASETS = published.datasets()
PRINTED = [
    (name, row, dataset)
    for name in published.names()
    for row, values in published.table(name).rows.items()
    for dataset in values.printed
]
# Known to be wrong in print (facts.md C2): neither their Trust-Score nor their F1_GR follows from the rest of the row.
WRONG = {("trust_score_7", "gpt_4o_icl", "expertqa"), ("trust_score_7", "gpt_4o_sft", "expertqa")}


def test_every_printed_row_adds_up_but_two() -> None:
    found = {
        each for each in PRINTED if arithmetic.problem(published.table(each[0]).printed(*each[1:]), DATASETS[each[2]])
    }
    assert found == WRONG
    assert len(PRINTED) == 3 * 59 + 50 + 6 * 3 + 2


def test_a_slip_of_one_digit_is_found() -> None:
    """Nearly every wrong digit that a transcription can hold: so the check means something."""
    table, slips, caught = published.table("trust_score_2"), 0, 0
    for row in list(table.rows)[::7]:
        printed = table.printed(row, "asqa")
        for column in ("f1_ac", "f1_gr", "f1_gc", "trust_score"):
            slips += 1
            caught += bool(arithmetic.problem(printed | {column: printed[column] + 1}, DATASETS["asqa"]))
        slips += 1
        caught += bool(
            arithmetic.problem(printed | {"answered_ratio": printed["answered_ratio"] + 0.05}, DATASETS["asqa"])
        )
    assert caught == slips


def test_what_a_problem_says() -> None:
    table = published.table("trust_score_7")
    said = arithmetic.problem(table.printed("gpt_4o_icl", "expertqa"), DATASETS["expertqa"])
    assert said == (
        "TRUST is 51.24, the mean of its parts 53.88; no number of right answers gives F1_GR 64.40 at AR 66.07"
    )
    alone = dict.fromkeys(published.COLUMNS) | {"trust_score": 67.51}
    assert arithmetic.problem(alone, DATASETS["asqa"]) == ""


# facts.md A2
@pytest.mark.parametrize(
    ("dataset", "answers", "refuses"),
    [("asqa", 39.15, 26.28), ("qampari", 22.78, 41.35), ("eli5", 17.15, 44.23), ("expertqa", 23.92, 40.67)],
)
def test_always_answering_and_always_refusing(dataset: str, answers: float, refuses: float) -> None:
    data = DATASETS[dataset]
    found = arithmetic.always("always_answer", data, "upstream")
    assert found["f1_gr"] == pytest.approx(answers, abs=0.005)
    assert (found["answered_ratio"], found["f1_ac"], found["trust_score"]) == (100, None, None)
    found = arithmetic.always("always_refuse", data, "upstream")
    assert found["f1_gr"] == pytest.approx(refuses, abs=0.005)
    assert (found["answered_ratio"], found["f1_ac"], found["f1_gc"]) == (0, 0, 0)
    assert found["trust_score"] == pytest.approx(found["f1_gr"] / 3)
    strict = arithmetic.always("always_refuse", data, "strict")
    assert (strict["f1_gc"], strict["trust_score"]) == (None, None), "nothing was cited: not applicable"


@pytest.mark.usefixtures("nltk_data")
@pytest.mark.parametrize("task", ["em", "em5", "cm"])
@pytest.mark.parametrize("how", ["always_refuse", "always_answer"])
def test_closed_forms_are_what_the_metric_gives_for_rows(task: str, how: str) -> None:
    metric = TrustScore(TrustScoreConfig(), "upstream")
    said = "I apologize, but I couldn't find an answer." if how == "always_refuse" else "Something else entirely [1]."
    rows = [_row(n, said, n < 3, task) for n in range(8)]

    async def scored() -> list[Any]:
        return [await metric.row(row, Replay(lambda premise, hypothesis: 0)) for row in rows]

    terms = {name: np.zeros(1) for name in metric.terms}
    for score in asyncio.run(scored()):
        for name, value in score.terms.items():
            terms[name] = terms[name] + value
    wanted = metric.final(terms, task)
    data = published.Dataset(task=task, prompt=task, answerable=3, questions=8)
    for column, value in arithmetic.always(how, data, "upstream").items():
        if value is not None:
            assert value == pytest.approx(float(wanted[arithmetic.keys(task)[column]].value[0])), column


def _row(n: int, output: str, answerable: bool, task: str) -> dict[str, Any]:
    docs = [{"title": "T", "text": "Words.", "answers_found": [int(answerable)]}]
    return to_row({"id": str(n), "question": "Who?", "answers": [["Ada"]], "docs": docs, "output": output}, task)


# facts.md A2
@pytest.mark.parametrize(
    ("row", "dataset", "counts"),
    [
        ("llama_3_8b_dpo", "asqa", (535, 416)),
        ("llama_3_8b_dpo", "qampari", (224, 147)),
        ("llama_3_8b_dpo", "eli5", (155, 73)),
        ("llama_2_7b_dpo", "asqa", (619, 468)),
        ("llama_2_7b_dpo", "qampari", (323, 188)),
        ("llama_2_7b_dpo", "eli5", (216, 89)),
    ],
)
def test_counts_behind_a_printed_row(row: str, dataset: str, counts: tuple[int, int]) -> None:
    printed = published.table("trust_score_2").printed(row, dataset)
    assert counts in arithmetic.overlaps(printed["answered_ratio"], printed["f1_gr"], DATASETS[dataset])


def test_the_gains_that_this_version_claims_are_differences_of_its_rows() -> None:
    table = published.table("trust_score_2")
    for dataset, gain in {"asqa": 12.56, "qampari": 36.04, "eli5": 17.69}.items():
        ours, front = (table.printed(f"llama_3_8b_{recipe}", dataset)["trust_score"] for recipe in ("dpo", "front"))
        assert ours - front == pytest.approx(gain, abs=1e-6)


def test_tables_name_only_what_is_known() -> None:
    for name in published.names():
        table = published.table(name)
        assert set(table.datasets) <= set(DATASETS)
        for key, row in table.rows.items():
            assert row.model in published.models(), key
            assert row.recipe in published.recipes(), key
            assert set(row.printed) <= set(table.datasets), key
            assert all(len(values) == len(published.COLUMNS) for values in row.printed.values()), key
    with pytest.raises(ConfigError, match="did you mean trust_score_2"):
        published.table("trust_score2")


def test_rows_are_chosen_by_name_or_pattern() -> None:
    known = ["llama_3_8b_icl", "llama_3_8b_dpo", "qwen_2_5_7b_icl"]
    assert published.select("rows", [], known) == known
    assert published.select("rows", ["*_icl", "llama_3_8b_icl"], known) == ["llama_3_8b_icl", "qwen_2_5_7b_icl"]
    with pytest.raises(ConfigError, match=r"rows: nothing here is called llama3_8b_icl; did you mean llama_3_8b_icl\?"):
        published.select("rows", ["*_dpo", "llama3_8b_icl"], known)
    with pytest.raises(ConfigError, match=r"rows: nothing here is called gpt\* \(known"):
        published.select("rows", ["gpt*"], known)
