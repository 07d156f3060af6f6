"""Plots as inline SVG: text stays text, colours are the page's, nothing is loaded."""

import io
import re
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

# What matplotlib is told, and what the page's style sheet decides instead.
_INK, _FAINT, _ACCENT = "#010203", "#040506", "#070809"
_COLOURS = {_INK: "currentColor", _FAINT: "var(--line)", _ACCENT: "var(--accent)"}
_LEAD = "Trust-Score"  # stands out
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "trust", "font.size": 10}


class Point(NamedTuple):
    """A rate from 0 to 100 with its interval; `value` None is not applicable."""

    label: str
    value: float | None
    low: float | None
    high: float | None


def intervals(points: list[Point], name: str) -> str:
    """A row a point: its value as a dot, its interval as a bar, both on a scale from 0 to 100.

    Args:
        name: unique on the page, letters, digits, `-` and `_`; ids inside the drawing begin with it.

    Returns:
        An `<svg>` element.
    """
    height = 0.4 + 0.36 * len(points)
    with rc_context(_STYLE):
        figure = Figure(figsize=(4.5, height))
        axes = figure.add_axes((0.3, 0.32 / height, 0.56, 1 - 0.34 / height))
        axes.set_xlim(0, 100)
        axes.set_ylim(len(points) - 0.5, -0.5)
        beside = blended_transform_factory(axes.transAxes, axes.transData)
        for row, point in enumerate(points):
            axes.axhline(row, color=_FAINT, linewidth=1, zorder=1)
            if point.value is None:
                axes.text(1.04, row, "n.a.", transform=beside, va="center", color=_INK)
                continue
            if point.low is not None and point.high is not None:
                axes.plot([point.low, point.high], [row, row], color=_ACCENT, alpha=0.45, linewidth=7, zorder=2)
            size, weight = (10, "bold") if point.label == _LEAD else (8, "normal")
            axes.plot([point.value], [row], "o", color=_ACCENT, markersize=size, zorder=3, clip_on=False)
            axes.text(1.04, row, f"{point.value:.1f}", transform=beside, va="center", color=_INK, weight=weight)
        axes.set_yticks(range(len(points)), [point.label for point in points])
        axes.tick_params(axis="both", length=0, colors=_INK, pad=5)
        for label in axes.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() == _LEAD else "normal")
        axes.set_xticks(range(0, 101, 25))
        axes.grid(axis="x", color=_FAINT, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_frame_on(False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue().decode(), name, _described(points))


def _inline(svg: str, name: str, description: str) -> str:
    """The drawing without what only a file of its own needs, its ids unique, its colours the page's."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'\sid="', f' id="{name}-', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'\s(?:width|height)="[^"]*pt"', "", svg)
    for colour, ours in _COLOURS.items():
        svg = svg.replace(colour, ours)
    return svg.replace("<svg", f'<svg role="img" aria-label="{description}"', 1)


def _described(points: list[Point]) -> str:
    """The plot in words, for who cannot see it; labels are the suite's own, without quotes."""
    words = []
    for point in points:
        if point.value is None:
            words.append(f"{point.label} not applicable")
        elif point.low is None or point.high is None:
            words.append(f"{point.label} {point.value:.1f}")
        else:
            words.append(f"{point.label} {point.value:.1f}, from {point.low:.1f} to {point.high:.1f}")
    return "; ".join(words)
