"""A metric from outside the package: found by its module's name, checked like ours, and never confused with one of ours."""

import sys
from pathlib import Path

import pytest

from trust.errors import ConfigError
from trust.metrics import build, resolve

SOURCE = """
from dataclasses import dataclass

from trust.metrics import RowScore
from trust.metrics.ratios import Sums


@dataclass
class CONFIG:
    most: int = 50


class METRIC:
    name, asks, terms = "brevity", ("entails",), ("rows", "brief")

    def __init__(self, config, compat):
        self.most = config.most

    def preflight(self):
        pass

    async def row(self, row, ask):
        return RowScore(terms={"rows": 1.0})

    def final(self, sums, task):
        return {"brevity_rate": Sums(sums, "na").rate("brief", "rows")}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("brevity_of_a_user", "other_of_a_user"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "brevity_of_a_user.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_it_is_built_like_ours(folder: Path) -> None:
    (metric,) = build({"brevity": {"module": "brevity_of_a_user", "most": 7}}, "strict")
    assert (metric.name, metric.asks, vars(metric)) == ("brevity", ("entails",), {"most": 7})
    with pytest.raises(ConfigError, match=r"unknown key metrics\.brevity\.mots; did you mean metrics\.brevity\.most"):
        build({"brevity": {"module": "brevity_of_a_user", "mots": 7}}, "strict")


def test_a_changed_source_is_another_metric(folder: Path) -> None:
    options = {"brevity": {"module": "brevity_of_a_user"}}
    before = resolve(options, lambda path: b"")
    assert before == resolve(options, lambda path: b"")
    (folder / "brevity_of_a_user.py").write_text(SOURCE.replace("50", "51"))
    assert resolve(options, lambda path: b"") != before
    build(before, "strict")


@pytest.mark.parametrize(
    ("name", "module", "told"),
    [
        ("short", "brevity_of_a_user", r"called brevity; write metrics\.brevity\.module"),
        ("brevity", "json", "what json holds cannot be a metric"),
        ("brevity", "trust.metrics.rules", "what trust holds cannot be a metric"),
        ("brevity", "not_there_at_all", "No module named"),
        ("brevity", "a b", "expected the name of a module"),
        ("brevity", "other_of_a_user", "has METRIC, its class, and CONFIG"),
        ("brevity", "", "unknown value"),
    ],
)
def test_what_cannot_be_one(folder: Path, name: str, module: str, told: str) -> None:
    (folder / "other_of_a_user.py").write_text("x = 1")
    with pytest.raises(ConfigError, match=told):
        build({name: {"module": module}}, "strict")


def test_its_numbers_have_names_of_their_own(folder: Path) -> None:
    (folder / "brevity_of_a_user.py").write_text(SOURCE.replace("brevity_rate", "bleu"))
    with pytest.raises(ConfigError, match="both give bleu: rename the one of your own"):
        build({"overlap": {}, "brevity": {"module": "brevity_of_a_user"}}, "strict")
