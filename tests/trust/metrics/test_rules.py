"""Rules: each kind by hand, trees of them, what is said of a broken one, and configs that cannot be read."""

import time
from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.golden import Replay, run
from trust.errors import ConfigError, RowError
from trust.metrics import RowScore, build, resolve
from trust.metrics.rules import Rules, RulesConfig


def row(output: str | None, **more: Any) -> dict[str, Any]:
    base = {"sample_id": "s", "task": "none", "language": "en", "question": "Where is Paris?", "answers": [["France"]]}
    return (
        base | {"docs": [{"title": "P", "text": "Paris lies in France."}], "references": None, "output": output} | more
    )


def score(rule: Any, output: str | None, **more: Any) -> RowScore:
    return run(Rules(RulesConfig({"r": rule}), "strict"), [row(output, **more)], Replay(lambda *_: 1))[0]


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "pattern": "^[A-Z]"}, "score": {"type": "number"}},
    "required": ["answer"],
}


@pytest.mark.parametrize(
    ("rule", "keeps", "breaks"),
    [
        ({"contains": "Paris"}, "In Paris.", "in paris"),
        ({"contains": "Paris", "ignore_case": True}, "in PARIS", "in Rome"),
        ({"contains": ["a", "b"]}, "b a", "a"),
        ({"contains": "é"}, "cafe\u0301", "cafe"),
        ({"not_contains": ["x", "y"]}, "z", "zy"),
        ({"starts": ["Sure", "Yes"]}, "  Yes.", "No. Yes"),
        ({"ends": "."}, "Done.\n", "Done"),
        ({"equals": "Paris"}, " Paris\n", "Paris."),
        ({"equals": ["yes", "no"], "ignore_case": True}, "YES", "maybe"),
        ({"regex": r"\[\d+\]"}, "x [12]", "x [a]"),
        ({"regex": "^É$"}, "E\u0301", "E"),
        ({"regex": "^straße$", "ignore_case": True}, "STRAßE", "gasse"),
        ({"length": {"max": 3}}, "one two three", "one two three four"),
        ({"length": {"min": 2, "max": 2, "unit": "sentences"}}, "One. Two.", "One."),
        ({"length": {"min": 5, "unit": "characters"}}, "12345", "1234"),
        ({"json_schema": SCHEMA}, '{"answer": "Paris"}', '{"answer": "paris"}'),
        ({"json_schema": {"type": "number"}}, "1e400", "NaN"),
        ({"json_schema": SCHEMA}, ' {"answer": "P", "score": 1} ', '```json\n{"answer": "P"}\n```'),
        ({"overlap": {"with": "docs", "min": 0.5}}, "Paris is in the north", "Rome"),
        ({"overlap": {"with": "answers", "min": 1}}, "france", "French"),
        ({"not": {"contains": "x"}}, "y", "x"),
        ({"and": [{"contains": "a"}, {"or": [{"contains": "b"}, {"not": {"contains": "c"}}]}]}, "a", "a c"),
        ({"or": [{"equals": "a"}, {"equals": "b"}]}, "b", "c"),
    ],
)
def test_each_kind(rule: Any, keeps: str, breaks: str) -> None:
    assert score(rule, keeps).values == {"passed": 1.0, "rule_r": 1.0}
    assert score(rule, breaks).values == {"passed": 0.0, "rule_r": 0.0}


def test_no_output_is_an_empty_one() -> None:
    assert score({"contains": "a"}, None).values["passed"] == 0
    assert score({"length": {"max": 3}}, "").values["passed"] == 1


def test_words_of_scripts_without_spaces_are_characters() -> None:
    rule = {"overlap": {"with": "question", "min": 0.4}}
    assert score(rule, "首都は東京", question="日本の首都", language="ja").values["passed"] == 1
    assert score(rule, "大阪", question="日本の首都", language="ja").values["passed"] == 0


def test_what_broke_is_named() -> None:
    rules = {
        "polite": {"and": [{"contains": "please"}, {"not": {"contains": "now"}}, {"length": {"max": 9}}]},
        "known": {"or": [{"equals": "a"}, {"regex": "b+"}]},
        "fine": {"contains": "do"},
    }
    made = run(Rules(RulesConfig(rules), "strict"), [row("do it now")], Replay(lambda *_: 1))[0]
    assert made.trace["broken"] == {
        "polite": ["contains 'please'", "not (contains 'now')"],
        "known": ["(is 'a' or matches 'b+')"],
    }
    assert [grade for grade, _ in made.trace["reasons"]] == ["bad", "bad"]
    assert made.values == {"passed": 0, "rule_polite": 0, "rule_known": 0, "rule_fine": 1}


def test_rates() -> None:
    metric = Rules(RulesConfig({"a": {"contains": "a"}, "b": {"contains": "b"}}), "strict")
    scores = run(metric, [row(text) for text in ("ab", "a", "a", "c")], Replay(lambda *_: 1))
    sums = {term: np.array([sum(s.terms.get(term, 0) for s in scores)]) for term in metric.terms}
    final = metric.final(sums, "none")
    assert {key: float(stat.value[0]) for key, stat in final.items()} == {
        "rules_passed": 25,
        "rule_a": 75,
        "rule_b": 25,
    }
    assert (final["rules_passed"].n, final["rules_passed"].successes) == (4, 1)


def test_a_pattern_cannot_hang() -> None:
    start = time.perf_counter()
    score({"regex": "(a+)+$"}, "a" * 30_000 + "b")
    score({"json_schema": {"type": "string", "pattern": "^(a+)+$"}}, '"' + "a" * 30_000 + 'b"')
    assert time.perf_counter() - start < 5, "a backtracking engine would not come back from this in a lifetime"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("text", "a rule is a mapping"),
        ({}, "a rule is a mapping"),
        ({"contain": "x"}, "did you mean contains"),
        ({"contains": "x", "starts": "y"}, "join several with `and`"),
        ({"contains": ""}, "not empty"),
        ({"contains": ["x", 3]}, "list of texts"),
        ({"contains": "x", "ignore_case": 1}, "true or false"),
        ({"length": {"max": 3}, "ignore_case": True}, "does nothing"),
        ({"and": []}, "list of rules"),
        ({"and": [{"not": {"regex": "("}}]}, r"and\[0\]\.not\.regex='\('"),
        ({"regex": r"(?=a)"}, "look-around"),
        ({"regex": r"(a)\1"}, "back-references"),
        ({"length": {}}, "give min, max or both"),
        ({"length": {"min": 4, "max": 3}}, "min <= max"),
        ({"length": {"maximum": 3}}, "did you mean"),
        ({"json_schema": {"type": "strin"}}, "no JSON schema"),
        ({"json_schema": {"patternProperties": {"a": {}}}}, "name the properties"),
        ({"json_schema": {"$ref": "http://example.invalid/schema"}}, "json_schema"),
        ({"json_schema": {"properties": {"a": {"$ref": "http://example.invalid/schema"}}}}, "schema leads nowhere"),
        ({"json_schema": {"$defs": {"b": {}}, "items": {"anyOf": [{"$ref": "#/$defs/c"}]}}}, r"\$defs/c"),
        ({"json_schema": {"$ref": "#"}}, "back to itself"),
        ({"json_schema": {"type": "string", "pattern": "(?=a)"}}, "look-around"),
        ({"overlap": {"min": 0.5}}, r"overlap\.with is not set"),
        ({"overlap": {"with": "doc"}}, "did you mean docs"),
        ({"overlap": {"with": "docs", "min": 0}}, "above 0"),
        ({"or": [{"equals": "a"}], "ignore_case": True}, "single rules"),
    ],
)
def test_a_rule_that_cannot_be_read_says_where_and_why(rule: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        build({"rules": {"rules": {"mine": rule}}}, "strict")
    assert "metrics.rules.rules.mine" in str(caught.value)


def test_names_and_files() -> None:
    with pytest.raises(ConfigError, match="is empty"):
        build({"rules": {}}, "strict")
    with pytest.raises(ConfigError, match="no name"):
        build({"rules": {"rules": {"a b": {"contains": "x"}}}}, "strict")
    options = {"rules": {"rules": "rules.yaml"}}
    build(options, "strict")
    read = resolve(options, lambda path: b"mine: {contains: x}")
    assert read == {"rules": {"rules": {"mine": {"contains": "x"}}}}
    with pytest.raises(ConfigError, match="expected named rules, got list"):
        resolve(options, lambda path: b"[1]")
    with pytest.raises(ConfigError, match="cannot be read"):
        resolve(options, lambda path: b"a: [")
    with pytest.raises(ConfigError, match="did you mean contains"):
        resolve(options, lambda path: b"mine: {contain: x}")


def test_nothing_to_compare_with_is_a_failed_row() -> None:
    with pytest.raises(RowError, match="no words in references"):
        score({"overlap": {"with": "references"}}, "x")
    with pytest.raises(RowError, match="no words in question"):
        score({"overlap": {"with": "question"}}, "x", question="?!")


def test_a_number_beyond_the_schema_s_reach_is_a_failed_row() -> None:
    with pytest.raises(RowError, match="too large"):
        score({"json_schema": {"multipleOf": 0.01}}, "1e400")


def test_references_within_a_schema_are_followed() -> None:
    tree = {"$id": "http://example.invalid/tree", "$ref": "#/$defs/node"}
    tree["$defs"] = {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}}
    assert score({"json_schema": tree}, '{"child": {"child": {}}}').values["passed"] == 1
    assert score({"json_schema": tree}, '{"child": {"child": 1}}').values["passed"] == 0
