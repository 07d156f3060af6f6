"""The models that a building job asks in one actor: nothing is asked twice within a unit, or again in another run."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trust.ask import judges
from trust.ask.runner import Ledger, RowAsk, Runner
from trust.evaluate import ASKS, KEPT
from trust.storage import Storage
from trust.verdicts import UNREADABLE, VerdictStore, used_verdicts


@dataclass(frozen=True)
class Session:
    """The asks of one unit.

    Attributes:
        known: sample and hash of the verdicts that were there before.
    """

    ledger: Ledger
    known: frozenset[tuple[str, str]]


class Asking:
    """Models with their verdict stores.

    Args:
        values: ask -> plain config values of who answers it (`for_actor`).
        root: `storage.root`.
        budget: what they may cost from now on; None for no limit.
    """

    def __init__(self, values: dict[str, Any], storage: Storage, root: str, budget: float | None = None) -> None:
        self._backends = judges.load(values, storage, budget)
        self._runner = Runner(self._backends)
        self._stores = {
            ask: VerdictStore(storage, root, backend.fingerprint)
            for ask, backend in self._backends.items()
            if ask in KEPT
        }

    async def begin(self, sample_ids: list[str]) -> Session:
        """A session that knows what was asked about these samples before."""
        ledger = Ledger({ask: store.judge for ask, store in self._stores.items()})
        known = [row for store in self._stores.values() for row in await asyncio.to_thread(store.load, sample_ids)]
        for verdict in known:
            ledger.know(verdict)
        return Session(ledger, frozenset((verdict["sample_id"], verdict["hash"]) for verdict in known))

    def ask_for(self, sample_id: str, session: Session) -> RowAsk:
        """The asks of one row."""
        return self._runner.ask_for(sample_id, session.ledger)

    async def end(self, asks: Mapping[str, RowAsk], session: Session) -> dict[str, float]:
        """Keeps the verdicts that were asked now; the totals of the unit's asks.

        Args:
            asks: sample_id -> what that row asked.
        """
        trails = [{"sample_id": sample, "asks": ask.trail} for sample, ask in asks.items()]
        used = used_verdicts(trails, session.ledger.verdicts)
        new = [verdict for verdict in used if (verdict["sample_id"], verdict["hash"]) not in session.known]
        for ask, store in self._stores.items():
            await asyncio.to_thread(store.add, [verdict for verdict in new if verdict["ask"] == ask])
        return (
            {f"asks_{key}": float(session.ledger.counts[key]) for key in ASKS}
            | session.ledger.totals
            | {"judge_seconds": session.ledger.seconds}
            | {f"{UNREADABLE}{path}": 1.0 for store in self._stores.values() for path in store.unreadable}
        )

    def close(self) -> None:
        """Ends the models."""
        for backend in self._backends.values():
            backend.close()
