"""The clusters of questions as points in two dimensions, one SVG file."""

import io
import textwrap
from typing import Any

import pyarrow.compute as pc
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

from trust.align.clusters import NOISE
from trust.align.curate import lot
from trust.storage import Storage

_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "trust", "font.size": 9}
_POINTS = 4000  # at most, by lot
_NAMED = 40  # clusters, the largest
_WIDEST = 24  # characters of a line of a topic
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
    with rc_context(_STYLE):
        figure = Figure(figsize=(8, 6.4), facecolor="white")
        axes = figure.add_axes((0.02, 0.03, 0.96, 0.89))
        by_cluster: dict[int, list[tuple[float, float]]] = {}
        for point in points:
            by_cluster.setdefault(point["cluster"], []).append((point["x"], point["y"]))
        size = max(6.0, min(36.0, 9000 / max(1, len(points))))
        for number, places in sorted(by_cluster.items()):
            x, y = ([place[axis] for place in places] for axis in (0, 1))
            colour = _NOISE if number == NOISE else colormaps["tab20"](number % 20)
            axes.scatter(x, y, s=size, color=[colour], alpha=0.75, linewidths=0)
        for cluster in sorted(clusters, key=lambda one: (-one["rows"], one["cluster"]))[:_NAMED]:
            if places := by_cluster.get(cluster["cluster"], []):
                middle_x, middle_y = (sorted(place[axis] for place in places)[len(places) // 2] for axis in (0, 1))
                axes.text(middle_x, middle_y, _name(cluster), ha="center", va="center", fontsize=8, bbox=_box())
        axes.set_xticks([])
        axes.set_yticks([])
        axes.margins(0.08)
        for spine in axes.spines.values():
            spine.set_color("#dddddd")
        names = sum(number != NOISE for number in by_cluster)
        some = f"{len(points):,} of {rows:,} questions" if len(points) < rows else f"{rows:,} questions"
        figure.text(0.02, 0.955, f"{some} in {names} clusters: topic and demand for knowledge", weight="bold")
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _name(cluster: dict[str, Any]) -> str:
    number = "noise" if cluster["cluster"] == NOISE else f"{cluster['cluster']}"
    if cluster["status"] == "failed":
        return f"{number}\nnot rated"
    lines = textwrap.wrap(cluster["topic"] or number, _WIDEST, max_lines=2, placeholder="…")
    # A pair of dollars would be a formula.
    return "\n".join([*lines, f"{cluster['demand']:g} of 7"]).replace("$", r"\$")


def _box() -> dict[str, Any]:
    return {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "#bbbbbb", "alpha": 0.85, "linewidth": 0.6}
