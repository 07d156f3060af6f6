"""Metrics against dimensions as a heat map with numbers, one SVG file."""

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from trust.agree.measure import Row

# What is drawn, the first that any metric has: how the papers compare metrics, by the kind of ratings.
_CHOICES = (
    ("summary", "spearman", "Spearman's ρ over the systems of each group, mean over groups"),
    ("sample", "spearman", "Spearman's ρ over all outputs"),
    ("pairs", "pairwise_accuracy", "share of pairs in which the metric prefers what people prefer"),
)
_SHARES = ("pairwise_accuracy",)
_COLOURS = ("#a8452f", "#f3f1ec", "#2f6f8f")
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "trust", "font.size": 9}
_WIDEST = 40  # characters of a name


def heat_map(rows: list[Row]) -> str | None:
    """The drawing; None where no coefficient could be drawn.

    Args:
        rows: of the table `agreement`.
    """
    for level, statistic, title in _CHOICES:
        chosen = [row for row in rows if (row.level, row.statistic) == (level, statistic)]
        if any(row.value is not None for row in chosen):
            return _draw(chosen, title, (0.0, 1.0) if statistic in _SHARES else (-1.0, 1.0))
    return None


def _draw(rows: list[Row], title: str, limits: tuple[float, float]) -> str:
    metrics = [*dict.fromkeys(row.metric for row in rows)]
    dimensions = [*dict.fromkeys(row.dimension for row in rows)]
    values = {(row.metric, row.dimension): row for row in rows}
    longest = min(_WIDEST, max(map(len, metrics)))
    left, top = 0.3 + 0.075 * longest, 0.7
    cell = max(0.95, 0.3 + 0.075 * min(_WIDEST, max(map(len, dimensions))))
    wide, high = cell * len(dimensions), 0.36 * len(metrics)
    width, height = max(left + wide + 0.2, 0.062 * len(title) + 0.3), top + high + 0.15
    colours = LinearSegmentedColormap.from_list("agreement", _COLOURS)
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), facecolor="white")
        axes = figure.add_axes((left / width, 0.15 / height, wide / width, high / height))
        shades = [[_shade(values.get((metric, name))) for name in dimensions] for metric in metrics]
        axes.imshow(shades, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
        for y, metric in enumerate(metrics):
            for x, name in enumerate(dimensions):
                row = values.get((metric, name))
                value = None if row is None else row.value
                strong = value is not None and abs(2 * (value - limits[0]) / (limits[1] - limits[0]) - 1) > 0.6
                axes.text(
                    x,
                    y,
                    "n.a." if value is None else f"{value:.2f}",
                    ha="center",
                    va="center",
                    color="white" if strong else "#222222",
                )
        axes.set_xticks(range(len(dimensions)), [_short(name) for name in dimensions])
        axes.set_yticks(range(len(metrics)), [_short(name) for name in metrics])
        axes.tick_params(axis="both", length=0)
        axes.xaxis.tick_top()
        axes.set_frame_on(False)
        figure.text(0.1 / width, 1 - 0.22 / height, title, weight="bold")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _shade(row: Row | None) -> float:
    return float("nan") if row is None or row.value is None else row.value


def _short(name: str) -> str:
    shown = name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
    return shown.replace("$", r"\$")  # a pair of them would be a formula
