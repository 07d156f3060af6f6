"""Which rows can be run with what is at hand, found without loading anything; for the others, why not."""

import os
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from trust import metrics, models
from trust.config import plain
from trust.errors import ConfigError, PreflightError
from trust.metrics.trust_score import TrustScoreConfig
from trust.models import ModelConfig, is_hub_id
from trust.prepare.files import find_files
from trust.prompts import Prompt
from trust.reproduce import published
from trust.reproduce.config import ReproduceConfig
from trust.storage import Storage, open_storage


class Lacking(NamedTuple):
    """Why a row is not run: in words, and the option that would change it (empty where none would)."""

    why: str
    remedy: str = ""


@dataclass(frozen=True)
class Cell:
    """A row on a data set.

    Attributes:
        lacking: why it is not run; empty where it is.
    """

    row: str
    dataset: str
    lacking: tuple[Lacking, ...] = ()


def plan(config: ReproduceConfig) -> list[Cell]:
    """The chosen rows on the chosen data sets, in the order of the table.

    What the command line names has to be there; what it leaves to the defaults may be missing, and is a reason.

    Raises:
        ConfigError: nothing is chosen.
        PreflightError: a file, folder or model that the command line names is not there, or not usable.
    """
    table = config.published
    datasets = published.select("datasets", config.datasets, table.datasets)
    chosen = [
        Cell(row, dataset)
        for dataset in datasets
        for row in published.select("rows", config.rows, list(table.rows))
        if dataset in (table.rows[row].printed or table.datasets)
    ]
    if not chosen:
        raise ConfigError(f"table {config.table} has none of these rows on {', '.join(datasets)}")
    at_hand = _AtHand(config)
    cells = [Cell(cell.row, cell.dataset, at_hand.lacking(cell)) for cell in chosen]
    at_hand.check([cell for cell in cells if not cell.lacking])
    return cells


class _AtHand:
    """What is there and what is not."""

    def __init__(self, config: ReproduceConfig) -> None:
        self._config = config
        self._storage = open_storage(config.storage.root, config.storage)

    def lacking(self, cell: Cell) -> tuple[Lacking, ...]:
        """Why a row is not run on a data set."""
        if elsewhere := self._config.recipe(self._config.published.rows[cell.row]).elsewhere:
            return (Lacking(f"not what this job does: {elsewhere}"),)
        found = [self._data(cell.dataset), self._model(cell.row, False), self._judge(False)]
        if not any(found):  # only now is the hub asked, which takes its time where it cannot be reached
            found = [self._model(cell.row, True), self._judge(True)]
        return tuple(each for each in found if each)

    def check(self, ready: list[Cell]) -> None:
        """Whether all else is there that the rows need which are run. Raises ConfigError, PreflightError."""
        if not ready:
            return
        for cell in ready:
            Prompt.load(self._config.respond(cell.row, cell.dataset).prompt, self._storage)
        for metric in metrics.build({"trust_score": plain(TrustScoreConfig())}, self._config.compat):
            metric.preflight()
        self._config.judge.entails.preflight(self._storage)

    def _data(self, dataset: str) -> Lacking | None:
        data = self._config.prepare(dataset).data
        if not data.path:
            return Lacking("no data", f"data.{dataset}=FILE")
        try:
            find_files(data, self._storage)
        except PreflightError as error:
            raise PreflightError(str(error).replace("data.path", f"data.{dataset}", 1)) from error
        return None

    def _model(self, row: str, ask_hub: bool) -> Lacking | None:
        own, model = self._config.model_key(row), self._config.model(row)
        if model is None:
            if self._config.engine.backend == "openai":
                return Lacking("the endpoint's name for the model is not given", f"models.{own}=NAME")
            if own == row:
                return Lacking("no published checkpoint is known", f"models.{own}=FOLDER")
            return Lacking("the model's weights are not open", f"engine=openai models.{own}=NAME")
        if self._config.engine.backend == "openai":
            return None
        why = _missing(model.path, model.revision, self._storage, True, ask_hub)
        if why and own in self._config.models:
            raise PreflightError(f"models.{own}={self._config.models[own]}: {why}")
        return Lacking(f"no model: {why}", f"models.{own}=FOLDER") if why else None

    def _judge(self, ask_hub: bool) -> Lacking | None:
        """The default judges are models of the hub; whatever else is missing of one, the command line named it."""
        judge = self._config.judge.entails
        model = getattr(judge, "model", "")
        path, revision = (
            (model.path, model.revision)
            if isinstance(model, ModelConfig)
            else (model, getattr(judge, "revision", None))
        )
        if not path or not is_hub_id(path) or getattr(getattr(judge, "engine", None), "backend", "") == "openai":
            return None
        why = _missing(path, revision, self._storage, False, ask_hub)
        return Lacking(f"no judge: {why}", "judge.entails.model=FOLDER") if why else None


def _missing(path: str, revision: str | None, storage: Storage, chat: bool, ask_hub: bool) -> str:
    """Why a model cannot be used, in words; empty where it can, as far as is known without the hub."""
    if is_hub_id(path):
        return _missing_of_hub(path, revision, ask_hub)
    try:
        models.preflight(path, revision, storage, chat)
    except PreflightError as error:
        return str(error)
    return ""


@cache
def _missing_of_hub(path: str, revision: str | None, ask_hub: bool) -> str:
    from huggingface_hub import constants, try_to_load_from_cache

    why = f"{path} is not cached here"
    cached = try_to_load_from_cache(path, "config.json", revision=revision)
    if isinstance(cached, str):
        try:
            models.preflight(os.path.dirname(cached))
            return ""
        except PreflightError as error:
            why = str(error)
    if constants.HF_HUB_OFFLINE:
        return f"{why}, and the hub is off (HF_HUB_OFFLINE)"
    try:
        if ask_hub:
            models.preflight(path, revision)
    except PreflightError as error:
        return str(error)
    return ""
