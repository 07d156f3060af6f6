"""A user's own ways to refuse: one list for all languages, or a list a language, in the config or in a file."""

from collections.abc import Callable, Mapping
from typing import Any

import regex
import yaml

from trust.errors import ConfigError
from trust.text.normalize import has_content

ANY = "any"
_TAG = regex.compile(r"[a-z]{2,3}|any")

Phrases = list[str] | dict[str, list[str]]


def load(path: str, key: str, read: Callable[[str], bytes]) -> Phrases:
    """The phrases of a YAML or JSON file.

    Args:
        path: a local file or an s3:// address.
        key: config key that names the file, for messages.
        read: gives the file's bytes.

    Raises:
        ConfigError: the file cannot be read, or does not hold phrases.
    """
    try:
        content = yaml.safe_load(read(path).decode())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{key}={path}: cannot be read: {' '.join(str(error).split())[:200]}") from error
    by_language(content, f"{key}={path}")
    return content


def by_language(phrases: Any, key: str) -> dict[str, list[str]]:
    """Language -> its phrases; `any` holds those that count in all of them.

    Args:
        phrases: a list of phrases for all languages, or a list a language code (or `any`); None is no phrases.
        key: where they come from, for messages.

    Raises:
        ConfigError: names the language and phrase at fault.
    """
    if phrases is None:
        return {}
    listed = phrases if isinstance(phrases, Mapping) else {ANY: phrases}
    for language, own in listed.items():
        where = f"{key}.{language}" if listed is phrases else key
        if not isinstance(language, str) or not _TAG.fullmatch(language):
            raise ConfigError(
                f"{where}: {language!r} is no language code of two or three small letters, nor `any` (all languages)"
            )
        if not isinstance(own, list):
            raise ConfigError(f"{where} is {own!r}: expected a list of phrases")
        for at, phrase in enumerate(own):
            if not isinstance(phrase, str) or not has_content(phrase):
                raise ConfigError(
                    f"{where}[{at}] is {phrase!r}: an empty phrase, or none at all; a phrase has a letter or a digit"
                )
    return {language: list(dict.fromkeys(own)) for language, own in listed.items()}
