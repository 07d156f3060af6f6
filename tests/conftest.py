"""Fixtures for all tests: the shared data, and one Ray a session."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

REPO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repo() -> Path:
    return REPO


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data with expected results, beside the checkout and never part of it."""
    folder = Path(os.environ.get("TRUST_SHARED", REPO.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data beside the checkout ({folder}); set TRUST_SHARED to its folder")
    return folder


@pytest.fixture(scope="session")
def nltk_data(shared: Path) -> Path:
    """English punkt data, which compat mode needs, on NLTK's path."""
    import nltk

    folder = shared / "nltk_data"
    os.environ["NLTK_DATA"] = str(folder)
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
