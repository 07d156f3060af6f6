import pytest

from trust.compat import STRICT, UPSTREAM
from trust.text.languages import SUPPORTED, base_language, support


def test_codes_without_script_and_region() -> None:
    assert [base_language(code) for code in ("zh-Hant", "pt_BR", "EN", "und")] == ["zh", "pt", "en", "und"]


@pytest.mark.parametrize(
    ("language", "strict", "upstream"),
    [
        ("en", "supported", "supported"),
        ("zh-Hant", "supported", "unsupported"),
        ("tr", "unsupported", "unsupported"),
        ("english", "unsupported", "unsupported"),
        ("und", "undetermined", "undetermined"),
    ],
)
def test_what_is_said_of_a_language(language: str, strict: str, upstream: str) -> None:
    assert support(language, STRICT.known_languages) == strict
    assert support(language, UPSTREAM.known_languages) == upstream


def test_supported_are_the_languages_of_nomiracl() -> None:
    assert len(SUPPORTED) == 18
