"""Prompts for writers, their tags, answer lists and refusal sentences."""

from typing import Any

import pytest
import yaml

from trust.align.minimal_citations import WAYS
from trust.align.positive_texts import Label, as_list, joined, listable, prompt, read_tagged, refusal
from trust.errors import RowError
from trust.text.languages import SUPPORTED
from trust.text.refusals import Detector
from trust.text.sentences import split

DOCS = [{"title": "Paris", "text": "Paris {{ x }} [3]."}, {"title": None, "text": "Noise."}, {"text": "Lyon."}]
ROW: dict[str, Any] = {"question": "Which cities?", "docs": DOCS}
LABELS = [Label(1, "Paris", frozenset({0})), Label(2, "Lyon", frozenset({2, 0}))]


def asked(task: str, row: dict[str, Any] = ROW) -> str:
    (message,) = prompt(task, row, LABELS, 4)
    assert message["role"] == "user"
    return message["content"].split("Now your task:")[1]


def test_the_writer_of_em_is_shown_the_supporting_documents_and_the_labels() -> None:
    assert asked("em") == (
        "\n\nQuestion: Which cities?\n\nDocuments:\nTitle: Paris\nParis {{ x }} [3].\n\nLyon.\n\n"
        "Short answers:\n[Answer Label 1]: Paris\n[Answer Label 2]: Lyon\n\nAnswer:"
    )


def test_the_writer_of_cm_is_shown_the_claims_alone() -> None:
    assert asked("cm") == ("\n\nQuestion: Which cities?\n\nClaims:\n[Claim 1]: Paris\n[Claim 2]: Lyon\n\nAnswer:")
    assert "at most 4 sentences" in prompt("cm", ROW, LABELS, 4)[0]["content"]


def test_a_supporting_document_without_text_is_named() -> None:
    row = ROW | {"docs": [{"title": "Paris", "text": None}, *DOCS[1:]]}
    with pytest.raises(RowError, match="document 1 has no text"):
        asked("em", row)


def read(text: str, task: str = "cm", language: str = "en", known: tuple[int, ...] = (1, 2, 3)) -> Any:
    kept, deleted = read_tagged(text, task, language, known)
    return [(one.text, set(one.labels)) for one in kept], deleted


def refused(text: str, task: str = "cm") -> str:
    with pytest.raises(RowError) as error:
        read(text, task)
    assert repr(text) in error.value.detail
    return error.value.reason


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Paris is it [Claim 1].", [("Paris is it.", {1})]),
        ("Paris [Claim 1] and Lyon [Claim 2] are it.", [("Paris and Lyon are it.", {1, 2})]),
        ("Both are [Claim 1][Claim 3].", [("Both are.", {1, 3})]),
        ("Both are [Claim 1, Claim 3].", [("Both are.", {1, 3})]),
        ("Both are [claims 1 and 3].", [("Both are.", {1, 3})]),
        ("All are [Claim 1, 2, and 3].", [("All are.", {1, 2, 3})]),
        ("Both are【Claim 1】.", [("Both are.", {1})]),
        ("It is (Paris) [Claim #1]!", [("It is (Paris)!", {1})]),
        ("Paris is it. [Claim 1] Lyon is not. [Claim 2]", [("Paris is it.", {1}), ("Lyon is not.", {2})]),
        ("The U.S. Army won [Claim 1]", [("The U.S. Army won", {1})]),
        ("- Paris [Claim 1].\n- Lyon [Claim 2].", [("- Paris.", {1}), ("- Lyon.", {2})]),
    ],
)
def test_tags_are_read_and_nothing_else_of_a_sentence_changes(text: str, kept: Any) -> None:
    assert read(text) == (kept, 0)


def test_tags_of_em() -> None:
    assert read("It is Paris [Answer Label 1]. Or Lyon [Label 2].", "em") == (
        [("It is Paris.", {1}), ("Or Lyon.", {2})],
        0,
    )
    assert refused("It is Paris [Claim 1].", "em") == "no_tagged_sentence"


def test_tags_of_other_languages() -> None:
    assert read("巴黎是首都[Claim 1]。里昂也是[Claim 2]。", language="zh") == (
        [("巴黎是首都。", {1}), ("里昂也是。", {2})],
        0,
    )
    assert read("Ist es Paris [Claim 1]? Ja.", language="de") == ([("Ist es Paris?", {1})], 1)


def test_sentences_without_a_tag_are_left_out_and_counted() -> None:
    assert read("So. Paris is it [Claim 1]. I hope that helps! Lyon is not [Claim 2].") == (
        [("Paris is it.", {1}), ("Lyon is not.", {2})],
        2,
    )
    assert read("Rome is it [Claim 9]. Paris is it [Claim 1].") == ([("Paris is it.", {1})], 1)


# pitfalls.md B66
@pytest.mark.parametrize("text", ["Paris is it [1].", "Paris is it.", "", " \n", "Paris is it [Claim 9].", "[Claim 1]"])
def test_a_text_in_which_nothing_is_tagged_is_refused(text: str) -> None:
    assert refused(text) == "no_tagged_sentence"


# pitfalls.md B64
@pytest.mark.parametrize(
    "text",
    [
        "Paris [1] is it [Claim 1].",
        "Paris [Claim 9] is it [Claim 1].",
        "Paris [sic] is it [Claim 1].",
        "Paris is it [Claim 1 [Claim 1].",
        "Paris is it [Claim 1]].",
        "Paris [Claim 1, 9] is it [Claim 1].",
        "Paris 【2】 is it [Claim 1].",
        "Paris is [Claim 1-3] it [Claim 1].",
    ],
)
def test_a_bracket_that_is_no_tag_refuses_the_text(text: str) -> None:
    assert refused(text) == "unknown_bracket"


def test_what_parts_sentences_stays() -> None:
    kept, _ = read_tagged("One [Claim 1].\n\nGone. Two [Claim 2]. Three [Claim 3].", "cm", "en", (1, 2, 3))
    assert joined([(one.gap, one.text) for one in kept]) == "One. Two. Three."
    kept, _ = read_tagged("One [Claim 1].\n\nTwo [Claim 2].", "cm", "en", (1, 2))
    assert joined([(one.gap, one.text) for one in kept]) == "One.\n\nTwo."
    assert joined([("", "a."), ("", "b.")]) == "a. b."
    assert joined([("", "一。"), ("", "二。")]) == "一。二。"


def test_lists_by_language() -> None:
    items = ["A [1]", "B [2]"]
    made = {language: as_list(items, language, WAYS["strict"]) for language in ("en", "zh-Hant", "ja", "ar", "hi")}
    assert made == {
        "en": "A [1], B [2].",
        "zh-Hant": "A [1]、B [2]。",
        "ja": "A [1]、B [2]。",
        "ar": "A [1]، B [2].",
        "hi": "A [1], B [2]।",
    }
    assert as_list(items, "zh", WAYS["upstream"]) == "A [1], B [2]."
    assert listable("1,000")
    assert not any(map(listable, ("Washington, D.C.", "a; b", "a [b]", "。")))


def test_every_language_has_a_refusal_that_our_own_detector_knows() -> None:
    for language in SUPPORTED:
        sentence = refusal(language, {})
        assert Detector().classify(split(sentence, language), language).response == "refused", language
    assert refusal("en-GB", {}) == (
        "I apologize, but I couldn't find an answer to your question in the search results."
    )


def test_a_language_without_a_refusal_fails_and_may_be_given_one() -> None:
    for language in ("it", "und"):
        with pytest.raises(
            RowError, match=rf"no refusal sentence in {language}: give one as refusals\.{language}="
        ) as told:
            refusal(language, {})
        assert told.value.reason == "no_refusal_sentence"
    assert refusal("it", {"it": "Non lo so."}) == "Non lo so."
    assert refusal("en", {"en": "I could not find an answer."}) == "I could not find an answer."


def test_the_file_names_only_languages_that_we_have_rules_for(repo: Any) -> None:
    assert set(yaml.safe_load((repo / "trust/align/refusal_sentences.yaml").read_text())) == SUPPORTED
