"""The heat map: numbers as text, what it draws, and what it cannot."""

from xml.etree import ElementTree

from trust.agree.measure import Row
from trust.agree.plot import heat_map


def row(metric: str, dimension: str, value: float | None, level: str = "sample", statistic: str = "spearman") -> Row:
    return Row(dimension, metric, level, statistic, value)


def test_numbers_stand_in_the_drawing_as_text() -> None:
    rows = [row("bleu", "fluency", 0.123), row("bleu", "a$b$", None), row("rouge" * 20, "fluency", -0.9)]
    drawn = heat_map(rows)
    assert drawn is not None
    ElementTree.fromstring(drawn)
    for text in ("bleu", "fluency", "a$b$", "0.12", "-0.90", "n.a."):
        assert f">{text}<" in drawn.replace("−", "-")
    assert "rougerouge…" not in drawn
    assert "rouge" * 7 in drawn
    assert heat_map(rows) == drawn


def test_within_documents_goes_before_over_all_outputs() -> None:
    rows = [row("bleu", "fluency", 0.11), row("bleu", "fluency", 0.22, "summary")]
    assert ">0.22<" in (heat_map(rows) or "")
    assert ">0.22<" not in (heat_map([*rows[:1], row("bleu", "fluency", None, "summary")]) or "")


def test_pairs_are_drawn_as_shares_and_nothing_is_no_drawing() -> None:
    pairs = [row("m", "faithfulness", 0.95, "pairs", "pairwise_accuracy")]
    assert "share of pairs" in (heat_map(pairs) or "")
    assert heat_map([row("m", "q", None)]) is None
