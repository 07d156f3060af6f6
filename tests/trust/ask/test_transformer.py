import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.trust.ask.nli_models import write
from trust.ask.nli import NliConfig, NliJudge
from trust.ask.transformer import chunks


def test_chunks_stay_within_the_token_budget_and_lose_nothing() -> None:
    lengths = dict(enumerate([5, 100, 7, 30, 100, 1]))
    groups = chunks(lengths, 200)
    assert sorted(index for group in groups for index in group) == list(range(6))
    for group in groups:
        assert len(group) * max(lengths[i] for i in group) <= 200
    assert chunks({7: 500}, 200) == [[7]], "a single long input still runs"


def test_the_first_batch_runs_alone_and_the_others_at_once(tmp_path: Path) -> None:
    judge = NliJudge(NliConfig(model=str(write(tmp_path)), languages=None, threads=2))
    step, begun, meeting = judge._step, threading.Semaphore(0), threading.Barrier(2, timeout=20)
    first = threading.Lock()

    def watched(rows: Any) -> Any:
        if first.acquire(blocking=False):
            assert not begun.acquire(timeout=0.5), "another batch began before the first was done"
        else:
            begun.release()
            meeting.wait()  # breaks unless two are in it at once
        return step(rows)

    judge._step = watched  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(judge.answer_batch, [[{"premise": "Paris.", "hypothesis": "Paris"}]] * 3))
    assert answers[0] == answers[1] == answers[2]
