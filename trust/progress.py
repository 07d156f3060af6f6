"""What a running job says of itself."""

import logging
import time

from trust.units import Receipt

log = logging.getLogger("trust")


class Progress:
    """A log line when a unit is done, at most one a second: rows done, failed so far, rows a second and time left (both
    from the first unit on, so that the start of actors and models does not count)."""

    def __init__(self, job: str, rows: int) -> None:
        self.job, self.rows = job, rows
        self.done = self.failed = self.first = 0
        self.start = self.told = 0.0

    def step(self, receipt: Receipt) -> None:
        self.done += receipt.rows
        self.failed += receipt.counts.get("failed", 0)
        now = time.monotonic()
        if not self.first:
            self.first, self.start = self.done, now
        if now - self.told < 1 and self.done < self.rows:
            return
        self.told = now
        # Of failed rows that are done again, receipts count what changed.
        told = f"{self.failed} failed" if self.failed >= 0 else f"{-self.failed} no longer failed"
        line = f"{self.job}: {self.done} of {self.rows} rows, {told}"
        seconds, since = now - self.start, self.done - self.first
        if since and seconds > 0:
            left = seconds * (self.rows - self.done) / since
            line += f", {since / seconds:.1f} rows/s, {f'{left:.0f} s' if left < 120 else f'{left / 60:.0f} min'} left"
        log.info("%s", line)
