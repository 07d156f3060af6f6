"""Without gold answers: what a judge finds answerable, refusals against it, groundedness; and what cannot be had."""

import math
from typing import Any

import pytest

from tests.trust.metrics.golden import Replay, all_words, published, run
from trust import compat
from trust.errors import ConfigError
from trust.metrics import build
from trust.metrics.no_gold import NoGold, NoGoldConfig
from trust.metrics.trust_score import TrustScore, TrustScoreConfig

DOCS = [{"title": None, "text": text} for text in ("alpha beta gamma q", "delta epsilon", "zeta eta")]
REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."


def row(output: str, question: str = "q", docs: list[dict[str, Any]] = DOCS, **more: Any) -> dict[str, Any]:
    base = {"sample_id": "s", "task": "none", "language": "en", "question": question, "answers": None}
    return base | {"docs": docs, "output": output} | more


def metric(**options: Any) -> NoGold:
    return NoGold(NoGoldConfig(**options), "strict")


def score(output: str, **more: Any) -> Any:
    return run(metric(), [row(output, **more)], Replay(all_words))[0]


@pytest.mark.parametrize(
    ("question", "docs", "answerable"),
    [
        ("q", DOCS, 1),
        ("delta gamma", DOCS, 0),  # no document holds both: one alone has to
        ("omega", DOCS, 0),
        ("q", [], 0),
        ("q", [{"title": None, "text": ""}], 0),
    ],
)
def test_answerable_is_what_one_document_answers(question: str, docs: list[Any], answerable: int) -> None:
    assert score("Zeta [3].", question=question, docs=docs).values["answerable"] == answerable


def test_the_response_has_no_part_in_answerability_and_gold_is_not_looked_at() -> None:
    labelled = [doc | {"answers_found": [1]} for doc in DOCS]
    for output in ("Omega is omega [1].", REFUSAL, ""):
        for gold in ({}, {"answers": [["omega"]], "docs": labelled, "task": "em"}):
            assert score(output, question="omega", **gold).values["answerable"] == 0


def test_the_hypothesis_is_made_of_the_question() -> None:
    ask = Replay(lambda premise, hypothesis: 1)
    run(metric(answerable_if="It answers: {question}"), [row(REFUSAL, question="What {x}?")], ask)
    assert {(role, hypothesis) for role, _, hypothesis in ask.asked} == {("answerable", "It answers: What {x}?")}
    assert ask.where == [("answerable", None, number) for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("output", "groundedness"),
    [
        ("Alpha beta [3]. Zeta.", 1),  # cited wrongly or not at all, but it is there
        ("Alpha zeta.", 1),  # the documents together say so
        ("Alpha omega [1]. Delta.", 1 / 2),
        ("Omega [1].", 0),
        ("Letters:\nAlpha [1].", 1),  # a line that announces what follows says nothing
        (REFUSAL, None),
        ("", None),
    ],
)
def test_groundedness(output: str, groundedness: float | None) -> None:
    assert score(output).values.get("groundedness") == groundedness


def test_one_document_alone_grounds_what_a_judge_cannot_read_in_all() -> None:
    ask = Replay(lambda premise, hypothesis: int(len(premise) < 20 and all_words(premise, hypothesis)))
    (made,) = run(metric(), [row("Delta [1].")], ask)
    assert made.values["groundedness"] == 1
    assert ("grounded_alone", 0, 2) in ask.where
    assert made.trace["sentences"][0]["grounded"] is True
    assert made.trace["answering"] == [1]


def test_citations_are_those_of_the_trust_score() -> None:
    for output in ("Alpha beta [1]. Delta [2][3].", "Alpha [9]. Beta.", REFUSAL):
        ours = score(output)
        (theirs,) = run(TrustScore(TrustScoreConfig(), "strict"), [row(output)], Replay(all_words))
        for key in ("citation_recall", "citation_precision"):
            assert ours.values.get(key) == theirs.values.get(key)


def test_the_statistics_over_a_set() -> None:
    rows = [
        row("Alpha beta [1]."),  # answerable, answered
        row("Omega [1]. Zeta [3]."),  # answerable, answered, half of it made up
        row(REFUSAL),  # answerable, refused
        row(REFUSAL, question="omega"),  # unanswerable, refused
        row("Delta [2].", question="omega"),  # unanswerable, answered
    ]
    made = published(metric(), run(metric(), rows, Replay(all_words)), "none")
    assert (made["judged_answerable_num"], made["answered_num"], made["num_samples"]) == (3, 3, 5)
    assert made["judged_refuse_prec"] == pytest.approx(50)
    assert made["judged_refuse_rec"] == pytest.approx(50)
    assert made["judged_answer_prec"] == pytest.approx(200 / 3)
    assert made["judged_answer_rec"] == pytest.approx(200 / 3)
    assert made["judged_macro_f1"] == pytest.approx((50 + 200 / 3) / 2)
    assert made["groundedness"] == pytest.approx(100 * 2.5 / 3)
    assert made["groundedness_by_statement"] == pytest.approx(75)
    assert made["answered_citation_rec"] == pytest.approx(100 * 2.5 / 3)


def test_what_needs_gold_answers_is_not_given() -> None:
    made = published(metric(), run(metric(), [row("Alpha [1].")], Replay(all_words)), "none")
    assert not {key for key in made if "trust" in key or "calib" in key or key in ("macro_f1", "refuse_f1")}
    assert not any(math.isinf(value) for value in made.values())


def test_both_modes_and_the_choice_by_name() -> None:
    for mode in compat.MODES:
        (made,) = build({"no_gold": {}}, mode)
        assert made.name == "no_gold"
    with pytest.raises(ConfigError, match=r"metrics\.no_gold\.answerable_if='Does it\?': has no \{question\}"):
        build({"no_gold": {"answerable_if": "Does it?"}}, "strict")
    with pytest.raises(ConfigError, match=r"metrics\.no_gold\.at_most_citations=0"):
        build({"no_gold": {"at_most_citations": 0}}, "strict")
