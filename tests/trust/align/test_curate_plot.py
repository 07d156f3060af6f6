import xml.etree.ElementTree as ET
from typing import Any

from trust.align.curate_plot import draw


def row(cluster: int, topic: str | None, demand: float | None, rows: int) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "topic": topic,
        "demand": demand,
        "rows": rows,
        "status": "failed" if topic is None else "ok",
    }


def test_clusters_are_named_and_texts_escaped() -> None:
    points = [{"cluster": n % 3 - 1, "x": float(n), "y": float(n * n % 7)} for n in range(30)]
    drawn = draw(points, [row(0, "Rivers <b> & $x$", 5.0, 10), row(1, None, None, 8)], rows=90)
    texts = ["".join(element.itertext()) for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert "0: Rivers <b> & $x$ (5; 10)" in texts
    assert "1: not rated (8)" in texts
    assert "30 of 90 questions in 2 clusters" in texts
    assert drawn == draw(points, [row(0, "Rivers <b> & $x$", 5.0, 10), row(1, None, None, 8)], rows=90)


def test_long_lists_are_cut() -> None:
    points = [{"cluster": n, "x": float(n), "y": 0.0} for n in range(40)]
    drawn = draw(points, [row(n, "t" * 300, 4.0, 40 - n) for n in range(40)], rows=40)
    assert "and 12 smaller ones" in drawn
    assert "t" * 60 not in drawn
    assert "0 questions in 0 clusters" in draw([], [], rows=0)
