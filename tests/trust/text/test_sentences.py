import random
from pathlib import Path

import pytest

from trust.errors import PreflightError
from trust.text import sentences
from trust.text.citations import detach
from trust.text.sentences import preflight, punkt, split, split_list


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Dr. Smith lives in the U.S. He has 3.5 dogs. The U.S. Army is big.",
         ["Dr. Smith lives in the U.S.", "He has 3.5 dogs.", "The U.S. Army is big."]),
        ("Prices rose 3.5% in Jan. 2020 [1]. See Fig. 2 [2][3].", ["Prices rose 3.5% in Jan. 2020.", "See Fig. 2."]),
        ("It was approx. 5 p.m. when Gen. Lee left. (He left.) She wrote vol. 2.",
         ["It was approx. 5 p.m. when Gen. Lee left.", "(He left.)", "She wrote vol. 2."]),
        ("J. R. R. Tolkien wrote it. Washington, D.C. is far.", ["J. R. R. Tolkien wrote it.", "Washington, D.C. is far."]),
        ("1. First [1].\n2. Second [2]. Third.\n\n- Fourth\n* Fifth", ["First.", "Second.", "Third.", "Fourth", "Fifth"]),
        ("1954. That was it.\nYes", ["1954.", "That was it.", "Yes"]),
        ("One line\nnext line", ["One line", "next line"]),
        ("**Bold** claim [1].", ["Bold claim."]),
        ("[1]", []),
        (" . \n - \n", []),
        ("", []),
    ],
)  # fmt: skip
def test_english(text: str, claims: list[str]) -> None:
    assert [sentence.claim for sentence in split(text, "en")] == claims


@pytest.mark.parametrize(
    ("language", "text", "claims"),
    [
        ("ar", "هذه جملة. هل هذه جملة؟ نعم.", 3),
        ("bn", "এটি একটি বাক্য। এটি দ্বিতীয়।", 2),
        ("de", "Das ist z. B. ein Haus. Am 3. Oktober 1990 war die Feier. Dr. Müller kam.", 3),
        ("en", "This is one. This is two.", 2),
        ("es", "El Sr. Pérez vive en EE. UU. desde 1990. ¿Por qué? Porque sí.", 3),
        ("fa", "این یک جمله است. آیا این؟ بله.", 3),
        ("fi", "Tämä on lause. Tässä on toinen.", 2),
        ("fr", "M. Dupont est arrivé. Il est né en 1950.", 2),
        ("hi", "यह एक वाक्य है। यह दूसरा है।", 2),
        ("id", "Ini kalimat. Dr. Budi datang.", 2),
        ("ja", "東京は首都です。人口は多い。", 2),
        ("ko", "이것은 문장입니다. 두 번째 문장입니다.", 2),
        ("ru", "А. С. Пушкин родился в 1799 г. в Москве. Это т. е. предложение.", 2),
        ("sw", "Hii ni sentensi. Dkt. Juma ni daktari.", 2),
        ("te", "ఇది ఒక వాక్యం. ఇది రెండవది.", 2),
        ("th", "นี่คือประโยค [1] นี่คืออีกประโยค [2]", 2),
        ("yo", "Èyí ni gbólóhùn. Èyí ni èkejì.", 2),
        ("zh", "北京是首都。它很大。人口2.1千万！", 3),
        ("und", "北京是首都。它很大。", 2),
    ],
)
def test_languages(language: str, text: str, claims: int) -> None:
    assert len(split(text, language)) == claims


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("This is one. [1] This is two.", [(1,), ()]),
        ("This is one. [1]. This is two. [2]", [(1,), (2,)]),
        ("One [1][2]. Two.", [(1, 2), ()]),
        ("[1] One. [2] Two.", [(1,), (2,)]),
        ("[1] One [2]. Two. [3]", [(1, 2), (3,)]),
        ("One.\n[1]\nTwo.", [(1,), ()]),
        ("One\n\n[1] Two", [(), (1,)]),
        ("- One [1]\n- [2] Two", [(1,), (2,)]),
        ("[1] [2]", []),
        ("北京是首都。[1]它很大[2]。", [(1,), (2,)]),
    ],
)
def test_citations_find_their_sentence(text: str, numbers: list[tuple[int, ...]]) -> None:
    assert [sentence.numbers for sentence in split(text, "en")] == numbers


def test_text_is_as_written_and_lead_ins_are_known() -> None:
    found = split("## Head\nThese are two:\n1. One [1].\n[2] Two: [3]", "en")
    assert [sentence.text for sentence in found] == ["## Head", "These are two:", "1. One [1].", "[2] Two: [3]"]
    assert [sentence.lead_in for sentence in found] == [True, True, False, False]
    assert found[2].cited == ((3, 1),)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("alpha [1], delta [2], nope [1].", [("alpha", (1,)), ("delta", (2,)), ("nope.", (1,))]),
        ("alpha [1, 2], [3], delta", [("alpha", (1, 2, 3)), ("delta", ())]),
        ("1. Washington, D.C. [1]\n2. Paris [2]", [("Washington, D.C.", (1,)), ("Paris", (2,))]),
        ("1,000 [1]; 2", [("1,000", (1,)), ("2", ())]),
        ("東京 [1]、大阪", [("東京", (1,)), ("大阪", ())]),
        ("- one, two", [("one", ()), ("two", ())]),
        (" ", []),
    ],
)
def test_lists(text: str, items: list[tuple[str, tuple[int, ...]]]) -> None:
    assert [(item.claim, item.numbers) for item in split_list(text)] == items


def test_any_text_is_cut_without_loss_of_citations() -> None:
    rng = random.Random(0)
    bits = ["[1]", " [2, 3]", "【3】", ". ", "。", "\n", "- ", "1. ", "(A b.) ", "\0", "\r\n", "\u2028", "Dr. ", "é", "北京",
            "สวัสดี", " ", "**", "##", "“", ":", "[", ")", "x", "3.5", "😀", "İ", "…", " but "]  # fmt: skip
    for _ in range(500):
        text = "".join(rng.choice(bits) for _ in range(rng.randrange(25)))
        for language in ("en", "th", "und"):
            found = split(text, language)
            assert all(sentence.claim.strip() for sentence in found)
            written = [number for place in detach(text).places for number in place.numbers]
            assert sorted(n for sentence in found for n in sentence.numbers) == (sorted(written) if found else [])


def test_punkt_is_the_published_splitter(nltk_data: Path) -> None:
    preflight("punkt")
    assert punkt("Alpha beta. [1] Delta epsilon. [2]") == ["Alpha beta.", "[1] Delta epsilon.", "[2]"]


def test_without_its_data_punkt_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import nltk

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    sentences._punkt.cache_clear()
    try:
        with pytest.raises(PreflightError, match=r"punkt_tab.*NLTK_DATA"):
            preflight("punkt")
    finally:
        sentences._punkt.cache_clear()
