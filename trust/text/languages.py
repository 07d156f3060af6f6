"""Which languages the rules of this package know, and what is said of a row in another one."""

from typing import Literal

UNDETERMINED = "und"
SUPPORTED = frozenset(
    ["ar", "bn", "de", "en", "es", "fa", "fi", "fr", "hi", "id", "ja", "ko", "ru", "sw", "te", "th", "yo", "zh"]
)  # those of NoMIRACL
PUBLISHED = frozenset({"en"})  # the published evaluator reads every text as English

Support = Literal["supported", "undetermined", "unsupported"]


def base_language(language: str) -> str:
    """The language code without script or region: `zh-Hant` and `zh_TW` are `zh`."""
    return language.replace("_", "-").split("-")[0].lower()


def support(language: str, known: frozenset[str] = SUPPORTED) -> Support:
    """Whether there are rules for a row's language.

    `undetermined` is the tag `und`. Such a row, and an `unsupported` one, is read by what holds for any language:
    sentence marks of all scripts, no articles, refusals in every known language. Both are marked and counted.

    Args:
        language: language code of the row.
        known: the languages that the mode has rules for.
    """
    base = base_language(language)
    if base == UNDETERMINED:
        return "undetermined"
    return "supported" if base in known else "unsupported"
