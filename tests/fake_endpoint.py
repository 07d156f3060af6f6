"""An OpenAI-compatible endpoint in this process that answers as told: rubbish, errors, late, or well."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass
class Reply:
    """What a request gets.

    Attributes:
        body: text as it is; anything else as JSON.
        cut: whether the connection breaks off in the middle of the body.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False


@dataclass
class Request:
    """What came; names of headers in lower case."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float

    @property
    def prompt(self) -> str:
        return self.body.get("prompt") or self.body["messages"][-1]["content"]


def answer(text: Any = "Paris [1].", usage: bool = True, **changes: Any) -> dict[str, Any]:
    """The body of a well-formed chat completion, and of a plain one."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "text": text, "finish_reason": "stop"}
    body = {"model": "m-2024-07-18", "system_fingerprint": "fp_1", "choices": [choice | changes]}
    return body | ({"usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}} if usage else {})


class FakeEndpoint:
    """Serves at `url` while the `with` block lasts.

    Args:
        reply: what a completion request gets.
        models: the names that it lists; None lists nothing (404).

    Attributes:
        requests: completion requests so far.
        most: the most that were under way at once.
    """

    def __init__(self, reply: Callable[[Request], Reply] | None = None, models: list[str] | None = None) -> None:
        self.reply = reply or (lambda request: Reply(answer()))
        self.models = models
        self.requests: list[Request] = []
        self.most = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "FakeEndpoint":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def prompts(self) -> list[str]:
        return [request.prompt for request in self.requests]

    def _complete(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        try:
            reply = self.reply(request)
            time.sleep(reply.delay_s)
            return reply
        finally:
            with self._lock:
                self._under_way -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                listed = {"data": [{"id": name, "object": "model"} for name in fake.models or []]}
                known = self.path == "/v1/models" and fake.models is not None
                self._send(Reply(listed) if known else Reply({"error": {"message": "not found"}}, 404))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path not in ("/v1/chat/completions", "/v1/completions"):
                    self._send(Reply({"detail": "Not Found"}, 404))
                    return
                self._send(
                    fake._complete(
                        Request(
                            self.path,
                            body,
                            {name.lower(): value for name, value in self.headers.items()},
                            time.monotonic(),
                        )
                    )
                )

            def _send(self, reply: Reply) -> None:
                plain = isinstance(reply.body, str)
                data = (reply.body if plain else json.dumps(reply.body)).encode()
                try:
                    self.send_response(reply.status)
                    self.send_header("Content-Type", "text/html" if plain else "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data[: len(data) // 2] if reply.cut else data)
                    if reply.cut:
                        self.close_connection = True
                except OSError:  # whoever asked has gone
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None: ...

        return Handler
