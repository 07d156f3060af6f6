"""Folders that Hugging Face `datasets` wrote with `save_to_disk`: one data set, or several splits beside each other."""

import json
from collections.abc import Sequence
from typing import Any

from trust.config import one_of
from trust.errors import ConfigError, PreflightError
from trust.prepare import releases
from trust.prepare.config import DataConfig
from trust.storage import FileInfo, Storage, join

_STATE, _DICT = "state.json", "dataset_dict.json"


def saved_files(data: DataConfig, path: str, found: Sequence[FileInfo], storage: Storage) -> list[FileInfo] | None:
    """The Arrow files of a saved data set, as its state names them; None where `path` holds none.

    Args:
        found: all files below `path`.

    Raises:
        ConfigError: there are several splits, and `data.split` names none of them; or it is set where there are none.
        PreflightError: a file is missing.
    """
    files = {file.path: file for file in found}
    folder = path
    if join(path, _DICT) in files:
        splits = [str(name) for name in _read(join(path, _DICT), storage).get("splits", [])]
        if data.split is None and len(splits) != 1:
            raise ConfigError(f"data.path={data.path} holds several splits: add data.split= ({', '.join(splits)})")
        folder = join(path, data.split or splits[0])
        if data.split is not None:
            one_of("data.split", data.split, splits)
    elif data.split is not None and data.kind not in releases.KINDS:
        raise ConfigError(f"data.split={data.split}: {data.path} holds no splits (no {_DICT} is in it)")
    if join(folder, _STATE) not in files:
        if folder != path:
            raise PreflightError(f"{folder}: {_STATE} is missing; save the data set again")
        return None
    names = [
        join(folder, str(item["filename"])) for item in _read(join(folder, _STATE), storage).get("_data_files", [])
    ]
    if missing := [name for name in names if name not in files]:
        raise PreflightError(f"{missing[0]}: the file is missing, though {_STATE} names it; save the data set again")
    return [files[name] for name in names]


def _read(path: str, storage: Storage) -> dict[str, Any]:
    try:
        return dict(json.loads(storage.read_bytes(path)))
    except ValueError as error:
        raise PreflightError(f"{path}: is no JSON: {' '.join(str(error).split())}") from error
