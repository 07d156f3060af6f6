"""A user's functions as metrics: what they may return, what becomes of what they raise, and which are called at all."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trust.metrics.golden import Replay, all_words, run
from trust.errors import ConfigError, RowError
from trust.metrics import RowScore, build, resolve
from trust.metrics.code import Code, CodeConfig

SOURCE = """
import math

def length(row, ask):
    return len(row["output"])

def polite(row, ask):
    return {"score": "please" in row["output"], "reason": "looked for please"}

def maybe(row, ask):
    return None if row["language"] != "en" else 1

async def grounded(row, ask):
    return (await ask.entails(row["docs"][0]["text"], row["output"], role="mine")).label

def broken(row, ask):
    return {}[row["output"]]

def words(row, ask):
    return "many"

def infinite(row, ask):
    return math.inf

def unknown_key(row, ask):
    return {"scor": 1}

def exits(row, ask):
    exit(3)

async def exits_too(row, ask):
    raise SystemExit("enough")

NOT_A_FUNCTION = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "checks_of_a_user.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "checks_of_a_user"
    sys.modules.pop("checks_of_a_user", None)


def row(output: str, language: str = "en") -> dict[str, Any]:
    return {"sample_id": "s", "language": language, "output": output, "docs": [{"title": "", "text": "alpha beta"}]}


def metric(module: str, *names: str) -> Code:
    functions = {name: f"{module}:{name}" for name in names}
    return Code(CodeConfig(functions, [module], ["entails"]), "strict")


def score(module: str, output: str, *names: str, language: str = "en") -> RowScore:
    return run(metric(module, *names), [row(output, language)], Replay(all_words))[0]


def test_numbers_bools_none_and_reasons(module: str) -> None:
    made = score(module, "please", "length", "polite", "maybe")
    assert made.values == {"code_length": 6, "code_polite": 1, "code_maybe": 1}
    assert ("neutral", "polite: 1 (looked for please).") in made.trace["reasons"]
    other = score(module, "x", "length", "maybe", language="de")
    assert other.values == {"code_length": 1}
    assert score(module, "x", "maybe", language="de").status == "na"


def test_a_function_may_ask(module: str) -> None:
    assert score(module, "alpha", "grounded").values == {"code_grounded": 1}
    assert score(module, "gamma", "grounded").values == {"code_grounded": 0}


def test_the_mean_is_over_rows_that_it_applies_to(module: str) -> None:
    made = metric(module, "length", "maybe")
    scores = run(made, [row("ab"), row("abcd", "de")], Replay(all_words))
    sums = {term: np.array([sum(s.terms.get(term, 0) for s in scores)]) for term in made.terms}
    found = made.final(sums, "none")
    assert (float(found["code_length"].value[0]), found["code_length"].n) == (3.0, 2)
    assert (float(found["code_maybe"].value[0]), found["code_maybe"].n) == (1.0, 1)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broken", r"broken: .*return \{\}\[row\[\"output\"\]\].*KeyError: 'x'"),
        ("exits", "exits: .*SystemExit: 3"),
        ("exits_too", "exits_too: .*SystemExit: enough"),
        ("words", "returned str, not a number"),
        ("infinite", "returned inf"),
        ("unknown_key", "key scor; known are score and reason"),
    ],
)
def test_errors_fail_the_row_and_say_where(module: str, name: str, told: str) -> None:
    with pytest.raises(RowError, match=told) as caught:
        score(module, "x", name)
    assert caught.value.reason == "code_error"


@pytest.mark.parametrize(
    ("target", "modules", "told"),
    [
        ("os:system", ["os"], "what os holds cannot be a metric"),
        ("trust.storage:open_storage", ["trust"], "what trust holds cannot"),
        ("checks_of_a_user:length", [], r"metrics\.code\.modules=\[checks_of_a_user\]"),
        ("checks_of_a_user:length", ["checks"], "not among"),
        ("checks_of_a_user.length", ["checks_of_a_user"], "expected package.module:function"),
        ("checks_of_a_user:lenght", ["checks_of_a_user"], "has no function lenght"),
        ("checks_of_a_user:NOT_A_FUNCTION", ["checks_of_a_user"], "has no function NOT_A_FUNCTION"),
        ("not_there_at_all:f", ["not_there_at_all"], "No module named"),
    ],
)
def test_only_functions_of_allowed_modules(module: str, target: str, modules: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        build({"code": {"functions": {"f": target}, "modules": modules}}, "strict")


def test_a_changed_function_is_another_metric(module: str, tmp_path: Path) -> None:
    options = {"code": {"functions": {"length": f"{module}:length"}, "modules": [module]}}
    before = resolve(options, lambda path: b"")
    assert before == resolve(options, lambda path: b"")
    (tmp_path / "checks_of_a_user.py").write_text(SOURCE.replace("len(", "2 * len("))
    assert resolve(options, lambda path: b"") != before
    build(before, "strict")


def test_options_are_checked(module: str) -> None:
    with pytest.raises(ConfigError, match="functions is empty"):
        build({"code": {}}, "strict")
    with pytest.raises(ConfigError, match="'judge' is none"):
        build({"code": {"functions": {"f": f"{module}:length"}, "modules": [module], "asks": ["judge"]}}, "strict")
