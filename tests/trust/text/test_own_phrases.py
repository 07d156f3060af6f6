import json
from pathlib import Path

import pytest

from trust.config import load
from trust.errors import ConfigError
from trust.evaluate import EvaluateConfig
from trust.text.own_phrases import by_language
from trust.text.refusals import Detector, Finding
from trust.text.sentences import split

KEY = "metrics.trust_score.refusal_phrases"


def config(*words: str) -> EvaluateConfig:
    return load("evaluate", EvaluateConfig, ["judge/entails=lexical", *words])


def phrases(*words: str) -> object:
    return config(*words).metrics["trust_score"]["refusal_phrases"]


def says(text: str, language: str, own: dict[str, list[str]]) -> str:
    return Detector(own).classify(split(text, language), language).response


def test_a_list_is_for_all_languages() -> None:
    assert by_language(["No comment", "No comment"], KEY) == {"any": ["No comment"]}
    assert by_language(None, KEY) == {}


def test_own_phrases_count_in_their_language_only() -> None:
    own = {"de": ["kein kommentar"], "ja": ["回答は控え"], "any": ["computer says no"]}
    assert says("Dazu: KEIN Kommentar.", "de", own) == "refused"
    assert says("Dazu: KEIN Kommentar.", "en", own) == "answered"
    assert says("Dazu: KEIN Kommentar.", "und", own) == "refused"
    assert says("その件については回答は控えます。", "ja", own) == "refused"
    assert says("Xkein Kommentar.", "de", own) == "answered"
    assert says("Computer says no!", "tr", own) == "refused"


def test_they_are_taken_literally() -> None:
    assert Detector({"any": ["no (comment)*"]}).classify(split("Well, no (comment)*!", "en"), "en") == Finding(
        "refused", "no (comment)*", frozenset({0})
    )


def test_on_the_command_line_as_a_list_by_language_or_in_a_file(tmp_path: Path) -> None:
    assert phrases(f"{KEY}=['no comment']") == ["no comment"]
    assert phrases(f"{KEY}={{ja: ['回答は控え'], any: ['no comment']}}") == {
        "ja": ["回答は控え"],
        "any": ["no comment"],
    }
    path = tmp_path / "own.yaml"
    path.write_text("fi: [en halua vastata]\nany: [no comment]\n", encoding="utf-8")
    content = {"fi": ["en halua vastata"], "any": ["no comment"]}
    assert phrases(f"{KEY}={path}") == content, "what the fingerprint sees is what the file holds, not its name"
    path.with_suffix(".json").write_text(json.dumps(content))
    assert phrases(f"{KEY}={path.with_suffix('.json')}") == content


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[' ']", r"refusal_phrases\[0\] is ' ': an empty phrase"),
        ("['...']", "an empty phrase"),
        ("{german: ['x']}", "'german' is no language code"),
        ("{DE: ['x']}", "'DE' is no language code"),
        ("{de: 'x'}", "must be of type list"),
        ("nowhere.yaml", "nowhere.yaml: cannot be read"),
    ],
)
def test_what_is_wrong_is_named(value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(f"{KEY}={value}")


@pytest.mark.parametrize("content", ["just text", "fi: some text", "fi: [1]", "a: [b", "Deutsch: [nein danke]"])
def test_a_file_that_holds_something_else_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"refusal_phrases=.*own\.yaml"):
        config(f"{KEY}={path}")
