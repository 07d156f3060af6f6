"""Modules of the user's own that a job may import: one beside the job's working folder, or an installed one."""

import hashlib
import importlib
import importlib.util
import sys
import traceback
from types import ModuleType

from trust.errors import ConfigError

_FORBIDDEN = ("trust", "jobs")
_LINES = 4  # of a traceback, its last ones
_LONG = 2000  # characters


def import_own(module: str, where: str) -> ModuleType:
    """The module of that name.

    Args:
        where: the option that names it, for messages.

    Raises:
        ConfigError: it is Python's own or this project's, is not there, or cannot be imported.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{where}={module!r}: expected the name of a module, such as my_checks")
    root = module.split(".", maxsplit=1)[0]
    if root in sys.stdlib_module_names or root in _FORBIDDEN:
        raise ConfigError(f"{where}={module}: what {root} holds cannot be a metric; write one of your own")
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{where}={module}: {error}; it is looked for beside the job's working folder and among installed packages"
        ) from error
    except Exception as error:
        raise ConfigError(f"{where}={module}: it cannot be imported: {type(error).__name__}: {error}") from error


def source_hash(module: str) -> str | None:
    """16 hex digits over a module's source, which stand for it in fingerprints; None where there is no such module."""
    spec = importlib.util.find_spec(module)
    if not spec or not spec.origin or not spec.has_location:
        return None
    with open(spec.origin, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def last_lines(error: BaseException) -> str:
    """An error of somebody else's code, as the last lines of its traceback in one."""
    return " | ".join(" ".join(line.split()) for line in traceback.format_exception(error)[-_LINES:])[:_LONG]
