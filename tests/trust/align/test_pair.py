"""Training rows by hand: pairs that are refused, documents that are dropped, the split (pitfalls B52, B54)."""

import random
from typing import Any

import pytest

from tests.trust.report.helpers import response
from trust.align.pair import LengthConfig, Maker, Tokens, side, worst
from trust.errors import ConfigError, RowError
from trust.prompt_file import PromptFile
from trust.prompts import Messages, Prompt, PromptConfig

FILE = {
    "instruction": "Cite.",
    "demo_sep": "\n",
    "demo_prompt": "{INST} {Q}\n{D}{A}",
    "doc_prompt": "[{ID}] {T}: {P}\n",
}
TEXTS = ("one", "two", "three", "four")
QUESTION = "Which is it?"


def words(prompt: Messages, answer: Messages) -> Tokens:
    return Tokens(len(prompt[0]["content"].split()), len(answer[0]["content"].split()))


def maker(lengths: LengthConfig | None = None, **options: Any) -> Maker:
    config = PromptConfig(**{"name": "p", "file": "x", "shots": 0, "docs": 4} | options)
    prompt = Prompt(config, {"": PromptFile.parse({**FILE, "demos": []}, "x")})
    return Maker(prompt, lengths or LengthConfig(100, None, None), words, test_share=0.05, seed=1)


def row(output: str, scores: tuple[float | None, ...] = (4, 3, 2, 1), **changes: Any) -> dict[str, Any]:
    docs = [{"title": "t", "text": text, "score": score} for text, score in zip(TEXTS, scores, strict=True)]
    return response(0, output, question=QUESTION, docs=docs, **changes)


def negative(output: str, **changes: Any) -> dict[str, Any]:
    sizes = {"e_1": 0.0, "e_2": 0.0, "e_3": 0.5, "e_4": 0.0, "e_5": 1.0}
    return row(output, model="sft", **changes) | sizes | {"severity": 0.57, "primary_type": "inaccurate_claims"}


def test_a_pair() -> None:
    made, fitted = maker().pair(row("Four it is [4]."), negative("Two it is [2]."))
    lines = ["Cite. Which is it?", "[1] t: one", "[2] t: two", "[3] t: three", "[4] t: four"]
    assert made["prompt"] == [{"role": "user", "content": "\n".join(lines)}]
    assert made["chosen"] == [{"role": "assistant", "content": "Four it is [4]."}]
    assert made["rejected"] == [{"role": "assistant", "content": "Two it is [2]."}]
    assert made["error_types"] == ["overcitation", "inaccurate_claims"]
    assert (made["primary_type"], made["severity"], made["sample_id"]) == ("inaccurate_claims", 0.57, "demo:00000")
    assert (fitted.tokens, fitted.docs_dropped) == ([Tokens(16, 4), Tokens(16, 4)], 0)
    other, _ = maker().pair(row("Four it is [4]."), negative("Two it is [2].", draw=1))
    assert made["pair_id"] != other["pair_id"]


def test_an_sft_row() -> None:
    made, _ = maker().sft(row("Four it is [4].", parent_id="demo:q"))
    assert made["completion"] == [{"role": "assistant", "content": "Four it is [4]."}]
    assert made["parent_id"] == "demo:q"
    assert "chosen" not in made


@pytest.mark.parametrize(
    ("chosen", "rejected", "reason"),
    [
        ("Paris [1].", "Paris [1].", "identical_pair"),
        ("Paris [1].", " Paris\n [1]. ", "identical_pair"),
        (" \n", "Paris [1].", "blank"),
        ("Paris [1].", "\t", "blank"),
        ("Paris [5].", "Paris [1].", "cites_unseen"),
        ("Paris [0].", "Paris [1].", "cites_unseen"),
    ],
)
def test_pairs_that_teach_nothing_are_refused(chosen: str, rejected: str, reason: str) -> None:  # B52
    with pytest.raises(RowError) as error:
        maker().pair(row(chosen), negative(rejected))
    assert error.value.reason == reason


def test_a_shared_beginning_stays() -> None:  # B52
    made, _ = maker().pair(row("Paris [1]."), negative("Paris [2]."))
    assert (made["chosen"][0]["content"], made["rejected"][0]["content"]) == ("Paris [1].", "Paris [2].")


def test_citations_of_other_documents_make_no_pair() -> None:
    other = negative("Two it is [2].")
    other["docs"] = other["docs"][::-1]
    with pytest.raises(RowError) as error:
        maker().pair(row("Four it is [4]."), other)
    assert error.value.reason == "docs_differ"


def test_a_long_prompt_loses_the_lowest_document_that_nobody_cites() -> None:
    # 16 words of prompt and 4 of answer; a document has 3.
    made, fitted = maker(LengthConfig(17, None)).pair(row("Four it is [4]."), negative("Two is [2], [9]"))
    assert made["prompt"][0]["content"].split("\n")[1:] == ["[1] t: one", "[2] t: two", "[3] t: four"]
    assert made["chosen"][0]["content"] == "Four it is [3]."
    assert made["rejected"][0]["content"] == "Two is [2], [9]", "9 was no document before, and is none now"
    assert (fitted.docs_dropped, fitted.tokens[0]) == (1, Tokens(13, 4))
    made, _ = maker(LengthConfig(17, 13)).pair(row("Four it is [2-4]."), negative("Three [3]."))
    assert (made["chosen"][0]["content"], made["rejected"][0]["content"]) == ("Four it is [1-3].", "Three [2].")


@pytest.mark.parametrize(
    ("scores", "left"),
    [((1, 2, 3, 4), "two three four"), ((4, 3, 2, 1), "one two three"), ((5, None, 7, 7), "one three four")],
)
def test_which_document_is_the_lowest(scores: tuple[float | None, ...], left: str) -> None:
    made, _ = maker(LengthConfig(100, 13)).sft(row("I cannot say.", scores))
    assert [line.split()[-1] for line in made["prompt"][0]["content"].split("\n")[1:]] == left.split()


@pytest.mark.parametrize(
    ("lengths", "options", "said"),
    [
        (LengthConfig(12, None), {}, "prompt and answer have 14 tokens, more than lengths.max_length=12"),
        (LengthConfig(100, 9), {}, "the prompt has 10 tokens, more than lengths.max_prompt_length=9"),
        (LengthConfig(100, None, 3), {}, "an answer has 4 tokens, more than lengths.max_completion_length=3"),
        (LengthConfig(17, None), {"exact_docs": True}, "prompt and answer have 20 tokens"),
    ],
)
def test_what_cannot_be_made_short_enough_is_refused(
    lengths: LengthConfig, options: dict[str, Any], said: str
) -> None:  # B54
    with pytest.raises(RowError, match=said) as error:
        maker(lengths, **options).pair(row("Four it is [4]."), negative("Two it is [2]."))
    assert error.value.reason == "too_long"


def test_questions_stay_on_one_side() -> None:
    draw = random.Random(0)
    questions = [f"What is {draw.random()}?" for _ in range(2000)]
    sides = [side(question, 0.05, 1) for question in questions]
    assert 60 < sides.count("test") < 140
    assert [side(f" {question.upper()} ", 0.05, 1) for question in questions] == sides
    assert [side(question, 0.05, 2) for question in questions] != sides
    assert {side(question, 0, 1) for question in questions} == {"train"}
    assert {side("?", 0.5, seed) for seed in range(50)} == {"train", "test"}, "marks alone are a question too"


def test_the_worst_response_of_a_sample_is_rejected() -> None:
    errors = [{"sample_id": "a", "n": 2}, {"sample_id": "a", "n": 1}, {"sample_id": "b", "n": 3}]
    assert worst(errors, lambda one: bytes([one["n"]])) == {"a": errors[1], "b": errors[2]}


def test_lengths_of_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"lengths\.max_length=0: must be at least 1"):
        LengthConfig(0)
