"""The plot as inline SVG."""

import re
from xml.etree import ElementTree

from trust.report.plot import Point, intervals

POINTS = [
    Point("Trust-Score", 61.2, 58.0, 64.0),
    Point("F1_GR refusals", None, None, None),
    Point("F1_AC", 3.0, None, None),
]


def test_it_parses_and_holds_its_text_as_text() -> None:
    svg = intervals(POINTS, "plot-0")
    ElementTree.fromstring(svg.replace("xlink:", ""))
    for text in ("Trust-Score", "61.2", "n.a.", "3.0"):
        assert f">{text}</text>" in svg


def test_colours_are_the_pages_and_nothing_is_loaded() -> None:
    svg = intervals(POINTS, "plot-0")
    assert "currentColor" in svg
    assert "var(--accent)" in svg
    assert "://" not in svg
    assert set(re.findall(r"#[0-9a-fA-F]{6}\b", svg)) <= {"#000000", "#ffffff"}


def test_ids_of_two_plots_differ_and_references_hold() -> None:
    first, second = intervals(POINTS, "plot-0"), intervals(POINTS, "plot-1")
    ids = set(re.findall(r'\sid="([^"]*)"', first))
    assert ids.isdisjoint(re.findall(r'\sid="([^"]*)"', second))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', first)) <= ids


def test_it_is_told_in_words() -> None:
    svg = intervals(POINTS, "plot-0")
    assert "Trust-Score 61.2, from 58.0 to 64.0; F1_GR refusals not applicable; F1_AC 3.0" in svg


def test_the_same_points_give_the_same_drawing() -> None:
    assert intervals(POINTS, "a") == intervals(POINTS, "a")
