import pytest

from trust.text.normalize import base_language, contains, count_words, has_content, normalize, normalize_answer


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("I apologize, but I couldn't find an answer", "i apologize but i couldnt find answer"),
        ("The", ""),
        ("  A  big,  THE end!", "big end"),
        ("Théâtre – a", "théâtre –"),
    ],
)
def test_published_form(text: str, form: str) -> None:
    assert normalize_answer(text) == form


@pytest.mark.parametrize(
    ("text", "language", "form"),
    [
        ("The U.S. Army's", "en", "us army s"),
        ("The Beatles", "und", "the beatles"),
        ("Die Straße", "de", "strasse"),
        ("L’eau", "fr", "eau"),
        ("1,000 and 3.5 and 3,5", "en", "1000 and 3.5 and 3,5"),
        ("ＡＢＣ１２", "ja", "abc12"),
        ("東 京 タワー", "ja", "東京タワー"),
        ("می\u200cدانم", "fa", "میدانم"),
        ("C++ / C#", "en", "c + + c"),
        ("!?…", "en", ""),
        ("हिन्दी में", "hi", "हिन्दी में"),
    ],
)
def test_strict_form(text: str, language: str, form: str) -> None:
    assert normalize(text, language) == form


@pytest.mark.parametrize(
    ("text", "answer", "language", "found"),
    [
        ("Australia", "US", "en", False),
        ("in 2010", "10", "en", False),
        ("in 2010, 10 of them", "10", "en", True),
        ("3.5 dogs", "5", "en", False),
        ("Jean‑Pierre’s", "Jean Pierre", "en", True),
        ("anything", "The", "en", False),
        ("首都是北京市", "北京", "zh", True),
        ("2010年", "10", "zh", False),
        ("共10年", "10", "zh", True),
        ("อยู่กรุงเทพครับ", "กรุงเทพ", "th", True),
        ("東京は首都", "東京", "und", True),
        ("서울은 수도", "서울", "ko", True),
        ("남서울", "서울", "ko", False),
    ],
)
def test_containment(text: str, answer: str, language: str, found: bool) -> None:
    assert contains(normalize(text, language), normalize(answer, language)) is found


def test_content_words_and_language() -> None:
    assert [has_content(text) for text in ("", " .!– ", "…", "5", "€", "😀", "字")] == [False] * 3 + [True] * 4
    assert [count_words(text) for text in ("It is so.", "北京, OK", "กก", "")] == [3, 4, 2, 0]
    assert [base_language(code) for code in ("zh-Hant", "pt_BR", "EN", "und")] == ["zh", "pt", "en", "und"]
