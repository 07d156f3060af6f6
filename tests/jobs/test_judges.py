"""`jobs.judges`: several judges on the responses of one run."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from jobs.judges import judges
from tests.jobs.test_evaluate import evaluate, rows
from tests.jobs.test_reuse import items
from tests.trust.ask.nli_models import write
from trust.agreement import ALL, JudgesConfig
from trust.config import load
from trust.errors import ConfigError, PreflightError
from trust.runs import Run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run `demo` with responses in two languages, evaluated by one judge already."""
    made = [item | {"language": "en" if n % 2 else "ja"} for n, item in enumerate(items())]
    (tmp_path / "data.json").write_text(json.dumps(made))
    words = [f"data.path={tmp_path}/data.json", "data.name=d", "task=em", "judge/entails=lexical", "run=demo"]
    evaluate(tmp_path, *words)
    return tmp_path


def compare(root: Path, *words: str) -> tuple[JudgesConfig, dict[str, Any]]:
    common = [f"storage.root={root}", "from_run=demo", "run=both", "replicates=200", "judges.words.backend=lexical"]
    config = load("judges", JudgesConfig, [*common, *words])
    judges(config)
    return config, json.loads((root / "both" / "judges.json").read_text())


def labels(run: Run) -> dict[tuple[str, str], int]:
    return {(row["sample_id"], row["hash"]): int(row["answer"]) for row in rows(run, "verdicts")}


@pytest.mark.usefixtures("ray_session")
def test_agreement_and_scores_of_two_judges(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write(root / "model", seed=3)
    words = ("judges.nli.backend=nli", f"judges.nli.model={model}", "judges.nli.languages=[en]")
    config, found = compare(root, *words)
    assert list(found["judges"]) == ["words", "nli"]

    first, second = (Run.of(config.of(name)) for name in ("words", "nli"))
    one, other = labels(first), labels(second)
    role = "citation_recall"
    wanted: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for score in rows(first, "scores"):
        for ask in score["asks"]:
            key = (score["sample_id"], ask["hash"])
            if ask["role"] == role and key in other:
                wanted.setdefault((role, score["language"]), []).append((one[key], other[key]))
    measured = {(row["role"], row["language"]): row for row in found["agreement"]}
    wanted[role, ALL] = list(itertools.chain(*wanted.values()))
    for group, pairs in wanted.items():
        row, n = measured[group], len(pairs)
        assert row["pairs"] == n
        assert row["both"] == sum(a and b for a, b in pairs)
        same = sum(a == b for a, b in pairs) / n
        assert row["agreement"] == pytest.approx(100 * same)
        yes = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
        chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
        assert row["kappa"] == (pytest.approx((same - chance) / (1 - chance)) if chance < 1 else None)
        if row["kappa"] is not None:
            assert row["kappa_low"] <= row["kappa"] <= row["kappa_high"]
        assert row["agreement_low"] <= row["agreement"] <= row["agreement_high"]
    assert (ALL, ALL) in measured

    assert (
        found["summaries"]["words"][0]["answered_citation_rec"] != found["summaries"]["nli"][0]["answered_citation_rec"]
    )
    assert first.manifest("evaluate").totals["asks_asked"] == 0, "what was judged in the run is known"
    printed = capsys.readouterr().out
    assert "Cohen's kappa" in printed
    assert "under nli" in printed

    _, again = compare(root, *words)
    assert again == found, "finished already"


@pytest.mark.usefixtures("ray_session")
def test_a_judge_agrees_with_itself_on_any_units(root: Path) -> None:
    words = ("judges.same.backend=lexical", "judges.half.backend=lexical", "judges.half.threshold=0.5")
    _, whole = compare(root, *words)
    rows = {(r["one"], r["other"], r["role"], r["language"]): r for r in whole["agreement"]}
    same = rows["words", "same", ALL, ALL]
    assert (same["agreement"], same["first"], same["second"]) == (100, 0, 0)
    assert same["kappa"] == 1
    assert rows["words", "half", ALL, ALL]["first"] == 0, "a lower threshold says yes more often"
    _, parts = compare(root, *words, "unit_rows=7", "overwrite=true")
    assert parts["agreement"] == whole["agreement"]


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name two or more"):
        compare(tmp_path)
    with pytest.raises(ConfigError, match="give this comparison a name of its own"):
        compare(tmp_path, "judges.b.backend=lexical", "run=demo")
    with pytest.raises(ConfigError, match=r"unknown key judges\.b\.treshold; did you mean judges\.b\.threshold"):
        compare(tmp_path, "judges.b.backend=lexical", "judges.b.treshold=1")
    with pytest.raises(ConfigError, match=r"judges\.b\.backend=lexicle: unknown value; did you mean lexical"):
        compare(tmp_path, "judges.b.backend=lexicle")
    with pytest.raises(PreflightError, match="no finished responses table"):
        compare(tmp_path, "judges.b.backend=lexical")
