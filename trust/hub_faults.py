"""What an error on the way to a hub means, in one line, with what to do. No line holds a token."""

import errno
import re
from typing import Any
from urllib.parse import urlsplit

from trust.cache import full, hub_cache
from trust.errors import PreflightError

_BUSY = (429, *range(500, 600))


def host() -> str:
    """The hub's address, without a name and password that may be in it."""
    from huggingface_hub import constants

    parts = urlsplit(constants.ENDPOINT)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def unreachable(error: Exception) -> bool:
    """Whether it says nothing about the model: no network, no answer, a hub that is down or has no time, or offline mode."""
    import httpx2
    from huggingface_hub.errors import OfflineModeIsEnabled

    return isinstance(error, httpx2.TransportError | OfflineModeIsEnabled) or _status(error) in _BUSY


def _status(error: Exception) -> int:
    return int(getattr(getattr(error, "response", None), "status_code", 0) or 0)


def told(error: Exception, repo: str, revision: str | None, midway: bool = False) -> PreflightError:
    """The error in one line, with what to do. Never holds the token."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return full(hub_cache(), "HF_HOME")
    page, here = f"{host()}/{repo}", get_token() is not None
    if isinstance(error, GatedRepoError):
        who = "the account of this node's token has no access" if here else "this node has no token"
        said = (
            f"is gated, and {who}: accept its licence at {page}, and set HF_TOKEN to a token of that account on every node "
            "before Ray starts there"
        )
    elif isinstance(error, RevisionNotFoundError):
        said = f"has no revision {revision} on {host()}: give a commit, tag or branch of it"
    elif isinstance(error, RepositoryNotFoundError | HFValidationError):
        token = "this node's token has no right to it" if here else "it is private: set HF_TOKEN on every node"
        said = f"there is no such folder, nor such a model on {host()}: mend the name" + f" (or {token})"
    elif isinstance(error, OfflineModeIsEnabled):
        said = (
            f"there is no such folder, HF_HUB_OFFLINE=1 forbids to ask the hub, and the cache {hub_cache()} does not hold it "
            f"whole{f' at revision {revision}' if revision else ''}: fetch it on every node (hf download {repo}), or unset "
            "HF_HUB_OFFLINE"
        )
    elif _status(error) in (401, 403):
        said = f"{host()} refuses this node's token: HF_TOKEN (or the login) is wrong, has expired or lacks the right to read"
    elif midway:
        said = f"could not be fetched whole from {host()} ({_short(error)}): what came is kept; start the job again"
    elif unreachable(error):
        said = (
            f"there is no such folder, and the hub at {host()} does not answer ({_short(error)}): check network, proxy and "
            "HF_ENDPOINT, or have it in the cache of every node"
        )
    else:
        said = f"what {host()} says of it cannot be used ({_short(error)}): is HF_ENDPOINT a hub's address?"
    return PreflightError(f"model {repo}: {said}")


def _short(error: Any) -> str:
    text = re.sub(r"//[^/\s]*@", "//", " ".join(str(error).split()))  # a password in an address
    return f"{type(error).__name__}: {text[:150]}" if text else type(error).__name__
