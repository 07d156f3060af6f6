"""Strict composition: Hydra, then a recursive check against the dataclasses.

Hydra alone lets `+judge.modle=x` pass. Here every key of the composed config must be a field of the job's dataclass;
what a group chooses (say, which backend answers `entails`) chooses the dataclass that its keys are checked against.
Hydra stays in the driver: what leaves this module is plain dataclasses without interpolations.
"""

import dataclasses
import difflib
import math
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from trust.errors import ConfigError
from trust.storage import StorageConfig

CONF = Path(__file__).resolve().parents[1] / "conf"
MODES = ("strict", "upstream")

T = TypeVar("T")


@dataclass
class ClusterConfig:
    """Which Ray cluster, and how many actors a job may use on it.

    Attributes:
        address: of a running cluster; null joins the one a submitted job runs on, else starts Ray on this machine.
        min_actors: actors kept from the start.
        max_actors: actors the pool may grow to.
        actor_cpus: CPUs one actor takes; null is all of a node's shared among its actors for models, 1 otherwise.
        max_restarts: times that an actor whose process died is started again before the job stops.
        units_in_flight: units one actor works on at once, so that a model never runs dry at a unit's border; null takes
            as many as the job's model is kept busy by.
    """

    address: str | None = None
    min_actors: int = 1
    max_actors: int = 1
    actor_cpus: float | None = None
    units_in_flight: int | None = None
    max_restarts: int = 3

    def __post_init__(self) -> None:
        if not 1 <= self.min_actors <= self.max_actors:
            raise ConfigError("cluster.min_actors must be at least 1 and at most cluster.max_actors")
        if self.units_in_flight is not None and self.units_in_flight < 1:
            raise ConfigError(f"cluster.units_in_flight={self.units_in_flight}: must be at least 1")
        if self.max_restarts < 0:
            raise ConfigError(f"cluster.max_restarts={self.max_restarts}: cannot be negative")
        if self.actor_cpus is not None and not 0 < self.actor_cpus < math.inf:
            raise ConfigError(f"cluster.actor_cpus={self.actor_cpus:g}: must be a number above 0, or null")


@dataclass
class JobConfig:
    """What every job has.

    Attributes:
        run: name of the run; tables lie in `{storage.root}/{run}`.
        compat: `strict` (what is right) or `upstream` (the published arithmetic, bug for bug).
        unit_rows: rows of a work unit; at most the units in flight are lost by a kill. Null takes 1/200 of the job's rows,
            at least one and at most what is sensible for the job.
        max_failed: share of rows that may fail before rates are withheld and the job exits with 3.
        overwrite: replace what another config left under the same run.
        dry_run: print what would run (trust.dry_run), start nothing and write nothing; no part of the fingerprint.
    """

    run: str = "run"
    storage: StorageConfig = field(default_factory=StorageConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    compat: str = "strict"
    unit_rows: int | None = None
    max_failed: float = 0.01
    overwrite: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        one_of("compat", self.compat, MODES)
        run_name("run", self.run)
        if self.unit_rows is not None and self.unit_rows < 1:
            raise ConfigError(f"unit_rows={self.unit_rows}: must be at least 1")
        if not 0 <= self.max_failed <= 1:
            raise ConfigError(f"max_failed={self.max_failed}: a share between 0 and 1")


@dataclass
class AskingJobConfig(JobConfig):
    """What every job that asks a model has.

    Attributes:
        retry_failed: rows that failed in this run are done again, and no others.
    """

    retry_failed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retry_failed and self.overwrite:
            raise ConfigError(
                "overwrite=true does every row again, retry_failed=true the failed ones: give one of them"
            )


def load(job: str, schema: type[T], arguments: list[str]) -> T:
    """The config of `job` from `conf/{job}.yaml` and command-line words, checked against `schema`.

    Raises:
        ConfigError: names the key at fault and the nearest right one.
    """
    groups = job_groups(job)
    words = [_prepare(job, groups, override) for override in _parse(arguments)]
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            composed = compose(config_name=job, overrides=words)
        plain = OmegaConf.to_container(composed, resolve=True, throw_on_missing=False)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(" ".join(str(error).split())) from error
    return build(schema, plain)


def build(schema: type[T], values: Any, path: str = "") -> T:
    """`values` (plain containers) as the dataclass `schema`, every key and type checked.

    A field with metadata `{"choices": {name: dataclass}, "by": key}` takes the dataclass that its own `key` names.
    """
    if not isinstance(values, dict):
        raise ConfigError(f"{path or 'config'}: expected keys, got {values!r}")
    hints = typing.get_type_hints(schema)
    fields = {item.name: item for item in dataclasses.fields(schema) if item.init}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise ConfigError(_unknown(_dotted(path, str(key)), str(key), [_dotted(path, name) for name in fields]))
    made = {}
    for key, value in values.items():
        where = _dotted(path, key)
        metadata = fields[key].metadata
        if "choices" in metadata and isinstance(value, dict):
            made[key] = _choose(metadata["choices"], metadata["by"], value, where)
        else:
            made[key] = _convert(hints[key], value, where)
    missing = [
        name
        for name, item in fields.items()
        if name not in made and item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{_dotted(path, missing[0])} is not set: add {_dotted(path, missing[0])}=...")
    return schema(**made)


def job_groups(job: str) -> list[str]:
    """The groups that a job's config is made of."""
    defaults = yaml.safe_load((CONF / f"{job}.yaml").read_text())["defaults"]
    return [str(next(iter(item))) for item in defaults if isinstance(item, dict)]


def one_of(key: str, value: str, choices: typing.Iterable[str]) -> None:
    """Raises ConfigError where `value` is none of `choices`."""
    choices = list(choices)
    if value not in choices:
        raise ConfigError(f"{key}={value}: unknown value{nearest(str(value), choices)} (choices: {', '.join(choices)})")


def run_name(key: str, value: str) -> None:
    """Raises ConfigError where `value` cannot be the name of a run."""
    if not value or set(value) & set("/\\ ") or value.startswith((".", "_")):
        raise ConfigError(f"{key}={value!r}: a run's name has no slash or space and does not begin with . or _")


def plain(config: Any) -> dict[str, Any]:
    """A config dataclass as plain containers, to cross to Ray and into manifests."""
    return dataclasses.asdict(config)


def _parse(arguments: list[str]) -> list[Override]:
    for word in arguments:
        if "=" not in word and not word.startswith("~"):
            raise ConfigError(f"{word!r} is not of the form key=value")
    try:
        return OverridesParser.create().parse_overrides(arguments)
    except HydraException as error:
        word = next((w for w in arguments if not _parses(w)), " ".join(arguments))
        key, _, value = word.partition("=")
        raise ConfigError(
            f"{word}: cannot be read as key=value; quote a value with special characters twice, for the shell and for "
            f"the config: \"{key}='{value}'\""
        ) from error


def _parses(word: str) -> bool:
    try:
        OverridesParser.create().parse_overrides([word])
    except HydraException:
        return False
    return True


def _prepare(job: str, groups: list[str], override: Override) -> str:
    key, line = override.key_or_group, override.input_line or ""
    if override.type == OverrideType.DEL:
        raise ConfigError(f"{line}: keys cannot be deleted; set the value you want instead")
    if key.split(".")[0].split("/")[0] == "hydra":
        raise ConfigError(f"{line}: unknown key; Hydra only reads the config here and has no settings of its own")
    if override.is_sweep_override():
        raise ConfigError(f"{line}: one job runs one config; give one value")
    value = line.split("=", 1)[1]
    folder = CONF / key
    if folder.is_dir() and isinstance(override.value(), str | list):
        options = sorted(file.stem for file in folder.glob("*.yaml"))
        if key not in groups:
            below = [group for group in groups if group.startswith(f"{key}/")]
            hint = f"did you mean {below[0]}={value}?" if below else f"its groups: {', '.join(groups)}"
            raise ConfigError(f"{line}: jobs.{job} has no group {key}; {hint}")
        chosen = override.value()
        for option in chosen if isinstance(chosen, list) else [chosen]:
            one_of(key, str(option), options)
        return f"{key}={value}"
    return f"++{key}={value}"


def _choose(choices: dict[str, type], by: str, value: dict[str, Any], path: str) -> Any:
    kind = value.get(by)
    if kind is None:
        raise ConfigError(f"{_dotted(path, by)} is not set (choices: {', '.join(choices)})")
    one_of(_dotted(path, by), str(kind), choices)
    return build(choices[kind], value, path)


def _convert(hint: Any, value: Any, path: str) -> Any:
    if value == "???":
        raise ConfigError(f"{path} is not set: add {path}=...")
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        errors = []
        for option in arguments:
            if option is type(None):
                continue
            try:
                return _convert(option, value, path)
            except ConfigError as error:
                errors.append(error)
        raise errors[0]
    if dataclasses.is_dataclass(hint):
        return build(hint, value, path)  # type: ignore[arg-type]
    if origin is list and isinstance(value, list):
        return [_convert(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {str(key): _convert(arguments[1], item, _dotted(path, str(key))) for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)  # a run or a revision may look like a number
    if isinstance(hint, type) and isinstance(value, hint) and (hint is not int or not isinstance(value, bool)):
        return value
    name = getattr(origin or hint, "__name__", str(hint))
    raise ConfigError(f"{path}={value!r}: must be of type {name}" + (", not null" if value is None else ""))


def _dotted(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _unknown(path: str, key: str, known: list[str]) -> str:
    return f"unknown key {path}{nearest(path, known)}; known here: {', '.join(sorted(known))}"


def nearest(word: str, known: list[str]) -> str:
    """`; did you mean X?` where one of `known` is near `word`, else nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""
