"""NoMIRACL verdicts: the published rules in their order with their faults, and the last explicit verdict without them."""

import pytest

from trust.text.languages import SUPPORTED
from trust.text.verdicts import explicit_verdict, published_verdict

YES, UNKNOWN, INVALID = "answer_present", "i_dont_know", "invalid"


@pytest.mark.parametrize(
    ("text", "published", "explicit"),
    [
        ("Yes, answer is present", YES, YES),
        ("I don't know.", UNKNOWN, UNKNOWN),
        ("I don’t know", INVALID, UNKNOWN),  # a curly apostrophe
        ("I do not know", INVALID, UNKNOWN),
        ("Yes", INVALID, YES),
        ("No.", INVALID, UNKNOWN),
        ("", INVALID, INVALID),
        ("\n", INVALID, INVALID),
        ("[3]", YES, INVALID),
        ("The capital is Paris.", INVALID, INVALID),
        ("No answer is present in the contexts.", YES, UNKNOWN),
        ("No, answer is present", YES, INVALID),
        ("Yes, I don't know.", UNKNOWN, INVALID),
        ("The answer is not present in any of the contexts", UNKNOWN, UNKNOWN),
        ("It cannot be said that an answer is present.", YES, UNKNOWN),
        ("None of the contexts mentions the year.", INVALID, UNKNOWN),
        ("**Yes, answer is present.**", YES, YES),
        ('Please respond with either "Yes, answer is present" or "I don\'t know".', INVALID, INVALID),
        ("Please select one of the options:\n\nYes, answer is present\nI don't know", INVALID, INVALID),
        ('I don\'t know (unless context [10] is it: then it would be "Yes, answer is present")', INVALID, UNKNOWN),
        ("Yes, answer is present in context [1].\nI don't know in context [2].", INVALID, YES),
        ("Yes, answer is present in [1].\nNo, answer is not present in the other contexts.", YES, YES),
        ("1. No, answer is not present.\n2. Yes, answer is present.\n3. No, answer is not present.", YES, YES),
        (
            '## Explanation: one could say "Yes, answer is present", but no passage names it. ## Answer: I don\'t know',
            INVALID,
            UNKNOWN,
        ),
        ("## Explanation: I don't know all of it, but [2] has it. ## Answer: Yes, answer is present", INVALID, YES),
    ],
)
def test_english(text: str, published: str, explicit: str) -> None:
    assert published_verdict(text).said == published
    assert explicit_verdict(text, "en").said == explicit


def test_both_phrases_are_invalid_by_the_published_rules_however_often_one_stands() -> None:
    text = "yes, answer is present yes, answer is present i don't know"
    assert published_verdict(text).said == INVALID


@pytest.mark.parametrize(
    ("language", "yes", "unknown"),
    [
        ("ar", "نعم، الإجابة موجودة", "لا أعرف"),
        ("bn", "হ্যাঁ, উত্তর আছে", "আমি জানি না"),
        ("de", "Ja, Antwort ist vorhanden", "Ich weiß es nicht"),
        ("es", "Sí, la respuesta está presente", "No lo sé"),
        ("fa", "بله، پاسخ وجود دارد", "نمی‌دانم"),
        ("fi", "Kyllä, vastaus löytyy", "En tiedä"),
        ("fr", "Oui, la réponse est présente", "Je ne sais pas"),
        ("hi", "हाँ, उत्तर मौजूद है", "मुझे नहीं पता"),
        ("id", "Ya, jawaban ada", "Saya tidak tahu"),
        ("ja", "はい、答えはあります", "わかりません"),
        ("ko", "네, 답변이 있습니다", "모르겠습니다"),
        ("ru", "Да, ответ есть", "Я не знаю"),
        ("sw", "Ndiyo, jibu lipo", "Sijui"),
        ("te", "అవును, సమాధానం ఉంది", "నాకు తెలియదు"),
        ("th", "ใช่ มีคำตอบ", "ไม่ทราบ"),
        ("yo", "Bẹ́ẹ̀ ni, ìdáhùn wà", "Mi ò mọ̀"),
        ("zh", "是的，答案存在", "我不知道"),
    ],
)
def test_in_the_rows_language(language: str, yes: str, unknown: str) -> None:
    assert explicit_verdict(yes, language).said == YES
    assert explicit_verdict(unknown, language).said == UNKNOWN
    assert explicit_verdict(unknown, "und").said == UNKNOWN
    assert explicit_verdict("Yes, answer is present", language).said == YES
    if language != "es":  # "No lo sé" begins with an English no
        assert explicit_verdict(unknown, "en").said == INVALID


def test_every_supported_language_has_words() -> None:
    from trust.text.verdicts import _data

    assert set(_data()) == SUPPORTED
