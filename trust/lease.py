"""A table has one writer at a time: a lease with a heartbeat, taken over when it is stale."""

import json
import os
import socket
import threading
import time
import uuid
from types import TracebackType

import psutil

from trust.errors import PreflightError
from trust.storage import Storage

HEARTBEAT_S = 5.0
STALE_S = 30.0


class Lease:
    """Holds `path` while the `with` block runs.

    A lease left by a process of this machine that is gone is taken over at once; one of another machine when its
    heartbeat is older than `STALE_S`. A living holder is a PreflightError that names it.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._stop = threading.Event()
        self._owner = {
            "id": uuid.uuid4().hex,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": psutil.Process().create_time(),
        }

    def __enter__(self) -> "Lease":
        if (holder := self._read()) and not self._is_gone(holder):
            age = time.time() - holder["beat"]
            if age < STALE_S:
                raise PreflightError(
                    f"another run is writing here: process {holder['pid']} on {holder['host']}, last seen {age:.0f} s "
                    f"ago ({self._path}). Wait for it to end, or choose another run="
                )
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

    def _keep(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            self._beat()

    def _beat(self) -> None:
        self._storage.write_bytes(self._path, json.dumps(self._owner | {"beat": time.time()}).encode())

    def _read(self) -> dict | None:
        try:
            return json.loads(self._storage.read_bytes(self._path))
        except FileNotFoundError:
            return None

    def _is_gone(self, holder: dict) -> bool:
        if holder["host"] != self._owner["host"]:
            return False
        try:
            return abs(psutil.Process(holder["pid"]).create_time() - holder["started"]) > 1
        except psutil.NoSuchProcess:
            return True
