import time

import pytest

from trust.text.citations import detach, read_upstream, remove_upstream, renumber, unread


def test_published_reading_and_its_residues() -> None:
    assert read_upstream("a [1, 2] b [1-3] c [2019] d[0") == [1, 1, 2019, 0]
    assert remove_upstream("A claim [1, 2].") == "A claim, 2."
    assert remove_upstream("A claim [1-3].") == "A claim-3."
    assert remove_upstream("A [x] | b [Document 2].") == "A [x b [Document 2."
    assert read_upstream(f"[{'9' * 6000}]") == [10**9]


@pytest.mark.parametrize(
    ("text", "clean", "numbers"),
    [
        ("Paris is the capital [1, 2].", "Paris is the capital.", [(1, 2)]),
        ("A claim [1-3].", "A claim.", [(1, 2, 3)]),
        ("A claim [3–1].", "A claim.", [(1, 2, 3)]),
        ("A claim [1-2, 5; 7 and 8].", "A claim.", [(1, 2, 5, 7, 8)]),
        ("A claim [0].", "A claim.", [(0,)]),
        ("A claim [1][1].", "A claim.", [(1, 1)]),
        ("A claim [1], [2].", "A claim.", [(1, 2)]),
        ("A claim [Document 2].", "A claim.", [(2,)]),
        (
            "A [Documents 1 and 2], b [doc. 3], c [Source: 4], d [Passage #5].",
            "A, b, c, d.",
            [(1, 2), (3,), (4,), (5,)],
        ),
        ("A claim【1】.", "A claim.", [(1,)]),
        ("事实［１，２］。", "事实。", [(1, 2)]),
        ("事实【文档2】。", "事实。", [(2,)]),
        ("حقيقة [١، ٢].", "حقيقة.", [(1, 2)]),
        ("तथ्य [१]।", "तथ्य।", [(1,)]),
        ("তথ্য [দলিল] [১, ২]।", "তথ্য [দলিল]।", [(1, 2)]),
        ("তথ্য। [১]। আরও।", "তথ্য। আরও।", [(1,)]),
        ("جمله [۱، ۲]. [سند ۳]", "جمله.", [(1, 2), (3,)]),
        ("جملة \u200f[\u200e1\u200f]\u200f.", "جملة\u200f.", [(1,)]),
        ("جملة [المصدر ١ و٢].", "جملة.", [(1, 2)]),
        ("事実［資料１と２］。", "事実。", [(1, 2)]),
        ("事实。【1】【2】。然后", "事实。然后", [(1, 2)]),
        ("사실 [문서 1 및 2].", "사실.", [(1, 2)]),
        ("ข้อเท็จจริง [เอกสาร ๑]", "ข้อเท็จจริง", [(1,)]),
        ("వాస్తవం [పత్రం 1 మరియు 2].", "వాస్తవం.", [(1, 2)]),
        ("तथ्य [दस्तावेज़ 1 और 2]।", "तथ्य।", [(1, 2)]),
        ("Fakta [dokumen 1 dan 2].", "Fakta.", [(1, 2)]),
        ("Väite [lähde 1]. Jambo [hati 2 na 3].", "Väite. Jambo.", [(1,), (2, 3)]),
        ("One. [1]. Two.", "One. Two.", [(1,)]),
        ("[1] One.", "One.", [(1,)]),
        ("One ([1]) two.", "One two.", [(1,)]),
        ("One[1]two", "One two", [(1,)]),
        ("北京[1]是", "北京是", [(1,)]),
        ("See [1](https://a.b/c_d) there", "See there", [(1,)]),
        ("A [^1] b", "A b", [(1,)]),
        ("Built in [2019].", "Built in.", [(2019,)]),
        ("A [1]\n[2] B", "A\nB", [(1,), (2,)]),
        ("A [1-999999].", "A.", [(1, 999999)]),
        (f"A [{'9' * 6000}].", "A.", [(10**9,)]),
        ("A [citation needed] [Figure 2] [a1].", "A [citation needed] [Figure 2] [a1].", []),
        ("A (1).", "A (1).", []),
    ],
)
def test_strict_reading_leaves_no_residue(text: str, clean: str, numbers: list[tuple[int, ...]]) -> None:
    found = detach(text)
    assert found.text == clean
    assert [place.numbers for place in found.places] == numbers


def test_places_and_origins_point_into_the_text() -> None:
    text = "[3] One [1]. Two[2]three."
    found = detach(text)
    assert [found.text[: place.at] for place in found.places] == ["", "One", "One. Two"]
    assert [text[place.start : place.end] for place in found.places] == ["[3]", "[1]", "[2]"]
    assert [place.leads for place in found.places] == [True, False, False]
    assert all(found.text[i] in (text[at], " ") for i, at in enumerate(found.origin))


def test_styles() -> None:
    assert detach("A (1) [2].", ("round",)).text == "A [2]."
    assert [place.numbers for place in detach("A (1, 2) 【3】.", ("round", "lenticular")).places] == [(1, 2, 3)]


def test_what_looks_like_a_citation_is_noticed() -> None:
    assert unread("A (1) b (Document 2) c [fig 3] d⁴.") == ["(1)", "(Document 2)", "[fig 3]", "⁴"]
    assert unread("جملة ]1[.") == ["]1["]
    assert unread("A (1954) b [sic] c.") == []


@pytest.mark.parametrize(
    "text", ["[" * 20000, "[1," * 10000, "[document " * 5000, "(" * 9000 + "[1]" * 3000, "[1" + " " * 9000]
)
def test_odd_texts_take_no_time(text: str) -> None:
    start = time.perf_counter()
    detach(text)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Paris [3]. In 3 years [1, 3].", "Paris [2]. In 3 years [1, 2]."),
        ("A [3-4] and 【3】 and [Document 4].", "A [2-3] and 【2】 and [Document 3]."),
        ("A [1][3], [9].", "A [1][2], [9]."),
        ("A ([3](https://x.org/3/4)).", "A ([2](https://x.org/3/4))."),
        ("[a 3] [2019]", "[a 3] [2019]"),
        ("٣ [٣].", "٣ [2]."),
        ("", ""),
    ],
)
def test_citations_get_other_numbers_and_nothing_else_changes(text: str, wanted: str) -> None:
    assert renumber(text, {1: 1, 3: 2, 4: 3}) == wanted
