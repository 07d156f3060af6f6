import pytest

from trust.text.normalize import count_words, has_content, normalize, normalize_answer


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
        ("القاهرة، والإسكندرية!", "ar", "قاهره اسکندریه"),
        ("للكتاب والد الله", "ar", "کتاب والد الله"),
        ("Der Preis: 1.200,50 €", "de", "preis 1200.50 €"),
        ("ジョン・スミス と 東 京", "ja", "ジョン スミスと東京"),
        ("1,200 कि.मी.", "hi", "1200 किमी"),
        ("C++ / C#", "en", "c + + c"),
        ("!?…", "en", ""),
        ("हिन्दी में", "hi", "हिंदी में"),
    ],
)
def test_strict_form(text: str, language: str, form: str) -> None:
    assert normalize(text, language) == form


def test_content_and_words() -> None:
    assert [has_content(text) for text in ("", " .!– ", "…", "5", "€", "😀", "字")] == [False] * 3 + [True] * 4
    assert [count_words(text) for text in ("It is so.", "北京, OK", "กก", "")] == [3, 4, 2, 0]
