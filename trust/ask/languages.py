"""Which languages a judge is for. A row in another one is still scored, but marked and counted."""

import re

from trust.errors import ConfigError
from trust.text.normalize import base_language

_PRIMARY = re.compile("[a-z]{2,3}")


def check(languages: list[str] | None) -> None:
    """Raises ConfigError where `judge.entails.languages` is no list of primary BCP 47 tags; None is any language."""
    if languages is None:
        return
    if not languages:
        raise ConfigError("judge.entails.languages is empty: give tags such as [en], or null for any language")
    if wrong := [tag for tag in languages if not _PRIMARY.fullmatch(tag) or tag == "und"]:
        raise ConfigError(f"judge.entails.languages={wrong}: primary BCP 47 tags are wanted, such as en or ja")


def outside(language: str, languages: list[str] | None) -> bool:
    """Whether a row's language is none of the judge's. One that is not known (`und`) is taken for none of them."""
    return languages is not None and base_language(language) not in languages
