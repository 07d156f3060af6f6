"""Real Ray nodes on this machine: each a tree of processes of its own, killed as a whole as a machine that loses power."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID, FakeMultiNodeProvider
from ray.autoscaler._private.monitor import BASE_READONLY_CONFIG
from ray.util import get_node_ip_address

BIN = Path(sys.executable).parent
REPO = Path(__file__).resolve().parents[1]


class Nodes:
    """A head with dashboard and job server on ports of their own, and the nodes added to it."""

    def __init__(
        self, cpus: int = 1, env: dict[str, str] | None = None, grows_by: dict[str, float] | None = None
    ) -> None:
        """With `grows_by`, Ray's autoscaler may add up to two nodes of these resources, and begins with none."""
        self._folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets lie in it: their paths must be short
        self._token = uuid.uuid4().hex
        self.env = os.environ | {
            "PATH": f"{BIN}:{os.environ['PATH']}",  # a submitted job's `python` is the head's
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self._token,
            "RAY_enable_worker_prestart": "0",
            **(env or {}),
        }
        self.running: list[subprocess.Popen[bytes]] = []
        gcs, dashboard = _free_port(), _free_port()
        self.address = f"{get_node_ip_address()}:{gcs}"
        self.url = f"http://127.0.0.1:{dashboard}"
        words = ["--head", f"--port={gcs}", f"--dashboard-port={dashboard}", f"--temp-dir={self._folder}"]
        if grows_by:
            (self._folder / "autoscaler.json").write_text(json.dumps(_autoscaler(self.address, cpus, grows_by)))
            self.env |= {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"}
            self.env |= {
                "RAY_CLOUD_INSTANCE_ID": FAKE_HEAD_NODE_ID,
                "RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID,
            }
            words += [f"--autoscaling-config={self._folder / 'autoscaler.json'}"]
        self.head = self._start([*words, f"--num-cpus={cpus}"])
        self._wait_for(1, self.head)

    def add(self, cpus: int = 1, *options: str, hide: Path | None = None) -> subprocess.Popen[bytes]:
        """One more node. Below `hide` it sees an empty folder of its own, as a machine with another disk does."""
        expected = len(self.alive()) + 1
        prefix = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none "{hide}" && exec "$@"', "sh"] if hide else []
        node = self._start([f"--address={self.address}", f"--num-cpus={cpus}", *options], prefix)
        self._wait_for(expected, node)
        return node

    def alive(self) -> list[dict[str, Any]]:
        """What the head knows of the nodes that are alive; empty while it does not answer."""
        request = urllib.request.Request(f"{self.url}/api/v0/nodes", headers={"Authorization": f"Bearer {self._token}"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                nodes = json.load(answer)["data"]["result"]["result"]
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return []
        return [node for node in nodes if node["state"] == "ALIVE"]

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """Raylet, workers and all, with -9 and at once."""
        kill_tree(node.pid)
        node.wait()
        self.running.remove(node)

    def submit(self, *words: str, options: Sequence[str] = ()) -> subprocess.Popen[str]:
        """`ray job submit ... -- WORDS`, as a user types it, from a folder that is not the checkout."""
        command = [str(BIN / "ray"), "job", "submit", "--address", self.url, *options, "--", *words]
        return subprocess.Popen(
            command, env=self.env, cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def close(self) -> None:
        for node in [*self.running]:
            self.kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_for(self, count: int, node: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 120
        while len(self.alive()) < count:
            if node.poll() is not None or time.monotonic() > deadline:
                logs = "".join(file.read_text()[-2000:] for file in self._folder.glob("start-*.log"))
                self.close()
                raise RuntimeError(f"a Ray node did not come up: {logs}")
            time.sleep(0.2)

    def _start(self, words: list[str], prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        common = ["--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"]
        common += ["--object-store-memory=100000000", "--disable-usage-stats", "--block"]
        with open(self._folder / f"start-{len(self.running)}.log", "wb") as log:
            command = [*prefix, str(BIN / "ray"), "start", *words, *common]
            node = subprocess.Popen(command, env=self.env, cwd=self._folder, stdout=log, stderr=subprocess.STDOUT)
        self.running.append(node)
        return node


def kill_tree(pid: int) -> None:
    """A process and all below it, with -9; the parent first, so that it starts nothing in their place."""
    top = psutil.Process(pid)
    for process in [top, *top.children(recursive=True)]:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue


def below(pid: int, title: str) -> list[psutil.Process]:
    """The processes below `pid` with `title` in their title."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if title in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def _autoscaler(address: str, cpus: int, grows_by: dict[str, float]) -> dict[str, Any]:
    """A config of Ray's autoscaler for nodes that are processes of this machine."""
    head = {"resources": {"CPU": cpus}, "node_config": {}, "max_workers": 0}
    more = {"resources": grows_by, "node_config": {}, "min_workers": 0, "max_workers": 2}
    provider = f"{FakeMultiNodeProvider.__module__}.{FakeMultiNodeProvider.__qualname__}"
    return BASE_READONLY_CONFIG | {
        "max_workers": 2,
        "provider": {"type": "external", "module": provider, "gcs_address": address, "launch_multiple": True},
        "available_node_types": {"ray.head.default": head, "more": more},
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
