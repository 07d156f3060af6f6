"""The runner: full batches, no ask twice, failures on the rows that asked."""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from trust.ask import AskFailed, Completion, Embedding, Likelihood, Verdict
from trust.ask.runner import Ledger, Runner


class Judge:
    """Label 1 where the hypothesis' text is in the premise; keeps the batches it saw."""

    fingerprint = "f" * 16
    batch_size = 4
    lanes = 1

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
        self.batches.append([pair["hypothesis"] for pair in inputs])
        if any(pair["hypothesis"] == "crash" for pair in inputs):
            raise MemoryError("no room")
        return [
            AskFailed("no_answer", "the judge said nothing")
            if pair["hypothesis"] == "bad"
            else Verdict(int(pair["hypothesis"] in pair["premise"]), 0.5)
            for pair in inputs
        ]


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


def test_rows_share_full_batches_sorted_by_length() -> None:
    async def rows() -> tuple[Judge, Ledger]:
        judge, ledger = Judge(), Ledger()
        runner = Runner({"entails": judge})
        asks = [runner.ask_for(f"s{i}", ledger).entails("p", "x" * (i + 1)) for i in range(8)]
        await asyncio.gather(*asks)
        return judge, ledger

    judge, ledger = run(rows())
    assert [len(batch) for batch in judge.batches] == [4, 4]
    assert [len(text) for text in judge.batches[0]] == [5, 6, 7, 8]
    assert ledger.counts == {"asked": 8, "truncated": 0}


def test_units_share_batches_and_their_seconds() -> None:
    class Slow(Judge):
        def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
            time.sleep(0.02)
            return super().answer_batch(inputs)

    async def units() -> tuple[Judge, list[Ledger]]:
        judge, ledgers = Slow(), [Ledger(), Ledger()]
        runner = Runner({"entails": judge})
        sizes = {0: 6, 1: 2}
        asks = [(unit, unit * 10 + i) for unit, size in sizes.items() for i in range(size)]
        await asyncio.gather(*(runner.ask_for("s", ledgers[u]).entails("p", "x" * n) for u, n in asks))
        return judge, ledgers

    judge, (first, second) = run(units())
    assert [len(batch) for batch in judge.batches] == [4, 4]
    assert first.seconds == pytest.approx(3 * second.seconds, rel=0.5), "six of eight asks, two of eight"
    assert first.seconds + second.seconds >= 0.04


def test_a_full_batch_waits_behind_the_one_that_runs() -> None:
    async def rows() -> list[int]:
        started, release = threading.Event(), threading.Event()

        class Held(Judge):
            def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
                if self.batches:
                    started.set()
                else:
                    release.wait(10)
                return super().answer_batch(inputs)

        judge = Held()
        runner, ledger = Runner({"entails": judge}), Ledger()
        asks = [asyncio.create_task(runner.ask_for("s", ledger).entails("p", "x" * n)) for n in range(1, 11)]
        await asyncio.sleep(0.01)
        release.set()
        assert started.wait(10), (
            "the second batch starts although this loop is kept from handing on the first's answers"
        )
        await asyncio.gather(*asks)
        return [len(batch) for batch in judge.batches]

    assert run(rows()) == [4, 4, 2]


def test_lanes_share_what_is_open_and_work_at_once() -> None:
    both = threading.Barrier(2, timeout=10)

    class Lanes(Judge):
        lanes = 2

        def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
            answers = super().answer_batch(inputs)
            both.wait()
            return answers

    async def rows(count: int) -> list[int]:
        judge = Lanes()
        runner, ledger = Runner({"entails": judge}), Ledger()
        asks = (runner.ask_for("s", ledger).entails("p" * n, "p" * n) for n in range(1, count + 1))
        assert [verdict.label for verdict in await asyncio.gather(*asks)] == [1] * count
        return sorted(len(batch) for batch in judge.batches)

    assert run(rows(6)) == [3, 3]
    assert run(rows(16)) == [4, 4, 4, 4]


def test_dependent_asks_run_after_their_answers() -> None:
    async def row(runner: Runner, name: str, ledger: Ledger) -> int:
        ask = runner.ask_for(name, ledger)
        first = await ask.entails(f"{name} a", "a")
        second = await ask.entails(f"{name} b", "b" if first.label else "c")
        return first.label + second.label

    async def rows() -> list[int]:
        runner, ledger = Runner({"entails": Judge()}), Ledger()
        return await asyncio.gather(*(row(runner, f"s{i}", ledger) for i in range(5)))

    assert run(rows()) == [2] * 5


def test_repeats_are_asked_once_even_while_the_first_is_under_way() -> None:
    async def rows() -> tuple[Judge, Ledger, list[dict[str, Any]]]:
        judge, ledger = Judge(), Ledger({"entails": "j"})
        runner = Runner({"entails": judge})
        asks = [runner.ask_for(f"s{i}", ledger) for i in range(3)]
        await asyncio.gather(*(ask.entails("p", "p", role="claim", sentence=i) for i, ask in enumerate(asks)))
        await asks[0].entails("p", "p")
        return judge, ledger, asks[1].trail

    judge, ledger, trail = run(rows())
    assert judge.batches == [["p"]]
    assert ledger.counts["asked"] == 1
    assert ledger.counts["repeated"] == 3
    assert [(item["role"], item["sentence"]) for item in trail] == [("claim", 1)]
    (verdict,) = ledger.verdicts.values()
    assert (verdict["judge"], verdict["answer"], verdict["status"]) == ("j", "1", "ok")
    assert verdict["inputs"] == {"premise": "p", "hypothesis": "p"}


def test_known_verdicts_are_reused() -> None:
    async def rows() -> tuple[Judge, Ledger]:
        judge, first, second = Judge(), Ledger(), Ledger()
        runner = Runner({"entails": judge})
        await runner.ask_for("s", first).entails("p", "p")
        for row in first.verdicts.values():
            second.know({key: value for key, value in row.items() if key != "used"})
        assert (await runner.ask_for("s", second).entails("p", "p")).label == 1
        await runner.ask_for("s", second).entails("p", "p")
        return judge, second

    judge, ledger = run(rows())
    assert len(judge.batches) == 1
    assert ledger.counts == {"reused": 1, "repeated": 1}
    assert not ledger.new


def test_units_share_answers_given_lately_or_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trust.ask.runner._RECENT", {"entails": 2})

    async def units() -> tuple[list[list[str]], list[Ledger]]:
        judge, ledgers = Judge(), [Ledger({"entails": "j"}) for _ in range(4)]
        runner = Runner({"entails": judge})
        asks = [runner.ask_for(f"s{i}", ledger) for i, ledger in enumerate(ledgers)]
        await asyncio.gather(asks[0].entails("p", "p"), asks[1].entails("p", "p"))
        await asks[2].entails("p", "p")
        for text in ("x", "y"):
            await asks[2].entails("p", text)
        await asks[3].entails("p", "p")
        return judge.batches, ledgers

    batches, ledgers = run(units())
    assert batches == [["p"], ["x"], ["y"], ["p"]], "only the last two are kept"
    assert [(each.counts["asked"], each.counts["repeated"]) for each in ledgers] == [(1, 0), (0, 1), (2, 1), (1, 0)]
    rows = [next(iter(each.verdicts.values())) for each in ledgers]
    assert [row["sample_id"] for row in rows] == ["s0", "s1", "s2", "s3"]
    assert {(row["answer"], row["score"], row["status"], row["judge"]) for row in rows} == {("1", 0.5, "ok", "j")}
    assert all(each.new == set(each.verdicts) for each in ledgers), "each unit keeps them in the store for its samples"


def test_a_failed_answer_fails_each_row_that_asked_and_no_other() -> None:
    async def rows() -> list[Any]:
        runner, ledger = Runner({"entails": Judge()}), Ledger()
        asks = [runner.ask_for(f"s{i}", ledger).entails("p", text) for i, text in enumerate(("bad", "p", "bad"))]
        return await asyncio.gather(*asks, return_exceptions=True)

    first, good, second = run(rows())
    assert isinstance(first, AskFailed)
    assert isinstance(second, AskFailed)
    assert (first.reason, second.reason) == ("no_answer", "no_answer")
    assert good.label == 1


def test_a_batch_that_cannot_run_raises_what_happened() -> None:
    async def rows() -> None:
        await Runner({"entails": Judge()}).ask_for("s", Ledger()).entails("p", "crash")

    with pytest.raises(MemoryError, match="no room"):
        run(rows())


class Engine:
    fingerprint = "e" * 16

    async def answer(self, inputs: dict[str, Any]) -> Completion:
        await asyncio.sleep(0)
        return Completion(inputs["messages"].upper(), "stop", 1, 2)


def test_a_streaming_backend_gets_each_ask_at_once() -> None:
    async def rows() -> list[Completion]:
        runner, ledger = Runner({"complete": Engine()}), Ledger()
        return await asyncio.gather(*(runner.ask_for("s", ledger).complete(text, {}) for text in "ab"))

    assert [answer.text for answer in run(rows())] == ["A", "B"]


class Writer:
    """Says what it was asked, with log-probabilities; cannot answer `crash`."""

    fingerprint = "w"

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def answer(self, inputs: dict[str, Any]) -> Completion:
        self.asked.append(inputs)
        if inputs["messages"] == "crash":
            raise AskFailed("refused", "no", totals={"cost": 2.0})
        return Completion(f"echo {inputs['messages']}", "stop", 3, None, {"cost": 1.0}, (("ec", -0.5), ("x", -2.0)))


def test_completions_are_kept_as_verdicts_and_reused() -> None:
    async def go() -> None:
        writer = Writer()
        runner, first, second = Runner({"complete": writer}), Ledger({"complete": "w"}), Ledger({"complete": "w"})
        sampling, schema = {"temperature": 0.0, "seed": 1}, {"type": "object"}
        ask = runner.ask_for("s", first)
        answers = await asyncio.gather(*(ask.complete("hello", sampling, schema, role="r") for _ in range(3)))
        assert len({answer.text for answer in answers}) == len(writer.asked) == 1
        assert [entry["role"] for entry in ask.trail] == ["r"] * 3
        assert (first.counts["asked"], first.counts["repeated"], first.totals["cost"]) == (1, 2, 1.0)
        await runner.ask_for("s", first).complete("hello", sampling | {"seed": 2}, schema)
        assert len(writer.asked) == 2, "another seed is another ask"
        (row, _) = first.verdicts.values()
        assert (row["judge"], row["ask"], row["answer"]) == ("w", "complete", "echo hello")
        assert set(row["inputs"]) == {"messages", "sampling", "schema"}
        assert all(isinstance(value, str) for value in row["inputs"].values())

        second.know({key: value for key, value in row.items() if key != "used"})
        again = await Runner({"complete": writer}).ask_for("s", second).complete("hello", sampling, schema)
        assert second.counts == {"reused": 1}
        assert (again.text, again.finish_reason, again.prompt_tokens, again.output_tokens) == (
            "echo hello",
            "stop",
            3,
            None,
        )
        assert again.first_tokens == (("ec", -0.5), ("x", -2.0))

        with pytest.raises(AskFailed, match="no"):
            await ask.complete("crash", sampling)
        assert (first.counts["failed"], first.totals["cost"]) == (1, 4.0)

    asyncio.run(go())


def test_likelihoods_are_kept_as_verdicts_and_read_again() -> None:
    class Scorer(Judge):
        def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
            return [Likelihood(-len(one["context"]) / 4, tokens=3, truncated=True) for one in inputs]

    async def rows() -> None:
        first, second = Ledger({"logprob": "j"}), Ledger({"logprob": "j"})
        answer = await Runner({"logprob": Scorer()}).ask_for("s", first).logprob("abc", "d", role="recall")
        (row,) = first.verdicts.values()
        assert (row["judge"], row["ask"], row["answer"], row["score"]) == ("j", "logprob", "3", -0.75)
        assert row["inputs"] == {"context": "abc", "continuation": "d"}
        assert first.counts == {"asked": 1, "truncated": 1}
        second.know({key: value for key, value in row.items() if key != "used"})
        nobody = Runner({})
        assert await nobody.ask_for("s", second).logprob("abc", "d") == answer == Likelihood(-0.75, 3, truncated=True)
        assert second.counts == {"reused": 1}

    run(rows())


def test_token_vectors_are_not_kept_at_hand() -> None:
    class Embedder(Judge):
        def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
            self.batches.append([one["text"] for one in inputs])
            vector = np.ones(2, np.float32)
            return [Embedding(vector, tokens=vector[None] if one["text"] == "tokens" else None) for one in inputs]

    async def rows() -> None:
        embedder = Embedder()
        ask = Runner({"embed": embedder}).ask_for("s", Ledger())
        for text in ("whole", "whole", "tokens", "tokens"):
            await ask.embed(text)
        assert embedder.batches == [["whole"], ["tokens"], ["tokens"]]

    run(rows())
