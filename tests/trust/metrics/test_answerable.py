"""What a judge finds answerable, beside people: NoMIRACL's questions with a relevant passage and without one.

`python -m tests.trust.metrics.test_answerable lexical` (or a T5 folder) prints the figures that the README quotes.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from trust.ask.judges import build_entails
from trust.metrics.no_gold import NoGoldConfig

LANGUAGES = ("en", "sw", "zh")
WORDED = "The text answers the question: {question}"


def questions(folder: Path, language: str) -> list[tuple[bool, str, list[str]]]:
    """(whether a passage is relevant, question, passages) of the first rows of both subsets."""
    found = []
    for subset in ("relevant", "non_relevant"):
        for line in (folder / f"{subset}.{language}.first60.jsonl").read_text().splitlines():
            prompt = json.loads(line)["prompt"]
            question, contexts = re.search(r"QUESTION:\n(.*?)\n\nCONTEXTS:\n(.*?)\n\nOUTPUT:", prompt, re.S).groups()
            passages = re.split(r"(?:^|\n\n)\[\d+\] ", contexts)[1:]
            found.append((subset == "relevant", question.strip(), passages))
    return found


def scores(judge: Any, rows: list[tuple[bool, str, list[str]]], hypothesis: str) -> list[tuple[bool, float, int]]:
    """Per question: whether it is answerable, the best passage's p_yes, and whether any has the label 1."""
    asks = [
        {"premise": passage, "hypothesis": hypothesis.replace("{question}", question)}
        for _, question, passages in rows
        for passage in passages
    ]
    answers = iter(judge.answer_batch(asks))
    made = []
    for relevant, _, passages in rows:
        verdicts = [next(answers) for _ in passages]
        made.append((relevant, max(v.p_yes for v in verdicts), max(v.label for v in verdicts)))
    return made


def auroc(made: list[tuple[bool, float, int]]) -> float:
    """Chance that an answerable question scores above another, ties counted half."""
    yes = [score for relevant, score, _ in made if relevant]
    no = [score for relevant, score, _ in made if not relevant]
    return sum((a > b) + (a == b) / 2 for a in yes for b in no) / (len(yes) * len(no))


def test_the_readme_says_how_well_word_recall_does(shared: Path, repo: Path) -> None:
    judge, folder = build_entails({"backend": "lexical"}), shared / "data" / "nomiracl"
    found = [auroc(scores(judge, questions(folder, language), NoGoldConfig().answerable_if)) for language in LANGUAGES]
    words = ", ".join(f"{value:.2f} ({language})" for language, value in zip(LANGUAGES, found, strict=True))
    assert words in " ".join((repo / "README.md").read_text().split())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_row_has_its_passages(shared: Path, language: str) -> None:
    assert all(question and passages for _, question, passages in questions(shared / "data" / "nomiracl", language))


if __name__ == "__main__":
    name = sys.argv[1]
    chosen = build_entails({"backend": "lexical"} if name == "lexical" else {"backend": "t5", "model": name})
    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "nomiracl"
    for language in LANGUAGES:
        rows = questions(folder, language)
        for template in ("{question}", WORDED):
            made = scores(chosen, rows, template)
            hits = sum(label for relevant, _, label in made if relevant)
            false = sum(label for relevant, _, label in made if not relevant)
            print(
                f"{language}  {template!r}: AUROC {auroc(made):.2f}; label 1 for {hits} of 60 answerable, {false} of 60 not"
            )
