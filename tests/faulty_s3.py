"""An HTTP proxy in front of an S3 server that fails on order, over real TCP.

Faults are matched against one line a request, `METHOD //host:port/bucket/key?query CLIENT`, where CLIENT is `pyarrow`,
`s3fs` or an agent's own name, so that one client, operation or object can be made to fail.
"""

import contextlib
import http.client
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "server", "date"}
_CLIENTS = {"aws-sdk-cpp": "pyarrow", "aiobotocore": "s3fs"}


@dataclass
class Fault:
    """What goes wrong with the requests that match.

    Attributes:
        match: regex searched in a request's line.
        status: HTTP status to answer without asking the store; 0 asks it and cuts its answer in the middle of the body.
        code: S3's error code in the body of that answer.
        times: how many requests fail; None has no bound.
        seconds: for how long requests fail, from the first that does; None has no bound.
        after: regex of a request that must have been seen before any fails.
    """

    match: str
    status: int = 503
    code: str = "ServiceUnavailable"
    times: int | None = None
    seconds: float | None = None
    after: str = ""
    hits: int = 0
    started: float = 0.0

    def strikes(self, line: str) -> bool:
        if self.after:
            self.after = "" if re.search(self.after, line) else self.after
            return False
        if not re.search(self.match, line):
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        now = time.monotonic()
        self.started = self.started or now
        if self.seconds is not None and now - self.started > self.seconds:
            return False
        self.hits += 1
        return True


@dataclass
class FaultyS3:
    """The proxy; `with FaultyS3(address of the server) as proxy` listens at `proxy.url`."""

    upstream: str
    faults: list[Fault] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    url: str = ""
    _lock: Any = field(default_factory=threading.Lock)

    def __enter__(self) -> "FaultyS3":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextlib.contextmanager
    def failing(self, match: str, **how: Any) -> Iterator[Fault]:
        """Requests that match fail while the block runs."""
        fault = Fault(match, **how)
        self.faults.append(fault)
        try:
            yield fault
        finally:
            self.faults.remove(fault)

    def count(self, match: str) -> int:
        """How many requests so far match, those that failed on order included."""
        return sum(bool(re.search(match, line)) for line in list(self.lines))

    def fault_for(self, line: str) -> Fault | None:
        with self._lock:
            self.lines.append(line)
            return next((fault for fault in list(self.faults) if fault.strikes(line)), None)


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultyS3
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is no access log."""

    def _forward(self) -> None:
        body = self._body()
        agent = self.headers.get("User-Agent", "")
        client = next((name for mark, name in _CLIENTS.items() if mark in agent), agent)
        fault = self.proxy.fault_for(f"{self.command} //{self.headers['Host']}{self.path} {client}")
        if fault and fault.status:
            self._refuse(fault)
            return
        status, headers, answer = self._ask(body)
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        length = {name.lower(): value for name, value in headers}.get("content-length", str(len(answer)))
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(answer)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(answer[: len(answer) // 2] if fault else answer)
        self.close_connection = bool(fault)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _refuse(self, fault: Fault) -> None:
        body = f"<Error><Code>{fault.code}</Code><Message>refused on order</Message></Error>".encode()
        self.send_response_only(fault.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", "0" if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        host = urlsplit(self.proxy.upstream)
        connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=60)
        headers = {
            name: value for name, value in self.headers.items() if name.lower() not in ("transfer-encoding", "expect")
        }
        try:
            connection.request(self.command, self.path, body, headers | {"Content-Length": str(len(body))})
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward
