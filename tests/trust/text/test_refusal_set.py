"""Precision and recall of the refusal detector on the labelled texts of `tests/data/refusals`.

`python -m tests.trust.text.test_refusal_set` prints the table of the README.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from trust.metrics import Stat
from trust.stats import interval
from trust.text.languages import SUPPORTED
from trust.text.refusals import Detector
from trust.text.sentences import split

FOLDER = Path(__file__).resolve().parents[2] / "data" / "refusals"
README = Path(__file__).resolve().parents[3] / "README.md"
DETECTOR = Detector()


class Text(NamedTuple):
    half: str
    label: str
    kind: str
    text: str


class Counts(NamedTuple):
    """Refusals found, answers taken for refusals, refusals missed."""

    hit: int
    wrong: int
    missed: int

    def __add__(self, other: "Counts") -> "Counts":  # type: ignore[override]
        return Counts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def read(language: str) -> list[Text]:
    with (FOLDER / f"{language}.tsv").open(encoding="utf-8", newline="") as file:
        return [Text(*row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def found(text: str, language: str) -> str:
    return DETECTOR.classify(split(text, language), language).response


def count(pairs: Iterable[tuple[str, str]]) -> Counts:
    """From (label, what the detector says)."""
    seen = Counter(pairs)
    refused = "refused"
    return Counts(
        seen[refused, refused],
        sum(number for (label, said), number in seen.items() if said == refused != label),
        sum(number for (label, said), number in seen.items() if label == refused != said),
    )


def measure(language: str, half: str | None = None) -> Counts:
    texts = [text for text in read(language) if half in (None, text.half)]
    return count((text.label, found(text.text, language)) for text in texts)


def share(part: int, whole: int) -> str:
    """A percentage with Wilson's 95 % interval, as published rates have it."""
    if not whole:
        return "n.a."
    point = 100.0 * part / whole
    stat = Stat(np.full(200, point), whole, part)
    bounds = interval(stat, whole)
    return f"{point:.0f}" + (f" [{bounds[0]:.0f}, {bounds[1]:.0f}]" if bounds else "")


def line(name: str, every: Counts, held: Counts) -> str:
    cells = [
        share(every.hit, every.hit + every.wrong),
        share(every.hit, every.hit + every.missed),
        f"{held.hit} of {held.hit + held.wrong}",
        f"{held.hit} of {held.hit + held.missed}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def table() -> list[str]:
    """The table of the README."""
    every = {language: measure(language) for language in sorted(SUPPORTED)}
    held = {language: measure(language, "held") for language in sorted(SUPPORTED)}
    zero = Counts(0, 0, 0)
    return [
        "| language | precision | recall | precision, held-out half | recall, held-out half |",
        "| --- | --- | --- | --- | --- |",
        *(line(language, every[language], held[language]) for language in every),
        line("all", sum(every.values(), zero), sum(held.values(), zero)),
    ]


def golden(folder: Path) -> Counts:
    """On the composed English outputs of the shared golden data: kinds `refusal` and `near` are refusals."""
    pairs = []
    for task in ("asqa", "qampari", "eli5"):
        for row in json.loads((folder / task / "input.json").read_text())["data"]:
            label = "refused" if row["kind"] in ("refusal", "near") else "answered"
            pairs.append((label, found(row["output"], "en")))
    return count(pairs)


@pytest.mark.parametrize("language", sorted(SUPPORTED))
def test_every_language_has_as_many_hard_answers_as_refusals_in_both_halves(language: str) -> None:
    texts = read(language)
    assert len(texts) >= 20
    assert len({text.text for text in texts}) == len(texts)
    for half in ("dev", "held"):
        assert Counter(text.label for text in texts if text.half == half) == {"refused": 6, "answered": 6}


def test_the_readme_gives_the_figures_that_the_code_gives() -> None:
    text = README.read_text(encoding="utf-8")
    assert "\n".join(table()) in text


def test_the_readme_gives_the_figures_of_the_shared_refusals(shared: Path) -> None:
    assert golden(shared / "data" / "trust_golden") == Counts(18, 1, 0)


if __name__ == "__main__":
    print("\n".join(table()))
    for tag in sorted(SUPPORTED):
        for item in read(tag):
            if (said := found(item.text, tag)) != item.label:
                print(f"{tag} {item.half} {item.label} {item.kind} -> {said}: {item.text}")
