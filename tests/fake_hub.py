"""A small hub on this machine: as much of the Hugging Face hub's protocol as fetching models takes."""

import hashlib
import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

TOKEN = "hf_never-to-be-written-down-at-all"


@dataclass
class Repo:
    """A model.

    Attributes:
        commits: commit -> file name -> content.
        refs: branch or tag -> commit.
        gated: its files are for those who send TOKEN.
        private: so is all of it.
        conversion: number of a pull request with its weights as safetensors.
    """

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False
    conversion: int | None = None

    def commit(self, files: dict[str, bytes], ref: str = "main") -> str:
        """Puts `files` on a branch; the commit."""
        sha = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[sha] = files
        self.refs[ref] = sha
        return sha


class FakeHub:
    """A context manager; `url` is its address.

    Attributes:
        requests: method, path and whether TOKEN came with it, of each so far.
        silent: whether it takes connections and says nothing.
        status: what every request is answered with, in place of an answer.
        cuts: file name -> bytes after which its transfer breaks off, once; from then on it is not given.
    """

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.requests: list[tuple[str, str, bool]] = []
        self.silent = False
        self.status = 0
        self.cuts: dict[str, int] = {}
        self._over = threading.Event()

    def __enter__(self) -> "FakeHub":
        hub = self

        class Handler(_Handler):
            def setup(self) -> None:
                self.hub = hub
                super().setup()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def count(self, pattern: str) -> int:
        """Requests so far whose method and path match."""
        return sum(bool(re.search(pattern, f"{method} {path}")) for method, path, _ in self.requests)

    def wait(self) -> None:
        self._over.wait(60)


def use(monkeypatch: pytest.MonkeyPatch, url: str, cache: object, offline: bool = False) -> None:
    """What HF_ENDPOINT, HF_HUB_CACHE and HF_HUB_OFFLINE do for a new process: they are read when it begins."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nowhere")
    monkeypatch.delenv("HF_TOKEN", raising=False)


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        self.hub.requests.append((self.command, path, known))
        if self.hub.silent:
            return self.hub.wait()
        if self.hub.status:
            return self._send(self.hub.status, b"out of order")
        match = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree|discussions)/?(.*))?", path)
        if match:
            return self._tell(match[1], match[2], match[3] or "main", known)
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if match:
            return self._give(*match.groups(), known, body)
        return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

    def _find(self, name: str, revision: str, known: bool) -> tuple[Repo, str] | None:
        repo = self.hub.repos.get(name)
        if repo is None or (repo.private and not known):
            # As the hub does: who is not logged in is not told whether there is such a model.
            self._send(404 if known else 401, b"", {"X-Error-Code": "RepoNotFound"})
            return None
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
            return None
        return repo, commit

    def _tell(self, name: str, what: str | None, revision: str, known: bool) -> None:
        if what == "discussions":
            number = self.hub.repos[name].conversion
            about = {"title": "Adding `safetensors` variant of this model", "status": "open", "isPullRequest": True}
            about |= {"author": {"name": "SFconvertbot"}, "num": number, "createdAt": "2024-01-01T00:00:00.000Z"}
            told: Iterable[Any] = [about | {"repo": {"name": name, "type": "model"}}] if number else []
            return self._json({"discussions": told, "count": len(list(told)), "start": 0})
        if not (found := self._find(name, revision, known)):
            return None
        repo, commit = found
        files = repo.commits[commit]
        if what == "tree":
            entry = {"type": "file", "oid": "0" * 40}
            return self._json([entry | {"path": path, "size": len(data)} for path, data in files.items()])
        siblings = [{"rfilename": path, "size": len(data)} for path, data in files.items()]
        return self._json({"id": name, "sha": commit, "siblings": siblings, "gated": "auto" if repo.gated else False})

    def _give(self, name: str, revision: str, file: str, known: bool, body: bool) -> None:
        if not (found := self._find(name, revision, known)):
            return None
        repo, commit = found
        if repo.gated and not known:
            return self._send(401, b"", {"X-Error-Code": "GatedRepo"})
        data = repo.commits[commit].get(file)
        if data is None:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": commit}
        if body and file in self.hub.cuts:
            if (after := self.hub.cuts[file]) == 0:
                return self._send(503, b"")
            self.hub.cuts[file] = 0
            self._send(200, data, headers, after)
            self.close_connection = True
            return None
        return self._send(200, data if body else b"", headers | {"Content-Length": str(len(data))})

    def _json(self, told: Any) -> None:
        self._send(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None, after: int | None = None) -> None:
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(data))} | (headers or {})).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data[:after])
