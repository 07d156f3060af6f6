"""A model for tests that finds every pair of texts as likely as a table says, and keeps what it was asked."""

from collections.abc import Callable

from trust.ask import Likelihood


class Likely:
    """Answers `logprob` by `rule(context, continuation)`."""

    def __init__(self, rule: Callable[[str, str], float]) -> None:
        self._rule = rule
        self.asked: list[tuple[str, str]] = []

    async def logprob(self, context: str, continuation: str, *, role: str = "") -> Likelihood:
        self.asked.append((context, continuation))
        return Likelihood(self._rule(context, continuation), tokens=1)
