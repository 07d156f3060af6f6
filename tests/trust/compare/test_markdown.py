"""The Markdown: short, complete about what was decided, and no name in it is markup."""

import re
from pathlib import Path

from tests.trust.compare.helpers import config, evaluated, rows
from trust.compare import run_compare


def test_it_says_what_was_compared_and_decided(tmp_path: Path) -> None:
    evaluated(tmp_path, "base", rows({1, 2, 3, 4, 5, 7}))
    evaluated(tmp_path, "new", rows({2}))
    _, words = run_compare(config(tmp_path, by=["language"], fail_below={"trust_score": -1, "refuse_f1": 0}))
    assert words.startswith(
        "### Trust: new against base\n\n**No regression** (least allowed: trust_score -1, refuse_f1 +0"
    )
    assert "**demo** (em): model small, prompt em. 60 questions, the same in both." in words
    assert re.search(r"\| Trust-Score \| \d\d\.\d\d \| \d\d\.\d\d \| \+\d+\.\d\d ▲ \| \+\d+\.\d to \+\d+\.\d \|", words)
    assert "| `refuse_f1` |" in words, "a number with a limit is shown"
    assert "<details><summary>By language: 2 slices</summary>" in words
    assert re.search(r"\| de \| 30 \| \+\d+", words)
    assert "lexical (word recall" in words
    assert (tmp_path / "new" / "compare" / "base.md").read_text() == words


def test_losses_come_first(tmp_path: Path) -> None:
    evaluated(tmp_path, "base", rows())
    evaluated(tmp_path, "new", rows({1, 2, 3, 4, 5, 7}))
    _, words = run_compare(config(tmp_path, fail_below=-1))
    assert "**Regression** (least allowed: trust_score -1, by the difference):\n\n- `trust_score` of demo: -" in words
    assert "▼" in words


def test_without_a_limit_nothing_is_decided(tmp_path: Path) -> None:
    for name in ("base", "new"):
        evaluated(tmp_path, name, rows())
    _, words = run_compare(config(tmp_path))
    assert "egression" not in words
    assert "| unchanged |" in words


def test_names_of_users_are_no_markup(tmp_path: Path) -> None:
    names = ["@everyone", "a|b", "<img src=x>", "https://evil.example", "**b** `c` [d](e)", "one\ntwo", "x" * 300]
    made = rows({1})
    for n, row in enumerate(made):
        row["meta"] = {"domain": names[n % len(names)]}
        row["model"] = "m|<b>@x"
    for name in ("base", "new"):
        evaluated(tmp_path, name, [row | {"meta": {"domain": row["meta"]["domain"][:199]}} for row in made])
    _, words = run_compare(config(tmp_path, by=["domain"]))
    body = words.replace("<details>", "").replace("</details>", "").replace("<summary>", "").replace("</summary>", "")
    body = body.replace("<sub>", "").replace("</sub>", "")
    for mark in ("@", "<", ">", "://", "`", "[", "](", "x" * 70):
        assert mark not in body, mark
    for line in words.splitlines():
        if line.startswith("| ") and "slice" not in line:
            assert line.count("|") in (6, 7), line


def test_many_slices_stay_short(tmp_path: Path) -> None:
    made = rows(questions=range(200))
    for n, row in enumerate(made):
        row["meta"] = {"domain": f"domain {n % 100:03d} of those that there are"}
    for name in ("base", "new"):
        evaluated(tmp_path, name, made)
    _, words = run_compare(config(tmp_path, by=["domain"]))
    assert "80 more, which lost less, are in the table." in words
    assert len(words) < 10_000
