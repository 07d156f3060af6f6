"""A table has one writer at a time: a lease with a heartbeat, taken over when it is stale."""

import contextlib
import json
import logging
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from trust.errors import JobStopped, PreflightError
from trust.storage import Storage

log = logging.getLogger("trust")

HEARTBEAT_S = 5.0
STALE_S = 30.0
_CHECK_S = 1.0


class Lease:
    """Holds `path` while the `with` block runs.

    A lease left by a process of this machine that is gone is taken over at once; any other when its heartbeat has not
    changed for `STALE_S` seconds while this process looked on. No clock of another machine is read. A living holder is a
    PreflightError that names it.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._stop = threading.Event()
        self._beats = 0
        self._lost = False
        self._checked = -_CHECK_S
        self._owner = {
            "id": uuid.uuid4().hex,
            "host": socket.gethostname(),
            "machine": _machine(),
            "pid": os.getpid(),
        }

    def __enter__(self) -> "Lease":
        if holder := self._read():
            self._outlive(holder)
        self._beat()
        time.sleep(0.05)
        now = self._read()
        if not now or now["id"] != self._owner["id"]:
            raise PreflightError(f"another run took {self._path} at the same moment: start again when it has ended")
        threading.Thread(target=self._keep, daemon=True, name="lease").start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        if (now := self._read()) and now["id"] == self._owner["id"]:
            self._storage.delete(self._path)

    def check(self, at_once: bool = False) -> None:
        """Raises JobStopped where another run has taken the lease: this one was taken for dead.

        Args:
            at_once: look now; otherwise it looks once a second.
        """
        if not at_once and time.monotonic() - self._checked < _CHECK_S:
            return
        self._checked = time.monotonic()
        now = self._read()
        if self._lost or not self._mine(now):
            other = f"process {now['pid']} on {now['host']}" if now else "another process, which has ended since,"
            raise JobStopped(
                f"{other} has taken this run over: nothing was heard from this one for {STALE_S:.0f} s. "
                "What is finished is kept"
            )

    def _outlive(self, holder: dict[str, Any]) -> None:
        """Returns when the holder is dead; raises PreflightError as soon as it gives a sign of life."""
        if self._is_gone(holder):
            return
        log.info("%s is held by process %s on %s: does it live?", self._path, holder["pid"], holder["host"])
        deadline = time.monotonic() + STALE_S
        while time.monotonic() < deadline:
            time.sleep(HEARTBEAT_S / 5)
            now = self._read()
            if now is None:
                return
            if now != holder:
                raise PreflightError(
                    f"another run is writing here: process {now['pid']} on {now['host']} ({self._path}). "
                    "Wait for it to end, or choose another run="
                )

    def _keep(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            with contextlib.suppress(Exception):  # a store that is away for a moment is no reason to stop beating
                now = self._read()
                if not self._mine(now):
                    self._lost = True  # where it is gone, who took it has ended: written again it would look unbroken
                    return
                self._beat()

    def _mine(self, now: dict[str, Any] | None) -> bool:
        """Whether nobody else has taken the lease; a damaged one is written anew by the next beat."""
        return now is not None and now["id"] in (self._owner["id"], "")

    def _beat(self) -> None:
        self._beats += 1
        self._storage.write_bytes(self._path, json.dumps(self._owner | {"beat": self._beats}).encode())

    def _read(self) -> dict[str, Any] | None:
        try:
            data = self._storage.read_bytes(self._path)
        except FileNotFoundError:
            return None
        with contextlib.suppress(ValueError, TypeError):
            found = dict(json.loads(data))
            if {"id", "host", "pid"} <= found.keys():
                return found
        # Damaged: held by nobody known, until who holds it beats again or it is stale.
        return {"id": "", "host": "an unknown machine", "pid": "?", "damaged": data.hex()}

    def _is_gone(self, holder: dict[str, Any]) -> bool:
        """Whether the holder was a process of this machine and there is none of its number any more."""
        if holder.get("machine") != self._owner["machine"]:
            return False
        try:
            return bool(psutil.Process(holder["pid"]).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True


def _machine() -> str:
    """Within what a process number means something: this start of this machine, and this container of it.

    Host names do not tell machines apart: clones and containers share them.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return f"{socket.gethostname()} {uuid.getnode()}"
