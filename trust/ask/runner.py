"""The runner: starts a coroutine a row, gathers open asks, sends full batches, wakes the rows.

Batching, repeats, known verdicts, retries, audit and the call log are written here once. A backend that batches itself
(vLLM's engine) gets each ask at once; the others get batches of asks of like length.
"""

import asyncio
import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from trust.ask import AskFailed, Completion, Verdict, ask_hash


@runtime_checkable
class BatchBackend(Protocol):
    """Answers many asks of one kind in one blocking call.

    Attributes:
        fingerprint: 16 hex digits over all that changes its answers.
        batch_size: asks a call.
    """

    fingerprint: str
    batch_size: int

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
        """Answers in the order of `inputs`; an `AskFailed` in an answer's place fails the rows that asked."""
        ...


class StreamBackend(Protocol):
    """Answers one ask at a time and batches by itself."""

    async def answer(self, inputs: dict[str, Any]) -> Any: ...


@dataclass
class Ledger:
    """What one unit asked: counts for the manifest, and the verdicts for the tables.

    Attributes:
        counts: asked (sent to a model), repeated (within the unit), reused (known from the verdict store), failed,
            truncated.
        verdicts: hash -> rows of the verdicts table, all that this unit used.
        new: hashes that were asked here, not known before.
    """

    judge: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    pending: dict[str, "asyncio.Future[Any]"] = field(default_factory=dict)
    seconds: float = 0.0

    def know(self, row: dict[str, Any]) -> None:
        """Takes a row of the verdicts table as known."""
        self.verdicts.setdefault(row["hash"], row)


class Runner:
    """One queue a batching backend, on the actor's event loop.

    Args:
        backends: ask name (`entails`, `complete`) -> backend.
    """

    def __init__(self, backends: Mapping[str, BatchBackend | StreamBackend]) -> None:
        self.backends = backends
        self._queues: dict[str, list[tuple[int, dict[str, Any], asyncio.Future[Any]]]] = {name: [] for name in backends}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._threads = ThreadPoolExecutor(max_workers=max(1, len(backends)), thread_name_prefix="judge")
        self._log = _CallLog()

    def ask_for(self, sample_id: str, ledger: Ledger) -> "RowAsk":
        """The asks of one row."""
        return RowAsk(self, sample_id, ledger)

    async def submit(self, name: str, inputs: dict[str, Any], ledger: Ledger) -> Any:
        """One answer from the backend of `name`. Raises AskFailed."""
        answer = await self._answer(name, inputs, ledger)
        self._log.write(name, inputs)
        return answer

    async def _answer(self, name: str, inputs: dict[str, Any], ledger: Ledger) -> Any:
        backend = self.backends[name]
        if not isinstance(backend, BatchBackend):
            started = time.monotonic()
            try:
                return await backend.answer(inputs)
            finally:
                ledger.seconds += time.monotonic() - started
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queues[name].append((_length(inputs), inputs, future))
        if name not in self._busy:
            self._busy[name] = asyncio.create_task(self._drain(name, backend, ledger))
        return await future

    async def _drain(self, name: str, backend: BatchBackend, ledger: Ledger) -> None:
        """Sends batches until the queue is empty, the longest asks first: like lengths share a batch, so that little is
        padding, and asks that arrive while a batch runs fill the next one."""
        queue = self._queues[name]
        loop = asyncio.get_running_loop()
        try:
            while True:
                await _settle()
                if not queue:
                    return
                queue.sort(key=lambda item: item[0])
                batch = queue[-backend.batch_size :]
                del queue[-backend.batch_size :]
                started = time.monotonic()
                try:
                    answers = await loop.run_in_executor(
                        self._threads, backend.answer_batch, [inputs for _, inputs, _ in batch]
                    )
                except Exception as error:  # a batch that cannot run at all ends the unit, never a row in silence
                    answers = [error] * len(batch)
                ledger.seconds += time.monotonic() - started
                for (_, _, future), answer in zip(batch, answers, strict=True):
                    if future.done():
                        continue
                    if isinstance(answer, BaseException):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        finally:
            del self._busy[name]


class RowAsk:
    """The asks of one row (`trust.ask.Ask`), with the trail of what was asked for what."""

    def __init__(self, runner: Runner, sample_id: str, ledger: Ledger) -> None:
        self._runner, self._sample_id, self._ledger = runner, sample_id, ledger
        self.trail: list[dict[str, Any]] = []

    async def entails(
        self, premise: str, hypothesis: str, *, role: str = "", sentence: int | None = None, doc: int | None = None
    ) -> Verdict:
        inputs = {"premise": premise, "hypothesis": hypothesis}
        key = ask_hash("entails", inputs)
        self.trail.append({"hash": key, "role": role, "sentence": sentence, "doc": doc})
        row = await self._verdict(key, inputs)
        if row["status"] != "ok":
            raise AskFailed(row["reason"], row["detail"])
        return Verdict(label=int(row["answer"]), p_yes=row["score"], truncated=bool(row["truncated"]))

    async def complete(self, messages: list[dict[str, str]] | str, sampling: dict[str, Any]) -> Completion:
        inputs = {"messages": messages, "sampling": sampling, "key": self._sample_id}
        self._ledger.counts["asked"] += 1
        try:
            return await self._runner.submit("complete", inputs, self._ledger)
        except AskFailed:
            self._ledger.counts["failed"] += 1
            raise

    async def _verdict(self, key: str, inputs: dict[str, Any]) -> dict[str, Any]:
        """The row of the verdicts table that answers this ask: known, under way, or asked now."""
        ledger = self._ledger
        if row := ledger.verdicts.get(key):
            known = key not in ledger.new and not row.get("used")
            ledger.counts["reused" if known else "repeated"] += 1
            row["used"] = True
            return row
        if pending := ledger.pending.get(key):
            ledger.counts["repeated"] += 1
            return await pending
        future = ledger.pending[key] = asyncio.get_running_loop().create_future()
        ledger.counts["asked"] += 1
        row = {"judge": ledger.judge, "hash": key, "sample_id": self._sample_id, "ask": "entails", "inputs": inputs}
        try:
            verdict = await self._runner.submit("entails", inputs, ledger)
            ledger.counts["truncated"] += verdict.truncated
            row |= {
                "answer": str(verdict.label),
                "score": verdict.p_yes,
                "truncated": verdict.truncated,
                "status": "ok",
            }
        except AskFailed as error:
            ledger.counts["failed"] += 1
            row |= {"status": "failed", "reason": error.reason, "detail": error.detail}
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # the rows that wait for it raise it; nobody else has to
            raise
        ledger.verdicts[key] = row | {"used": True}
        ledger.new.add(key)
        del ledger.pending[key]
        future.set_result(row)
        return row


class _CallLog:
    """Appends one line an ask that a model answered to a file in `TRUST_CALL_LOG`: what a resumed run did twice can be
    counted from outside the tables. Off unless the folder is named."""

    def __init__(self) -> None:
        folder = os.environ.get("TRUST_CALL_LOG")
        self._path = Path(folder) / f"{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl" if folder else None

    def write(self, name: str, inputs: dict[str, Any]) -> None:
        if self._path:
            line = {"ask": name, "hash": ask_hash(name, inputs), "key": inputs.get("key")}
            with open(self._path, "a") as file:
                file.write(json.dumps(line) + "\n")


async def _settle() -> None:
    """Lets every row that can go on do so, so that its asks are in the queue before a batch is cut."""
    for _ in range(4):
        await asyncio.sleep(0)


def _length(inputs: dict[str, Any]) -> int:
    return sum(len(value) for value in inputs.values() if isinstance(value, str))
