"""The folder for fetched, converted and merged models on this node: each made once, whole or not at all.

It is `$TRUST_CACHE`, else `~/.cache/trust`. Models of the hub lie in the hub's own cache instead (trust.hub).
"""

import errno
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from trust.errors import PreflightError


def cache_dir() -> Path:
    """The folder for fetched and converted models on this node."""
    return Path(os.environ.get("TRUST_CACHE") or "~/.cache/trust").expanduser()


def hub_cache() -> Path:
    """The hub's own cache of models on this node."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE).expanduser()


def cached(key: str, make: Callable[[Path], None]) -> str:
    """The cache folder `key`, made by `make(empty folder)` if it is not there, by one process of this node.

    Raises:
        PreflightError: the disk is full.
    """
    from filelock import FileLock

    root = cache_dir() / "models"
    target = root / key
    if target.is_dir():
        return str(target)
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f".{key}.lock"):
        if not target.is_dir():
            for left in root.glob(f".{key}-*"):  # by a process that was killed: whoever makes it holds the lock
                shutil.rmtree(left, ignore_errors=True)
            temporary = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=root))
            try:
                make(temporary)
                temporary.chmod(0o755)
                temporary.rename(target)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise full(root, "TRUST_CACHE") from error
                raise
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return str(target)


def check_room(folder: Path, needed: int, what: str, setting: str) -> None:
    """Whether `needed` bytes fit on the disk of `folder`, which need not exist yet.

    Args:
        what: that is to be put there, for the message.
        setting: the environment variable that puts it elsewhere.

    Raises:
        PreflightError: they do not; says how much is missing.
    """
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise PreflightError(
            f"{what}: {needed / 1e9:.2f} GB are to be written, but node {platform.node()} has {free / 1e9:.2f} GB free at "
            f"{folder}: make room there, or set {setting} to a folder on a bigger disk, on every node"
        )


def full(folder: Path, setting: str) -> PreflightError:
    """What to say where a disk that had room filled up meanwhile."""
    return PreflightError(
        f"node {platform.node()}: the disk of {folder} is full: make room there, or set {setting} to a folder on a bigger "
        "disk, on every node; what was written whole is kept"
    )
