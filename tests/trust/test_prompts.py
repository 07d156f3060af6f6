import copy
import json
import re
from pathlib import Path

import pytest
import yaml

from trust.config import load
from trust.errors import ConfigError, PreflightError, RowError
from trust.prompt_file import load_prompt
from trust.prompts import Prompt, PromptConfig
from trust.respond import RespondConfig

PUBLISHED = ("asqa_default", "asqa_closedbook", "eli5_default", "qampari_default")

DEMO = {"question": "Who?", "answer": "Ann [1].", "docs": [{"title": "A", "text": "Ann did."}]}
SMALL = {
    "instruction": "Do {Q} well.",
    "demo_sep": "\n###\n",
    "demo_prompt": "{INST}\n\nQuestion: {Q}\n\n{D}\nAnswer: {A}",
    "doc_prompt": "Document [{ID}](Title: {T}): {P}\n",
    "demos": [{**DEMO, "question": f"Who {n}?"} for n in range(4)],
    "refusal_instruction": "Refuse if you must.",
    "refusal_demos": [{**DEMO, "question": f"Lost {n}?", "answer": "I cannot say."} for n in range(4)],
}
ROW = {
    "task": "em",
    "question": "What is {A} in {D}?",
    "docs": [
        {"title": "One {Q}", "text": "First {P} {ID} [1]."},
        {"title": None, "text": "Second {INST} \\1 \\g<0>."},
        {"title": "Three", "text": "Third."},
    ],
}


@pytest.fixture
def small(tmp_path: Path) -> str:
    return _write(tmp_path, SMALL)


def _write(folder: Path, content: object) -> str:
    file = folder / "prompt.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return str(file)


def _prompt(source: str, /, **options: object) -> Prompt:
    defaults = {"name": "p", "file": source, "shots": 0, "docs": 2, "demo_docs": 1, "chat": False}
    return Prompt.load(PromptConfig(**{**defaults, **options}))


def _changed(folder: Path, path: str, value: object) -> str:
    content = copy.deepcopy(SMALL)
    *parents, last = path.split(".")
    place = content
    for key in parents:
        place = place[int(key)] if key.isdigit() else place[key]
    last = int(last) if last.isdigit() else last
    if value is None:
        del place[last]
    else:
        place[last] = value
    return _write(folder, content)


def test_the_exact_text_of_a_row_with_braces_that_are_no_places(small: str) -> None:
    assert _prompt(small).render(ROW) == (
        "Do {Q} well.\n\nQuestion: What is {A} in {D}?\n\n"
        "Document [1](Title: One {Q}): First {P} {ID} [1].\n"
        "Document [2](Title: ): Second {INST} \\1 \\g<0>.\n"
        "\nAnswer:"
    )


def test_demonstrations_come_first_with_answers_and_separators(small: str) -> None:
    text = _prompt(small, shots=2, docs=1).render(ROW)
    demos, own = text.split("\n###\n")[:-1], text.split("\n###\n")[-1]
    assert len(demos) == 2
    for demo in demos:
        assert re.fullmatch(
            r"Do \{Q\} well\.\n\nQuestion: Who \d\?\n\nDocument \[1\]\(Title: A\): Ann did\.\n\nAnswer: Ann \[1\]\.",
            demo,
        )
    assert own == _prompt(small, docs=1).render(ROW)


def test_chat_mode_is_one_user_message_with_the_whole_text(small: str) -> None:
    raw = _prompt(small, shots=1).render(ROW)
    assert _prompt(small, shots=1, chat=True).render(ROW) == [{"role": "user", "content": raw}]


def test_the_seed_alone_decides_the_demonstrations(small: str) -> None:
    drawn = {seed: _prompt(small, shots=2, seed=seed).render(ROW) for seed in range(12)}
    again = {seed: _prompt(small, shots=2, seed=seed).render({**ROW, "sample_id": "x"}) for seed in range(12)}
    assert drawn == again
    assert len(set(drawn.values())) > 3
    assert all(len(set(re.findall(r"Who \d", text))) == 2 for text in drawn.values())


@pytest.mark.parametrize(("shots", "answered", "refused"), [(1, 1, 0), (2, 1, 1), (3, 2, 1), (5, 3, 2)])
def test_refusal_prompts_split_their_demonstrations(small: str, shots: int, answered: int, refused: int) -> None:
    text = _prompt(small, shots=shots, refusal=True).render(ROW)
    assert (len(re.findall(r"Who \d", text)), len(re.findall(r"Lost \d", text))) == (answered, refused)
    assert text.count("Refuse if you must.") == shots + 1
    assert "Do {Q} well." not in text


def test_plain_prompts_show_no_refusals(small: str) -> None:
    text = _prompt(small, shots=4).render(ROW)
    assert "Lost" not in text
    assert "Refuse" not in text


def test_closed_book_has_neither_documents_nor_citations(small: str) -> None:
    text = _prompt(small, shots=2, docs=0).render(ROW)
    assert "Document" not in text
    assert "[1]" not in text
    assert "Answer: Ann.\n###\n" in text
    assert text.endswith("Question: What is {A} in {D}?\n\nAnswer:")


def test_documents_shown_are_the_first_of_the_row_in_its_order(small: str) -> None:
    assert _prompt(small, docs=2).shown(ROW) == ROW["docs"][:2]
    assert _prompt(small, docs=9).shown(ROW) == ROW["docs"]
    assert _prompt(small, docs=0).shown(ROW) == []
    assert _prompt(small, docs=2).shown({"docs": None}) == []


def test_a_row_without_documents_leaves_no_blank_for_them(small: str) -> None:
    assert _prompt(small).render({**ROW, "docs": None}).endswith("in {D}?\n\nAnswer:")


def test_a_demonstration_shows_all_that_it_cites(tmp_path: Path) -> None:
    docs = [{"title": f"T{n}", "text": "x"} for n in range(1, 6)]
    demo = {"question": "Q?", "answer": "Yes [4].", "docs": docs}
    text = _prompt(_write(tmp_path, {**SMALL, "demos": [demo]}), shots=1, docs=2).render(ROW)
    assert re.findall(r"Title: (T\d)", text) == ["T1", "T2", "T3", "T4"]


def test_list_answers_stand_one_a_line(tmp_path: Path) -> None:
    demo = {**DEMO, "answer": ["Ann [1]", "Bob [1]"]}
    text = _prompt(_write(tmp_path, {**SMALL, "demos": [demo]}), shots=1).render(ROW)
    assert "Answer:\nAnn [1]\nBob [1]\n###\n" in text


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("shots", [0, 1, 4])
def test_published_files(shared: Path, name: str, shots: int) -> None:
    file = shared / "data/rag/alce_prompts" / f"{name}.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    docs = 0 if "closedbook" in name else 5
    row = {"task": "em", "question": "Who wrote it?", "docs": [{"title": "T", "text": f"P{n}"} for n in range(6)]}
    text = _prompt(str(file), shots=shots, docs=docs).render(row)
    parts = text.split(content["demo_sep"])
    assert len(parts) == shots + 1
    assert text.count(content["instruction"]) == shots + 1
    for demo in content["demos"] if shots == 4 else []:
        assert sum(demo["question"] in part and part.endswith("Answer: " + demo["answer"]) for part in parts) == 1
        assert (demo["docs"][0]["text"] in text) == bool(docs)
    lines = "".join(f"Document [{n + 1}](Title: T): P{n}\n" for n in range(docs))
    middle = f"{lines}\n" if docs else ""
    assert parts[-1] == f"{content['instruction']}\n\nQuestion: Who wrote it?\n\n{middle}Answer:"


def test_the_published_refusal_form_is_read(tmp_path: Path) -> None:
    content = {key: value for key, value in SMALL.items() if key != "refusal_instruction"}
    content["positive_demos"] = content.pop("demos")
    text = _prompt(_write(tmp_path, content), shots=2, refusal=True).render(ROW)
    assert text.count("Do {Q} well.") == 3
    assert "Lost" in text


def test_prompts_by_task(small: str, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**SMALL, "instruction": "List."}), encoding="utf-8")
    prompt = _prompt("", files={"em": small, "em5": str(other)})
    assert prompt.render(ROW).startswith("Do {Q} well.")
    assert prompt.render({**ROW, "task": "em5"}).startswith("List.")
    with pytest.raises(RowError) as caught:
        prompt.render({**ROW, "task": "cm"})
    assert caught.value.reason == "no_prompt_for_task"
    with pytest.raises(ConfigError, match="use prompt=file"):
        _prompt(small, files={"em5": str(other)})


def test_a_prompt_crosses_processes_as_plain_data(small: str) -> None:
    prompt = _prompt(small, shots=3, refusal=True)
    plain = json.loads(json.dumps(prompt.to_plain()))
    Path(small).unlink()
    assert Prompt.from_plain(plain).render(ROW) == prompt.render(ROW)


def test_identity_is_of_the_text_not_of_the_place(small: str, tmp_path: Path) -> None:
    copied = tmp_path / "copy.json"
    copied.write_bytes(Path(small).read_bytes())
    assert _prompt(small).identity() == _prompt(str(copied)).identity()
    assert _prompt(small).identity() != _prompt(small, shots=1).identity()
    assert _prompt(small).identity() != _prompt(_changed(tmp_path, "instruction", "Other.")).identity()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**ROW, "question": "  "}, "question_empty"),
        ({**ROW, "question": None}, "question_empty"),
        ({**ROW, "docs": [{"title": "x", "text": None}]}, "doc_without_text"),
    ],
)
def test_bad_rows(small: str, row: dict, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        _prompt(small).render(row)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("instruction", None, "instruction is missing: add it"),
        ("demo_sep", 3, "demo_sep must be a text, not a number"),
        ("refusal_instruction", ["x"], "refusal_instruction must be a text, not a list"),
        ("refusal_demo", [], "unknown key refusal_demo; did you mean refusal_demos?; known here: instruction,"),
        ("positive_demos", [], "positive_demos and demos are two names of one key: keep one"),
        ("doc_prompt", "[{ID}] no place", "doc_prompt must hold {P} (text) exactly once, not 0 times"),
        ("doc_prompt", "[{ID}] {P} {P}", "doc_prompt must hold {P} (text) exactly once, not 2 times"),
        ("doc_prompt", "{P}", "demos[0].answer cites documents by number, which doc_prompt does not show: put {ID}"),
        (
            "doc_prompt",
            "[{ID}] {TEXT} {P}",
            "doc_prompt has no place {TEXT}; did you mean {T}?; its places are {ID} (nu",
        ),
        ("doc_prompt", "[{ID}] {Q} {P}", "doc_prompt has no place {Q}; it belongs into demo_prompt; its places"),
        ("demo_prompt", "{INST} {Q}", "demo_prompt must hold {A} (answer) exactly once, not 0 times"),
        ("demo_prompt", "{INST} {A}", "demo_prompt must hold {Q}, or the model never sees the question"),
        ("demo_prompt", "{Q} {D} {A}", "demo_prompt must hold {INST}, or the model never sees the instruction"),
        ("demo_prompt", "{INST} {question} {D} {A}", "demo_prompt has no place {question}; did you mean {Q}?"),
        ("demo_prompt", "{INST} {D} {A} {Q}", "demo_prompt has {Q} behind {A}, where a row's prompt ends"),
        ("demos", {"a": 1}, "demos must be a list, not an object"),
        ("demos.1", "Who?", "demonstration 2: demos[1] must be an object with question, answer and docs, not a text"),
        ("demos.2.question", "", "demonstration 3: demos[2].question must be a text that is not empty"),
        ("demos.2.question", None, "demonstration 3: demos[2].question is missing: add what is asked"),
        ("demos.1.anwser", "x", "demonstration 2: demos[1] has an unknown key anwser; did you mean answer?"),
        ("demos.1.answer", None, "demonstration 2: demos[1].answer is missing: add what the model is to answer"),
        ("demos.1.answer", 7, "demos[1].answer must be a text or a list of texts, not empty, not a number"),
        ("demos.1.answer", "It is [2].", "demonstration 2: demos[1].answer cites [2], but there are 1 documents: add"),
        ("demos.1.answer", "It is [0].", "demos[1].answer cites [0]"),
        ("demos.3.docs", None, "demos[3].answer cites [1], but there are 0 documents"),
        ("refusal_demos.3.docs", None, "demonstration 4: refusal_demos[3].docs is missing: add the documents"),
        ("demos.0.docs", "Ann did.", "demos[0].docs must be a list, not a text"),
        ("demos.0.docs.0", "Ann did.", "demos[0].docs[0] must be an object with title and text, not a text"),
        ("demos.0.docs.0.text", None, "demonstration 1: demos[0].docs[0].text is missing: add what the document says"),
        (
            "demos.0.docs.0.title",
            None,
            "demonstration 1: demos[0].docs[0].title is missing (doc_prompt has {T}): add it",
        ),
        ("demos.0.docs.0.title", 5, "demos[0].docs[0].title must be a text, not a number"),
        ("demos.0.docs.0.txt", "x", "demos[0].docs[0] has an unknown key txt; did you mean text?"),
        (
            "refusal_demos.3.answer",
            [],
            "refusal_demos[3].answer must be a text or a list of texts, not empty, not an em",
        ),
    ],
)
def test_errors_name_file_key_and_demonstration(tmp_path: Path, path: str, value: object, said: str) -> None:
    file = _changed(tmp_path, path, value)
    with pytest.raises(ConfigError) as caught:
        load_prompt(file)
    assert str(caught.value).startswith(file + ":")
    assert said in str(caught.value)


def test_what_published_files_carry_beside_is_left_alone(tmp_path: Path) -> None:
    doc = {"id": "7", "title": "A", "text": "Ann did.", "answers_found": [1], "rec_score": 0.5}
    text = _prompt(_changed(tmp_path, "demos", [{**DEMO, "id": "q", "docs": [doc]}]), shots=1).render(ROW)
    assert text.startswith("Do {Q} well.\n\nQuestion: Who?\n\nDocument [1](Title: A): Ann did.\n\nAnswer: Ann [1].")


def test_titles_and_documents_are_needed_only_where_they_are_shown(tmp_path: Path) -> None:
    demos = [{"question": "Who?", "answer": "Ann [1].", "docs": [{"text": "Ann did."}]}]
    bare = {**SMALL, "doc_prompt": "[{ID}] {P}\n", "demos": demos, "refusal_demos": []}
    assert "[1] Ann did.\n" in _prompt(_write(tmp_path, bare), shots=1, docs=1).render(ROW)
    closed = {**bare, "demo_prompt": "{INST} {Q} {A}", "demos": [{"question": "Who?", "answer": "Ann."}]}
    assert _prompt(_write(tmp_path, closed), shots=1, docs=0).render(ROW).startswith("Do {Q} well. Who? Ann.\n###\n")


def test_files_that_are_not_there_or_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="nowhere"):
        load_prompt(str(tmp_path / "nowhere.json"))
    with pytest.raises(PreflightError, match="nowhere"):
        load_prompt("package://trust/nowhere.json")
    for name, content, said in (
        ("a.json", b'{"instruction": "x",\n  "demos": [,]}', "a.json: line 2, column 13: not JSON: Expecting value"),
        ("a.yaml", b"instruction: x\ndemos: [\n  }", "a.yaml: line 3, column 3: not YAML: expected the node content"),
        ("b.json", b'{"instruction": "\xff\xfe"}', "b.json: not a text in UTF-8:"),
        ("c.json", b"[]", "c.json: it holds an empty list: a prompt file is an object with instruction,"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load_prompt(str(tmp_path / name))
        assert said in str(caught.value)


def test_yaml_says_the_same(small: str, tmp_path: Path) -> None:
    file = tmp_path / "prompt.yaml"
    file.write_text(yaml.safe_dump(SMALL), encoding="utf-8")
    assert _prompt(str(file), shots=3, refusal=True).identity() == _prompt(small, shots=3, refusal=True).identity()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shots": 5}, "prompt.shots=5 needs 5 of demos, the file has 4: add demonstrations, or set prompt.shots=4"),
        ({"shots": 9, "refusal": True}, "needs 5 of demos, the file has 4: add demonstrations, or set prompt.shots=8"),
        ({"shots": -1}, "cannot be negative"),
        ({"demo_docs": -1}, "prompt.demo_docs=-1: cannot be negative"),
        ({"file": None}, "prompt.file is not set"),
        (
            {"shots": 4, "docs": 3, "demo_docs": None},
            "docs has 1 documents, and prompt.docs=3 shows 3: add documents, or set prompt.demo_docs=1",
        ),
        ({"shots": 4, "demo_docs": 2}, "docs has 1 documents, and prompt.demo_docs=2 shows 2"),
    ],
)
def test_options_that_do_not_fit(small: str, options: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        _prompt(small, **options)


def test_too_few_refusals(tmp_path: Path) -> None:
    file = _changed(tmp_path, "refusal_demos", [{**DEMO, "answer": "I cannot say."}])
    with pytest.raises(ConfigError, match=r"needs 2 of refusal_demos, the file has 1: .* set prompt\.shots=3"):
        _prompt(file, shots=4, refusal=True)


def test_a_demonstration_with_too_few_documents_is_named(tmp_path: Path) -> None:
    docs = [{"title": "A", "text": "x"}] * 3
    demos = [{**DEMO, "docs": docs}, {**DEMO, "docs": docs[:2]}]
    file = _changed(tmp_path, "demos", demos)
    with pytest.raises(ConfigError, match=r"demonstration 2: demos\[1\]\.docs has 2 documents, and prompt\.docs=3"):
        _prompt(file, shots=2, docs=3, demo_docs=None)
    assert _prompt(file, shots=2, docs=3, demo_docs=2).render(ROW).count("(Title: A): x") == 4
    assert _prompt(file, shots=2, docs=2, demo_docs=None).render(ROW).count("(Title: A): x") == 4


def test_the_option_for_demonstrations_is_no_part_of_older_runs_identity(small: str) -> None:
    assert "demo_docs" not in _prompt(small, demo_docs=None).identity()
    assert _prompt(small, demo_docs=1).identity()["demo_docs"] == 1


def test_files_that_do_not_fit_the_options(tmp_path: Path) -> None:
    without = _changed(tmp_path, "demo_prompt", "{INST} {Q} {A}")
    with pytest.raises(ConfigError, match=r"prompt\.docs=0"):
        _prompt(without)
    assert _prompt(without, docs=0).render(ROW) == "Do {Q} well. What is {A} in {D}?"
    plain = {key: value for key, value in SMALL.items() if not key.startswith("refusal")}
    with pytest.raises(ConfigError, match="refusal_demos"):
        _prompt(_write(tmp_path, plain), refusal=True)


PASSAGES = [{"title": f"T{n}", "text": f"one two three four five {n}"} for n in range(10)]


def _words(text: str, tokens: int) -> str:
    return " ".join(text.split(" ")[:tokens])


@pytest.mark.parametrize("variant", ["vanilla", "role", "repeat", "explanation"])
def test_nomiracl_prompts_show_ten_passages_and_both_verdicts(variant: str) -> None:
    config = load("respond", RespondConfig, [f"prompt=nomiracl_{variant}", "prompt.chat=false", "model=smollm2"])
    assert config.sampling.max_tokens == (400 if variant == "explanation" else 50)
    prompt = Prompt.load(config.prompt)
    rendered = prompt.render({"task": "none", "question": "Who was it?", "docs": PASSAGES})
    assert isinstance(rendered, str)
    assert '"Yes, answer is present"' in rendered
    assert '"I don\'t know"' in rendered
    assert "\n\nQUESTION:\nWho was it?\n\nCONTEXTS:\n[1] T0: one two three four five 0\n\n[2] T1: " in rendered
    assert rendered.count("Who was it?") == (2 if variant == "repeat" else 1)
    assert rendered.endswith("OUTPUT:") == (variant != "explanation")
    with pytest.raises(RowError, match="9 documents, the prompt shows exactly 10") as caught:
        prompt.render({"task": "none", "question": "Who was it?", "docs": PASSAGES[:9]})
    assert caught.value.reason == "wrong_number_of_docs"


def test_documents_are_cut_with_their_titles(small: str) -> None:
    config = PromptConfig(name="p", file=small, shots=0, docs=2, chat=False, doc_tokens=3)
    whole = Prompt.load(config)
    prompt = Prompt(config, whole.texts, _words)
    row = {"task": "em", "question": "Who?", "docs": [*PASSAGES[:1], {"title": None, "text": "a b c d"}]}
    assert [doc["text"] for doc in prompt.shown(row)] == ["one two", "a b"]
    assert "(Title: T0): one two\n" in prompt.render(row)
    assert prompt.identity() == whole.identity()
    assert prompt.identity() != _prompt(small).identity()


def test_an_endpoint_cannot_cut_documents() -> None:
    words = ["engine=openai", "engine.base_url=http://x/v1", "model=served", "model.path=m", "prompt=nomiracl_vanilla"]
    with pytest.raises(ConfigError, match=r"prompt\.doc_tokens=375"):
        load("respond", RespondConfig, words)
    assert load("respond", RespondConfig, [*words, "prompt.doc_tokens=null"]).prompt.doc_tokens is None
