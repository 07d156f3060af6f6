"""The clusters of questions as points in two dimensions, one SVG file."""

import io
import textwrap
from typing import Any

import pyarrow.compute as pc
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from trust.align.clusters import NOISE
from trust.align.curate import lot
from trust.storage import Storage

_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "trust", "font.size": 9}
_POINTS = 4000  # at most, by lot
_LISTED = 28  # clusters, the largest
_WIDEST = 48  # characters of a topic
_NOISE = "#c8c4bc"


def draw_clusters(storage: Storage, paths: list[str], clusters: list[dict[str, Any]]) -> str:
    """The drawing.

    Args:
        paths: parts of the table `clustered`.
        clusters: rows of the table `clusters`.
    """
    columns, placed = ["sample_id", "cluster", "x", "y"], pc.field("x").is_valid()
    rows = [row for path in paths for row in storage.read_table(path, columns, placed).to_pylist()]
    shown = sorted(rows, key=lambda row: lot(0, row["sample_id"]))[:_POINTS]
    return draw(shown, clusters, len(rows))


def draw(points: list[dict[str, Any]], clusters: list[dict[str, Any]], rows: int) -> str:
    """The drawing of some of the points.

    Args:
        points: with cluster, x, y.
        clusters: with cluster, topic, demand, rows.
        rows: how many there are in all.
    """
    by_cluster: dict[int, list[tuple[float, float]]] = {}
    for point in points:
        by_cluster.setdefault(point["cluster"], []).append((point["x"], point["y"]))
    rated = sorted(clusters, key=lambda one: (-one["rows"], one["cluster"]))
    with rc_context(_STYLE):
        figure = Figure(figsize=(10.5, 6.4), facecolor="white")
        axes = figure.add_axes((0.015, 0.025, 0.6, 0.895))
        size = max(8.0, min(40.0, 12000 / max(1, len(points))))
        for number, places in sorted(by_cluster.items()):
            x, y = ([place[axis] for place in places] for axis in (0, 1))
            axes.scatter(x, y, s=size, color=[_colour(number)], linewidths=0, zorder=1 if number == NOISE else 2)
        for cluster in rated[:_LISTED]:
            places = by_cluster.get(cluster["cluster"], [])
            if places and cluster["cluster"] != NOISE:
                x_middle, y_middle = (sorted(place[axis] for place in places)[len(places) // 2] for axis in (0, 1))
                halo = [withStroke(linewidth=2.5, foreground="white")]
                offset: Any = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center", "weight": "bold"}
                axes.annotate(str(cluster["cluster"]), (x_middle, y_middle), path_effects=halo, zorder=3, **offset)
        axes.set(xticks=[], yticks=[])
        axes.margins(0.06)
        for spine in axes.spines.values():
            spine.set_color("#dddddd")
        for line, cluster in enumerate(rated[:_LISTED]):
            at = 0.905 - line * 0.031
            figure.text(0.63, at, "\u25cf", color=_colour(cluster["cluster"]), va="center")
            figure.text(0.645, at, _told(cluster), va="center", fontsize=8.5)
        if len(rated) > _LISTED:
            figure.text(
                0.645, 0.905 - _LISTED * 0.031, f"and {len(rated) - _LISTED} smaller ones", va="center", fontsize=8.5
            )
        names = sum(number != NOISE for number in by_cluster)
        some = f"{len(points):,} of {rows:,} questions" if len(points) < rows else f"{rows:,} questions"
        figure.text(0.015, 0.955, f"{some} in {names} clusters", weight="bold")
        figure.text(0.63, 0.955, "topic (demand for knowledge, 1 to 7; questions)", weight="bold")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _colour(number: int) -> Any:
    return _NOISE if number == NOISE else colormaps["tab20"](number % 20)


def _told(cluster: dict[str, Any]) -> str:
    """A line of the list."""
    name = "noise" if cluster["cluster"] == NOISE else str(cluster["cluster"])
    topic = (
        "not rated" if cluster["status"] == "failed" else textwrap.shorten(cluster["topic"], _WIDEST, placeholder="…")
    )
    demand = "" if cluster["demand"] is None else f"{cluster['demand']:g}; "
    # A pair of dollars would be a formula.
    return f"{name}: {topic} ({demand}{cluster['rows']:,})".replace("$", r"\$")
