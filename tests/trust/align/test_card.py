import json
from pathlib import Path

import pytest

from trust.align.card import write_card
from trust.runs import Manifest, Run
from trust.storage import Storage


def test_a_card_says_what_became_of_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(Storage(), str(tmp_path), "r")
    totals = {"dropped:near_repeat": 2.0, "failed:no_answers": 1.0, "failed:gone": 0.0, "asks_made": 7.0}
    parts = {"seeds": [{"path": "a", "rows": 3, "bytes": 1}, {"path": "b", "rows": 4, "bytes": 1}]}
    counts = {"ok": 7, "dropped": 2, "failed": 1}
    write_card(Manifest("curate", "r", "f", {}, {}, {}, "now", 1, counts, totals, parts), run)
    made = json.loads(Path(run.path("cards", "curate.json")).read_text())
    assert (made["rows_in"], made["ok"], made["dropped"], made["failed"]) == (
        10,
        7,
        {"near_repeat": 2},
        {"no_answers": 1},
    )
    assert made["tables"] == {"seeds": 7}
    assert made["numbers"] == {"asks_made": 7.0}
    assert "dropped: 2 near_repeat" in capsys.readouterr().out
