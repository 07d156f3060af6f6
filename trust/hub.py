"""Models of the Hugging Face hub, or of a mirror: which commit is meant, what lies there, and fetching it once a node.

All of it goes through `huggingface_hub`, so that its settings hold: HF_ENDPOINT, HF_TOKEN or the login, HF_HOME,
HF_HUB_OFFLINE. Models lie in its own cache rather than in ours, so that what other programs fetched is not fetched again.
An interrupted fetch is gone on with by file: those that came are kept, the one that was under way starts anew.

A branch or tag is made a commit before anything starts, and every process takes that commit: a model that is changed on the
hub in the middle of a run does not change the run. Where the hub does not answer, the commit that the cache has for the
branch is taken, with a line in the log; with HF_HUB_OFFLINE=1 without one.
"""

import contextlib
import json
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

from trust.cache import check_room, hub_cache
from trust.errors import PreflightError
from trust.hub_faults import host, told, unreachable

log = logging.getLogger("trust")

_COMMIT = re.compile("[0-9a-f]{40}")
_ANSWER_S = 7.0  # for each of the two questions before a model loads; connecting and waiting each
_WANTED = ["*.safetensors", "*.json", "*.jinja", "*.model", "*.txt"]
# Other formats' folders, all but an embedding model's modules (1_Pooling); Mistral's second copy of its weights.
_LEFT = ["[!0-9]*/*", "[0-9][!_]*/*", "consolidated*"]
_DOWNLOADS = 4  # files at once


@dataclass(frozen=True)
class Snapshot:
    """A model at one commit.

    Attributes:
        files: name -> size in bytes.
        folder: where it lies on this node; None where it is not there whole.
    """

    commit: str
    files: dict[str, int]
    folder: Path | None = None


def look(repo: str, revision: str | None = None) -> Snapshot:
    """The model `repo` at the commit that `revision` (a commit, tag or branch; None is `main`) means now.

    A commit that this node has whole is not asked for at the hub.

    Raises:
        PreflightError: in one line why it cannot be had and what to do.
    """
    if revision and _COMMIT.fullmatch(revision) and (folder := _whole(repo, revision)):
        return Snapshot(revision, _sizes(folder), folder)
    try:
        return _ask(repo, revision)
    except Exception as error:
        commit = _known_commit(repo, revision) if unreachable(error) else None
        if commit and (folder := _whole(repo, commit) or _seems_whole(repo, commit)):
            if not _offline():
                log.warning(
                    "the hub at %s does not answer; model %s is taken from the cache, commit %s", host(), repo, commit
                )
            return Snapshot(commit, _sizes(folder), folder)
        raise told(error, repo, revision) from error


def read(repo: str, commit: str, name: str) -> bytes:
    """A small file of a model, from the cache or the hub. Raises PreflightError."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache

    _quiet()
    there = try_to_load_from_cache(repo, name, revision=commit)
    if not isinstance(there, str):
        try:
            # First with one try: the download alone would try for minutes where nobody answers.
            get_hf_file_metadata(hf_hub_url(repo, name, revision=commit), timeout=_ANSWER_S)
            there = hf_hub_download(repo, name, revision=commit)
        except Exception as error:
            raise told(error, repo, commit) from error
    return Path(there).read_bytes()


def fetch(repo: str, revision: str | None = None) -> str:
    """The folder on this node that holds the model; fetched by one process while others wait, if it is not there.

    Raises:
        PreflightError: there is no room for it, or it cannot be had.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import WeakFileLock

    snapshot = look(repo, revision)
    if snapshot.folder:
        return str(snapshot.folder)
    lock = hub_cache() / ".locks" / f"trust--{repo.replace('/', '--')}--{snapshot.commit}.lock"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(lock):
            if folder := _whole(repo, snapshot.commit):
                return str(folder)
            log.info("fetching %s from %s: %.2f GB", repo, host(), _check_room(repo, snapshot) / 1e9)
            folder = Path(
                snapshot_download(
                    repo,
                    revision=snapshot.commit,
                    allow_patterns=_WANTED,
                    ignore_patterns=_LEFT,
                    max_workers=_DOWNLOADS,
                )
            )
    except PreflightError:
        raise
    except Exception as error:
        raise told(error, repo, revision, midway=True) from error
    if missing := _missing(folder, snapshot.files):
        raise PreflightError(
            f"model {repo}: {', '.join(missing)} did not come whole from {host()}: start the job again"
        )
    return str(folder)


def warn_of_room(repo: str, commit: str) -> None:
    """Says so in the log where this machine has no room for the model. No error: its actors may lie on other nodes, and
    `fetch` looks on theirs before it takes the first byte."""
    snapshot = look(repo, commit)
    if not snapshot.folder:
        try:
            _check_room(repo, snapshot)
        except PreflightError as error:
            log.warning("%s", error)


def conversion(repo: str) -> str:
    """Where the hub's own robot offers a model's pickled weights as safetensors: what to say of it; else nothing."""
    from huggingface_hub import HfApi

    with contextlib.suppress(Exception):  # a hint, no more
        for offer in HfApi().get_repo_discussions(repo, author="SFconvertbot", discussion_type="pull_request"):
            if offer.status in ("open", "draft") and "safetensors" in offer.title:
                return f"; its hub offers them as safetensors: set revision=refs/pr/{offer.num}"
    return ""


def _check_room(repo: str, snapshot: Snapshot) -> int:
    """Bytes that are still to come, for which there is room. Raises PreflightError."""
    absent = _missing(_folder(repo, snapshot.commit), snapshot.files)
    missing = sum(snapshot.files[name] for name in absent)
    check_room(hub_cache(), missing, f"model {repo}", "HF_HOME")
    return missing


def _ask(repo: str, revision: str | None) -> Snapshot:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    _quiet()
    if _offline():
        raise OfflineModeIsEnabled("HF_HUB_OFFLINE=1")
    info = HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=_ANSWER_S)
    if not info.sha or info.siblings is None:
        raise ValueError("neither a commit nor files are named")
    files = {item.rfilename: int(item.size or 0) for item in info.siblings}
    _remember(repo, revision, info.sha)
    folder = _folder(repo, info.sha)
    return Snapshot(info.sha, files, None if _missing(folder, files) else folder)


def _remember(repo: str, revision: str | None, commit: str) -> None:
    """Keeps what a branch or tag means, as `huggingface_hub` does, for a time without the hub."""
    if revision == commit:
        return
    ref = _repo_folder(repo) / "refs" / (revision or "main")
    with contextlib.suppress(OSError):  # a cache that cannot be written may still be read
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(commit)


def _known_commit(repo: str, revision: str | None) -> str | None:
    if revision and _COMMIT.fullmatch(revision):
        return revision
    try:
        return (_repo_folder(repo) / "refs" / (revision or "main")).read_text().strip()
    except OSError:
        return None


def _whole(repo: str, commit: str) -> Path | None:
    """The cache's folder for a commit, where all that is wanted is there by the list of files that a fetch left."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    _quiet()
    if not (_repo_folder(repo) / "trees" / f"{commit}.json").is_file():
        return None
    try:
        return Path(
            snapshot_download(
                repo, revision=commit, local_files_only=True, allow_patterns=_WANTED, ignore_patterns=_LEFT
            )
        )
    except LocalEntryNotFoundError:
        return None


def _seems_whole(repo: str, commit: str) -> Path | None:
    """The same where another program fetched it and left no list: it has its weights, all parts that their index names."""
    folder = _folder(repo, commit)
    if not folder.is_dir():
        return None
    names = set(_sizes(folder))
    shards: set[str] = set()
    for index in (name for name in names if name.endswith(".safetensors.index.json")):
        shards |= set(json.loads((folder / index).read_bytes()).get("weight_map", {}).values())
    return folder if any(name.endswith(".safetensors") for name in names) and shards <= names else None


def _missing(folder: Path, files: dict[str, int]) -> list[str]:
    """What is wanted of `files` and does not lie in `folder` in its size."""
    from huggingface_hub.utils import filter_repo_objects

    there = _sizes(folder) if folder.is_dir() else {}
    wanted = filter_repo_objects(files, allow_patterns=_WANTED, ignore_patterns=_LEFT)
    return [name for name in wanted if there.get(name) != files[name]]


def _sizes(folder: Path) -> dict[str, int]:
    return {file.relative_to(folder).as_posix(): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def _repo_folder(repo: str) -> Path:
    return hub_cache() / f"models--{repo.replace('/', '--')}"


def _folder(repo: str, commit: str) -> Path:
    return _repo_folder(repo) / "snapshots" / commit


def _offline() -> bool:
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def _quiet() -> None:
    """What the library tells of tries and progress is told by one line of ours."""
    from huggingface_hub.utils import disable_progress_bars, logging

    logging.set_verbosity_error()
    if "HF_HUB_DISABLE_PROGRESS_BARS" not in os.environ:
        disable_progress_bars()
