import pytest

from trust.ask.languages import check, outside
from trust.errors import ConfigError


@pytest.mark.parametrize(
    ("language", "languages", "wanted"),
    [
        ("en", ["en"], False),
        ("en-GB", ["en"], False),
        ("zh_Hant", ["zh", "ja"], False),
        ("JA", ["ja"], False),
        ("te", ["en", "ja"], True),
        ("und", ["en"], True),
        ("te", None, False),
        ("und", None, False),
    ],
)
def test_outside(language: str, languages: list[str] | None, wanted: bool) -> None:
    assert outside(language, languages) is wanted


@pytest.mark.parametrize("languages", [[], ["en-GB"], ["English"], ["und"], ["EN"]])
def test_lists_that_cannot_be(languages: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"judge\.entails\.languages"):
        check(languages)
