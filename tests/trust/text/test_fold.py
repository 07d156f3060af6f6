import pytest

from trust.text.fold import fold, fold_numbers


@pytest.mark.parametrize(
    ("language", "text", "folded"),
    [
        ("ar", "كُتِبَ فِي القَاهِرَة", "کتب فی القاهره"),
        ("ar", "أحمد إلى آخر مؤسسة ســــلام", "احمد الی اخر موسسه سلام"),
        ("ar", "سنة ١٩٩٤ ٣٫٥ ١٬٢٠٠", "سنه 1994 3.5 1,200"),
        ("fa", "كتابهاي ایراني", "کتابهای ایرانی"),
        ("fa", "می‌روم می روم نمی‌دانم", "میروم میروم نمیدانم"),
        ("fa", "کتاب‌ها کتاب ها کتابهای بزرگ‌ترین", "کتابها کتابها کتابهای بزرگترین"),
        ("fa", "خانه‌ی من خانهٔ من", "خانه من خانه من"),
        ("fa", "دانش‌آموز", "دانش اموز"),
        ("fa", "۱۳۵۷", "1357"),
        ("hi", "हिन्दी हिंदी अन्त मुम्बई पाँच", "हिंदी हिंदी अंत मुंबई पांच"),
        ("hi", "ज़मीन फ़िल्म लड़का पढ़ना", "जमीन फिल्म लड़का पढ़ना"),
        ("hi", "१९४७", "1947"),
        ("bn", "১৯৭১ সালে ঢাকায়", "1971 সালে ঢাকায়"),
        ("te", "హైదరాబాద్‌లో", "హైదరాబాద్ లో"),
        ("te", "Google‌లో", "google లో"),
        ("th", "พ.ศ. ๒๕๓๗", "พ.ศ. 2537"),
        ("yo", "Ọbáfẹ́mi Awólọ́wọ̀", "ọbáfẹ́mi awólọ́wọ̀"),
        ("ja", "ＡＢＣ１２３ ｶﾀｶﾅ", "abc123 カタカナ"),
        ("ko", "서울", "서울"),
        ("ru", "Королёв и Йошкар-Ола", "королев и йошкар-ола"),
        ("de", "Straße", "strasse"),
        ("fi", "Äänekoski", "äänekoski"),
    ],
)  # fmt: skip
def test_spellings_made_one(language: str, text: str, folded: str) -> None:
    assert fold(text, language) == fold(folded, language) == folded


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("yo", "ọkọ", "ọkọ́"),
        ("hi", "कि", "की"),
        ("bn", "কলা", "কালা"),
        ("te", "కల", "కాల"),
        ("ru", "мой", "мои"),
        ("de", "schon", "schön"),
        ("fi", "sää", "saa"),
        ("es", "año", "ano"),
        ("ja", "かき", "かぎ"),
        ("th", "มา", "ม้า"),
    ],
)
def test_marks_that_tell_words_apart_stay(language: str, one: str, other: str) -> None:
    assert fold(one, language) != fold(other, language)


@pytest.mark.parametrize(
    ("language", "text", "folded"),
    [
        ("en", "1,200,000 and 3.5 and 3.141 and 12,00,000 and 1,2", "1200000 and 3.5 and 3.141 and 1200000 and 1,2"),
        ("hi", "12,00,000", "1200000"),
        ("de", "1.200 und 1.200.000,50 und 3,5 und 3.5 und 0,125", "1200 und 1200000.50 und 3.5 und 3.5 und 0.125"),
        ("de", "31.12.1999 und 1,200,000.5", "31.12.1999 und 1200000.5"),
        (
            "fr",
            "1 200 km, 1 200 km, 1 200 km, en 1994 200 personnes",
            "1200 km, 1200 km, 1200 km, en 1994 200 personnes",
        ),
        ("ru", "1 200,5", "1200.5"),
        ("fi", "12 345 678", "12345678"),
        ("id", "1.200,75", "1200.75"),
        ("ar", "١٬٢٠٠٫٥", "1200.5"),
        ("und", "1.200 and 1,200", "1.200 and 1200"),
    ],
)
def test_numbers(language: str, text: str, folded: str) -> None:
    assert fold_numbers(fold(text, language), language) == folded
