"""The project's prompt files and prompt configs: form, citations, and no overlap with the demo data."""

import json
import re
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from trust import demo
from trust.prompts import Prompt, PromptConfig

REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."
WITH_DOCS = ["em", "em5", "cm"]
NAMES = [*WITH_DOCS, "closedbook"]
FILE_OF = {
    "em": "em",
    "em5": "em5",
    "cm": "cm",
    "closedbook": "closedbook",
    "asqa": "em",
    "qampari": "em5",
    "eli5": "cm",
    "expertqa": "cm",
}
# Question words and words of no topic, which any two questions may share.
COMMON = {"about", "after", "before", "could", "first", "their", "there", "these", "which", "while", "would"}


def prompt_file(name: str) -> dict[str, Any]:
    return json.loads(resources.files("trust").joinpath("prompt_files", f"{name}.json").read_text(encoding="utf-8"))


def config(repo: Path, name: str) -> dict[str, Any]:
    return yaml.safe_load((repo / "conf" / "prompt" / f"{name}.yaml").read_text(encoding="utf-8"))


def demo_rows() -> list[dict[str, Any]]:
    lines = chain.from_iterable(demo.path(task).read_text(encoding="utf-8").splitlines() for task in demo.TASKS)
    return [json.loads(line) for line in lines]


def topic_words(question: str) -> set[str]:
    return {word for word in re.findall(r"\w+", question.casefold()) if len(word) > 4} - COMMON


@pytest.mark.parametrize("name", NAMES)
def test_form(name: str) -> None:
    file = prompt_file(name)
    assert file["demo_sep"] == "\n\n\n"
    assert file["doc_prompt"] == "Document [{ID}](Title: {T}): {P}\n"
    places = ["{INST}", "{Q}", "{A}"] + (["{D}"] if name in WITH_DOCS else [])
    assert sorted(re.findall(r"\{\w+\}", file["demo_prompt"])) == sorted(places)
    assert len(file["demos"]) >= 3
    questions = [shown["question"] for shown in file["demos"] + file.get("refusal_demos", [])]
    assert len(set(questions)) == len(questions)


@pytest.mark.parametrize("name", WITH_DOCS)
def test_refusal_prompts_name_and_show_the_refusal_sentence(name: str) -> None:
    file = prompt_file(name)
    assert REFUSAL not in file["instruction"]
    assert file["refusal_instruction"].startswith(file["instruction"])
    assert file["refusal_instruction"].count(REFUSAL) == 1
    assert len(file["refusal_demos"]) >= 2
    assert {shown["answer"] for shown in file["refusal_demos"]} == {REFUSAL}
    assert not any(REFUSAL in shown["answer"] for shown in file["demos"])


@pytest.mark.parametrize("name", WITH_DOCS)
def test_demonstrations_have_five_short_documents(name: str) -> None:
    file = prompt_file(name)
    for shown in file["demos"] + file["refusal_demos"]:
        assert len(shown["docs"]) == 5
        assert len({doc["text"] for doc in shown["docs"]}) == 5
        for doc in shown["docs"]:
            assert set(doc) == {"title", "text"}
            assert 10 <= len(doc["text"].split()) <= 40


@pytest.mark.parametrize("name", ["em", "cm"])
def test_each_sentence_cites_one_to_three_documents_before_the_full_stop(name: str) -> None:
    for shown in prompt_file(name)["demos"]:
        sentences = re.split(r"(?<=\.)\s", shown["answer"])
        for sentence in sentences:
            assert re.fullmatch(r"[^\[\]]+ (\[[1-5]\]){1,3}\.", sentence), sentence


def test_each_list_answer_has_one_citation_of_a_document_that_holds_it() -> None:
    for shown in prompt_file("em5")["demos"]:
        for item in shown["answer"].removesuffix(".").split(", "):
            match = re.fullmatch(r"([^\[\]]+) \[([1-5])\]", item)
            assert match, item
            doc = shown["docs"][int(match[2]) - 1]
            assert match[1].casefold() in f"{doc['title']} {doc['text']}".casefold()


@pytest.mark.parametrize("name", ["em", "cm"])
def test_cited_documents_hold_the_words_of_the_sentence(name: str) -> None:
    """A wrong number would cite a document on something else: at least half of the long words must be there."""
    for shown in prompt_file(name)["demos"]:
        for sentence in re.split(r"(?<=\.)\s", shown["answer"]):
            cited = [shown["docs"][int(number) - 1] for number in re.findall(r"\[(\d)\]", sentence)]
            held = {word for doc in cited for word in re.findall(r"\w+", f"{doc['title']} {doc['text']}".casefold())}
            words = topic_words(sentence)
            assert len(words & held) >= len(words) / 2, sentence


def test_closed_book_has_no_documents_and_no_citations() -> None:
    file = prompt_file("closedbook")
    assert "refusal_instruction" not in file
    assert all(not shown["docs"] and "[" not in shown["answer"] for shown in file["demos"])


def test_demonstrations_are_not_about_the_demo_data() -> None:
    rows = demo_rows()
    asked = {word for row in rows if row["language"] == "en" for word in topic_words(row["question"])}
    texts = {doc["text"] for row in rows for doc in row["docs"]}
    titles = {doc["title"].casefold() for row in rows for doc in row["docs"]}
    for name in NAMES:
        file = prompt_file(name)
        for shown in file["demos"] + file.get("refusal_demos", []):
            assert not topic_words(shown["question"]) & asked, shown["question"]
            assert not {doc["text"] for doc in shown["docs"]} & texts
            assert not {doc["title"].casefold() for doc in shown["docs"]} & titles


@pytest.mark.parametrize("name", [*FILE_OF, "auto"])
def test_configs_say_what_they_are_for_and_load(repo: Path, name: str) -> None:
    text = (repo / "conf" / "prompt" / f"{name}.yaml").read_text(encoding="utf-8")
    comment = text[: text.index("\nname:")]
    assert all(line.startswith("# ") for line in comment.splitlines())
    assert f"python -m jobs.respond model=smollm2 prompt={name} " in comment
    options = config(repo, name)
    assert options["name"] == name
    if name == "auto":
        files = {task: f"package://trust/prompt_files/{task}.json" for task in WITH_DOCS}
        assert options["files"] == {**files, "none": files["cm"]}
    else:
        assert options["file"] == f"package://trust/prompt_files/{FILE_OF[name]}.json"
    Prompt.load(PromptConfig(**options))


def test_every_config_of_the_group_is_tested(repo: Path) -> None:
    names = {file.stem for file in (repo / "conf" / "prompt").glob("*.yaml")}
    assert names >= {*FILE_OF, "auto"}


@pytest.mark.parametrize("shown", demo_rows(), ids=lambda row: row["id"])
def test_auto_renders_each_demo_row_with_its_task(repo: Path, shown: dict[str, Any]) -> None:
    prompt = Prompt.load(PromptConfig(**config(repo, "auto")))
    messages = prompt.render(shown)
    assert isinstance(messages, list)
    content = messages[0]["content"]
    assert content.count(prompt_file(shown["task"])["refusal_instruction"]) == 3
    assert content.count(REFUSAL) == 4
    assert all(doc["text"] in content for doc in shown["docs"])
    assert content.endswith("Answer:")


def test_closed_book_shows_no_document(repo: Path) -> None:
    row = demo_rows()[0]
    messages = Prompt.load(PromptConfig(**config(repo, "closedbook"))).render(row)
    assert isinstance(messages, list)
    assert "Document" not in messages[0]["content"]
    assert row["question"] in messages[0]["content"]
