"""vLLM's own OpenAI server on loopback, with a real model."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import API_KEY

NAME = "smollm2"


@contextlib.contextmanager
def serve(model: str, log: Path, limit_s: float = 300) -> Iterator[str]:
    """Serves the model in the folder `model` as NAME to whoever has API_KEY; gives the base URL.

    Raises:
        AssertionError: it ended, or did not answer within `limit_s`; says what it logged.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port)]
    words += ["--model", model, "--served-model-name", NAME, "--dtype", "float32", "--max-model-len", "1024"]
    words += ["--enforce-eager", "--no-enable-chunked-prefill", "--kv-cache-memory-bytes", str(1 << 29)]
    env = {"VLLM_API_KEY": API_KEY, "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1"}
    with open(log, "wb") as out:
        server = subprocess.Popen(words, env=os.environ | env, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + limit_s
        while not _healthy(port):
            assert server.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(30)


def _healthy(port: int) -> bool:
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
        return True
    return False
