"""The runner: starts a coroutine a row, gathers open asks, sends full batches, wakes the rows.

Batching, repeats, known verdicts, retries, audit and the call log are written here once. A backend that batches itself
(vLLM's engine) gets each ask at once; the others get batches of asks of like length.
"""

import asyncio
import json
import os
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from trust.ask import AskFailed, Completion, Embedding, Likelihood, Verdict, ask_hash

# Answers that an actor keeps at hand: about 20 MB of verdicts, 50 MB of vectors of 768 numbers, 20 MB of texts.
_RECENT = {"entails": 1 << 16, "logprob": 1 << 16, "embed": 1 << 14, "complete": 1 << 13}


@runtime_checkable
class BatchBackend(Protocol):
    """Answers many asks of one kind in one blocking call.

    Attributes:
        fingerprint: 16 hex digits over all that changes its answers.
        batch_size: asks a call.
        lanes: calls that it takes at once, each from a thread of its own.
    """

    fingerprint: str
    batch_size: int
    lanes: int

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
        judges: ask -> fingerprint of who answers it, for asks whose answers are kept as verdicts.
        counts: asked (sent to a model), repeated (asked in this actor before), reused (known from the verdict store),
            failed, truncated.
        totals: additive numbers of the requests, as their backends give them.
        verdicts: hash -> rows of the verdicts table, all that this unit used.
        new: hashes that were asked here, not known before.
        seconds: of the backends' work, added up over what was done at once.
    """

    judges: Mapping[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    seconds: float = 0.0

    def know(self, row: dict[str, Any]) -> None:
        """Takes a row of the verdicts table as known."""
        self.verdicts.setdefault(row["hash"], row)


class Runner:
    """One queue a batching backend, on the actor's event loop, and its threads.

    Args:
        backends: ask name (`entails`, `complete`, `logprob`, `embed`) -> backend.
    """

    def __init__(self, backends: Mapping[str, BatchBackend | StreamBackend]) -> None:
        self._streams = {name: b for name, b in backends.items() if not isinstance(b, BatchBackend)}
        self._queues = {name: _Queue(b) for name, b in backends.items() if isinstance(b, BatchBackend)}
        self._log = _CallLog()
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._recent: dict[str, OrderedDict[str, Any]] = {name: OrderedDict() for name in _RECENT}

    def ask_for(self, sample_id: str, ledger: Ledger) -> "RowAsk":
        """The asks of one row."""
        return RowAsk(self, sample_id, ledger)

    async def submit(self, name: str, inputs: dict[str, Any], ledger: Ledger) -> Any:
        """One answer from the backend of `name`. Raises AskFailed."""
        if queue := self._queues.get(name):
            answer = await queue.put(inputs, ledger)
        else:
            started = time.monotonic()
            try:
                answer = await self._streams[name].answer(inputs)
            except AskFailed as error:
                ledger.totals.update(error.totals)
                raise
            finally:
                ledger.seconds += time.monotonic() - started
            ledger.totals.update(answer.totals)
        self._log.write(name, inputs)
        return answer

    async def once(self, name: str, key: str, inputs: dict[str, Any], ledger: Ledger) -> Any:
        """The answer to the ask of hash `key` (see `trust.ask.Ask`): one that was given lately or is about to be, whichever unit
        asked, else asked for now. Raises AskFailed."""
        recent = self._recent[name]
        if answer := recent.get(key):
            recent.move_to_end(key)
            ledger.counts["repeated"] += 1
            return answer
        if pending := self._pending.get(key):
            ledger.counts["repeated"] += 1
            return await asyncio.shield(pending)
        future = self._pending[key] = asyncio.get_running_loop().create_future()
        ledger.counts["asked"] += 1
        try:
            answer = await self.submit(name, inputs, ledger)
        except BaseException as error:
            ledger.counts["failed"] += isinstance(error, AskFailed)
            future.set_exception(error)
            future.exception()  # the rows that wait for it raise it; nobody else has to
            raise
        finally:
            del self._pending[key]
        future.set_result(answer)
        ledger.counts["truncated"] += getattr(answer, "truncated", False)
        if getattr(answer, "tokens", None) is not None and name == "embed":
            return answer  # a megabyte each, and seldom asked for again
        recent[key] = answer
        if len(recent) > _RECENT[name]:
            recent.popitem(last=False)
        return answer


@dataclass
class _Open:
    """An ask that waits for its batch."""

    length: int
    inputs: dict[str, Any]
    ledger: Ledger
    answer: "asyncio.Future[Any]"


class _Queue:
    """The open asks of one batching backend, of all units that are worked on."""

    def __init__(self, backend: BatchBackend) -> None:
        self._backend = backend
        self._open: list[_Open] = []
        self._draining: asyncio.Task[None] | None = None
        self._threads = ThreadPoolExecutor(max_workers=backend.lanes, thread_name_prefix="judge")

    async def put(self, inputs: dict[str, Any], ledger: Ledger) -> Any:
        ask = _Open(_length(inputs), inputs, ledger, asyncio.get_running_loop().create_future())
        self._open.append(ask)
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await ask.answer

    async def _drain(self) -> None:
        """Sends batches until no ask is open, the longest first: like lengths share a batch, so that little is padding,
        and asks that arrive while batches run fill the next one. A full batch is lined up behind those that run, so
        that the model does not wait for the rows to take their answers."""
        size, lanes = self._backend.batch_size, self._backend.lanes
        sent: dict[asyncio.Future[tuple[list[Any], float]], list[_Open]] = {}
        try:
            while True:
                await _settle()
                while self._open and (len(sent) < lanes or (len(sent) == lanes and len(self._open) >= size)):
                    self._open.sort(key=lambda ask: ask.length)
                    share = -(-len(self._open) // max(1, lanes - len(sent)))  # no lane is idle while another has much
                    batch = self._open[-min(size, share) :]
                    del self._open[-len(batch) :]
                    sent[asyncio.get_running_loop().run_in_executor(self._threads, self._run, batch)] = batch
                if not sent:
                    return
                done, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
                for running in done:
                    self._hand_on(sent.pop(running), *running.result())
        finally:
            self._draining = None

    def _hand_on(self, batch: list[_Open], answers: list[Any], seconds: float) -> None:
        for ask, answer in zip(batch, answers, strict=True):
            ask.ledger.seconds += seconds / len(batch)
            if ask.answer.done():
                continue
            if isinstance(answer, BaseException):
                ask.answer.set_exception(answer)
            else:
                ask.answer.set_result(answer)

    def _run(self, batch: list[_Open]) -> tuple[list[Any], float]:
        """Answers and seconds, in the thread; an error in place of every answer where the batch cannot run at all: it
        ends the unit, never a row in silence."""
        started = time.monotonic()
        try:
            answers = self._backend.answer_batch([ask.inputs for ask in batch])
        except Exception as error:
            answers = [error] * len(batch)
        return answers, time.monotonic() - started


class RowAsk:
    """The asks of one row (`trust.ask.Ask`), with the trail of what was asked for what."""

    def __init__(self, runner: Runner, sample_id: str, ledger: Ledger) -> None:
        self._runner, self._sample_id, self._ledger = runner, sample_id, ledger
        self.trail: list[dict[str, Any]] = []
        self.asked: set[str] = set()  # kinds of asks

    async def entails(
        self, premise: str, hypothesis: str, *, role: str = "", sentence: int | None = None, doc: int | None = None
    ) -> Verdict:
        self.asked.add("entails")
        inputs = {"premise": premise, "hypothesis": hypothesis}
        row = await self._verdict("entails", inputs, inputs, {"role": role, "sentence": sentence, "doc": doc})
        return Verdict(label=int(row["answer"]), p_yes=row["score"], truncated=bool(row["truncated"]))

    async def complete(
        self,
        messages: list[dict[str, str]] | str,
        sampling: dict[str, Any],
        schema: dict[str, Any] | None = None,
        *,
        role: str = "",
    ) -> Completion:
        self.asked.add("complete")
        inputs = {"messages": messages, "sampling": sampling} | ({"schema": schema} if schema else {})
        if "complete" in self._ledger.judges:
            told = {name: json.dumps(value, ensure_ascii=False) for name, value in inputs.items()}
            row = await self._verdict("complete", inputs, told, {"role": role, "sentence": None, "doc": None})
            return _completion(row)
        self._ledger.counts["asked"] += 1
        try:
            return await self._runner.submit("complete", inputs | {"key": self._sample_id}, self._ledger)
        except AskFailed:
            self._ledger.counts["failed"] += 1
            raise

    async def logprob(self, context: str, continuation: str, *, role: str = "") -> Likelihood:
        self.asked.add("logprob")
        inputs = {"context": context, "continuation": continuation}
        row = await self._verdict("logprob", inputs, inputs, {"role": role, "sentence": None, "doc": None})
        return Likelihood(mean=row["score"], tokens=int(row["answer"]), truncated=bool(row["truncated"]))

    async def embed(self, text: str) -> Embedding:
        self.asked.add("embed")
        inputs = {"text": text}
        answer: Embedding = await self._runner.once("embed", ask_hash("embed", inputs), inputs, self._ledger)
        return answer

    async def _verdict(
        self, ask: str, inputs: dict[str, Any], told: dict[str, str], place: dict[str, Any]
    ) -> dict[str, Any]:
        """The row of the verdicts table that answers an ask: this unit's own, or with the model's answer.

        Args:
            told: the inputs as the table has them.
            place: what it was asked for.

        Raises:
            AskFailed: it was not answered.
        """
        key = ask_hash(ask, inputs)
        self.trail.append({"hash": key, **place})
        row = await self._row(ask, key, inputs, told)
        if row["status"] != "ok":
            raise AskFailed(row["reason"], row["detail"])
        return row

    async def _row(self, ask: str, key: str, inputs: dict[str, Any], told: dict[str, str]) -> dict[str, Any]:
        ledger = self._ledger
        if row := ledger.verdicts.get(key):
            known = key not in ledger.new and not row.get("used")
            ledger.counts["reused" if known else "repeated"] += 1
            row["used"] = True
            return row
        row = {
            "judge": ledger.judges.get(ask, ""),
            "hash": key,
            "sample_id": self._sample_id,
            "ask": ask,
            "inputs": told,
        }
        try:
            row |= _written(await self._runner.once(ask, key, inputs, ledger)) | {"status": "ok"}
        except AskFailed as error:
            row |= {"status": "failed", "reason": error.reason, "detail": error.detail, "raw": error.raw}
        ledger.new.add(key)
        return ledger.verdicts.setdefault(key, row | {"used": True})


def _written(answer: Verdict | Completion | Likelihood) -> dict[str, Any]:
    """An answer as columns of the verdicts table."""
    if isinstance(answer, Likelihood):
        return {"answer": str(answer.tokens), "score": answer.mean, "truncated": answer.truncated}
    if isinstance(answer, Verdict):
        return {
            "answer": str(answer.label),
            "score": answer.p_yes,
            "truncated": answer.truncated,
            "raw": answer.raw,
        }
    told = {key: getattr(answer, key) for key in _COMPLETED} | {"first_tokens": answer.first_tokens}
    return {"answer": answer.text, "score": None, "truncated": False, "raw": json.dumps(told)}


_COMPLETED = ("finish_reason", "prompt_tokens", "output_tokens")


def _completion(row: dict[str, Any]) -> Completion:
    """What `_written` wrote down."""
    told = json.loads(row["raw"])
    first = tuple((str(token), float(logprob)) for token, logprob in told["first_tokens"])
    finish, prompt_tokens, output_tokens = (told[key] for key in _COMPLETED)
    return Completion(row["answer"], finish, prompt_tokens, output_tokens, first_tokens=first)


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
