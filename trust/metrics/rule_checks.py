"""The single checks that rules are made of (see `trust.metrics.rules`)."""

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trust import config as configs
from trust.ask.lexical import words
from trust.errors import ConfigError, RowError
from trust.metrics import Row
from trust.text.languages import UNDETERMINED
from trust.text.normalize import count_words
from trust.text.sentences import split

_SOURCES = ("question", "docs", "references", "answers")
_UNITS = ("words", "characters", "sentences")
_SHOWN = 60


class Check(NamedTuple):
    """One check.

    Attributes:
        holds: whether a row keeps it.
        words: what it wants, for people.
    """

    holds: Callable[[Row], bool]
    words: str


def check_of(kind: str, value: Any, ignore_case: Any, where: str) -> Check:
    """The check of a kind.

    Raises:
        ConfigError: no such kind, or a value that is none for it.
    """
    configs.one_of(where, kind, [*_KINDS, "and", "or", "not"])
    if not isinstance(ignore_case, bool):
        raise ConfigError(f"{where}.ignore_case is {ignore_case!r}: must be true or false")
    if ignore_case and kind in ("length", "json_schema", "overlap"):
        raise ConfigError(f"{where}.ignore_case does nothing beside {kind}")
    return _KINDS[kind](value, ignore_case, f"{where}.{kind}")


def _texts(value: Any, where: str) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(f"{where} is {value!r}: expected a text, or a list of texts, that are not empty")
    return texts


def _output(row: Row) -> str:
    return row.get("output") or ""


def _folded(text: str, ignore_case: bool) -> str:
    text = unicodedata.normalize("NFC", text)
    return text.casefold() if ignore_case else text


def _shown(texts: list[str], joined: str) -> str:
    return f" {joined} ".join(repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…") for text in texts)


def _literal(test: Callable[[str, str], bool], every: bool, verb: str) -> Callable[[Any, bool, str], Check]:
    """A check against texts: all of them, or any."""

    def make(value: Any, ignore_case: bool, where: str) -> Check:
        texts = _texts(value, where)
        wanted = [_folded(text, ignore_case) for text in texts]
        quantifier = all if every else any

        def holds(row: Row) -> bool:
            output = _folded(_output(row), ignore_case)
            return quantifier(test(output, text) for text in wanted)

        return Check(holds, f"{verb} {_shown(texts, 'and' if every else 'or')}")

    return make


def _regex(value: Any, ignore_case: bool, where: str) -> Check:
    pattern = compiled(_folded(value, False) if isinstance(value, str) else value, where, ignore_case)

    def holds(row: Row) -> bool:
        return pattern.search(_folded(_output(row), False)) is not None

    return Check(holds, f"matches {_shown([value], '')}")


def compiled(value: Any, where: str, ignore_case: bool = False) -> Any:
    """An RE2 pattern: matching takes time linear in the text, whatever the pattern.

    Raises:
        ConfigError: RE2 cannot read it.
    """
    import re2

    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where} is {value!r}: expected a pattern that is not empty")
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        return re2.compile(value, options)
    except re2.error as error:
        told = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise ConfigError(
            f"{where}={value!r}: {told} (patterns are RE2's, which never hang: no look-around, no back-references)"
        ) from error


@dataclass
class LengthConfig:
    """Bounds of a response's length, both inclusive."""

    min: int | None = None
    max: int | None = None
    unit: str = "words"


def _length(value: Any, ignore_case: bool, where: str) -> Check:
    config = configs.build(LengthConfig, value, where)
    configs.one_of(f"{where}.unit", config.unit, _UNITS)
    low, high = config.min, config.max
    if (low is None and high is None) or (low is not None and high is not None and low > high) or (low or 0) < 0:
        raise ConfigError(f"{where}: give min, max or both, with 0 <= min <= max")

    def holds(row: Row) -> bool:
        size = _size(_output(row), config.unit, row.get("language") or UNDETERMINED)
        return (low is None or size >= low) and (high is None or size <= high)

    bounds = " and ".join(
        [*([f"at least {low}"] if low is not None else []), *([f"at most {high}"] if high is not None else [])]
    )
    return Check(holds, f"has {bounds} {config.unit}")


def _size(text: str, unit: str, language: str) -> int:
    if unit == "characters":
        return len(text)
    return count_words(text) if unit == "words" else len(split(text, language))


def _json_schema(value: Any, ignore_case: bool, where: str) -> Check:
    validator = _validator(value, where)

    def holds(row: Row) -> bool:
        try:
            return bool(validator.is_valid(json.loads(_output(row), parse_constant=_no_json)))
        except ValueError:
            return False
        except RecursionError as error:
            raise RowError("json_too_deep", "the response is JSON nested too deep for a schema", "output") from error
        except OverflowError as error:
            raise RowError(
                "json_number_too_large", "the response is JSON with a number too large for the schema's sums", "output"
            ) from error

    return Check(holds, "is JSON that the schema admits")


def _no_json(constant: str) -> None:
    """Refuses NaN and Infinity, which Python reads and JSON does not know."""
    raise ValueError(f"{constant} is no JSON")


def _validator(schema: Any, where: str) -> Any:
    """A validator whose patterns are RE2's, and that never fetches a reference."""
    from jsonschema import Draft202012Validator, exceptions, validators
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if not isinstance(schema, Mapping):
        raise ConfigError(f"{where} is {schema!r}: expected a JSON schema")
    try:
        Draft202012Validator.check_schema(schema)
    except exceptions.SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        raise ConfigError(f"{where}{'.' + place if place else ''}: no JSON schema: {error.message[:200]}") from error
    patterns = {text: compiled(text, f"{where} (pattern)") for text in _patterns(schema, where)}

    def pattern(_: Any, text: str, instance: Any, __: Any) -> Any:
        if isinstance(instance, str) and not patterns[text].search(instance):
            yield exceptions.ValidationError(f"{instance!r} does not match {text!r}")

    made = validators.extend(Draft202012Validator, {"pattern": pattern})(schema, registry=Registry())
    try:
        _follow_references(Registry().resolver_with_root(DRAFT202012.create_resource(schema)), schema)
        for kind in (dict, list, str, int):
            made.is_valid(kind())
    except Unresolvable as error:  # the first response that came this way would end the job
        raise ConfigError(f"{where}: the reference {error.ref} leads nowhere; nothing is fetched") from error
    except RecursionError as error:
        raise ConfigError(f"{where}: a reference leads back to itself") from error
    return made


def _follow_references(resolver: Any, schema: Any) -> None:
    """Raises Unresolvable for a reference, anywhere in the schema, that leads nowhere."""
    from referencing.jsonschema import DRAFT202012

    for keyword in ("$ref", "$dynamicRef"):
        if isinstance(schema, Mapping) and keyword in schema:
            resolver.lookup(schema[keyword])
    for part in DRAFT202012.subresources_of(schema):
        _follow_references(resolver.in_subresource(DRAFT202012.create_resource(part)), part)


def _patterns(schema: Any, where: str) -> set[str]:
    """All patterns in a schema. Raises ConfigError for keys whose patterns the library would run by itself."""
    found: set[str] = set()
    if isinstance(schema, Mapping):
        if "patternProperties" in schema:
            raise ConfigError(f"{where}: patternProperties cannot be used here; name the properties")
        if isinstance(schema.get("pattern"), str):
            found.add(schema["pattern"])
        for value in schema.values():
            found |= _patterns(value, where)
    elif isinstance(schema, list):
        for value in schema:
            found |= _patterns(value, where)
    return found


@dataclass
class OverlapConfig:
    """How much of whose words a response must hold. `with` is called `source` in code."""

    source: str
    min: float = 0.5


def _overlap(value: Any, ignore_case: bool, where: str) -> Check:
    renamed = (
        {("source" if key == "with" else key): item for key, item in value.items()}
        if isinstance(value, Mapping)
        else value
    )
    if isinstance(value, Mapping) and "source" in value:
        raise ConfigError(f"{where}.source: is called `with`")
    if isinstance(value, Mapping) and "with" not in value:
        raise ConfigError(f"{where}.with is not set (choices: {', '.join(_SOURCES)})")
    config = configs.build(OverlapConfig, renamed, where)
    configs.one_of(f"{where}.with", config.source, _SOURCES)
    if not 0 < config.min <= 1:
        raise ConfigError(f"{where}.min={config.min}: a share above 0, at most 1")

    def holds(row: Row) -> bool:
        wanted = {word for text in _source(row, config.source) for word in words(text)}
        if not wanted:
            raise RowError(
                "nothing_to_compare", f"the row has no words in {config.source} for the rule's overlap", config.source
            )
        return len(wanted & set(words(_output(row)))) >= config.min * len(wanted)

    return Check(holds, f"holds {config.min:g} of the words of its {config.source}")


def _source(row: Row, source: str) -> list[str]:
    if source == "question":
        return [row["question"]]
    if source == "docs":
        return [doc["text"] for doc in row.get("docs") or []]
    if source == "references":
        return list(row.get("references") or [])
    return [aliases[0] for aliases in row.get("answers") or [] if aliases]


_KINDS: dict[str, Callable[[Any, bool, str], Check]] = {
    "contains": _literal(lambda output, text: text in output, True, "contains"),
    "not_contains": _literal(lambda output, text: text not in output, True, "does not contain"),
    "starts": _literal(lambda output, text: output.lstrip().startswith(text), False, "starts with"),
    "ends": _literal(lambda output, text: output.rstrip().endswith(text), False, "ends with"),
    "equals": _literal(lambda output, text: output.strip() == text.strip(), False, "is"),
    "regex": _regex,
    "length": _length,
    "json_schema": _json_schema,
    "overlap": _overlap,
}
