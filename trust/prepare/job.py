"""`jobs.prepare` from checked config to manifest."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from trust import cluster
from trust.config import ClusterConfig, JobConfig, plain
from trust.errors import PreflightError
from trust.execute import execute
from trust.prepare.config import DataConfig, dataset_name
from trust.prepare.plan import Spread
from trust.prepare.plan import plan as plan_files
from trust.prepare.pools import count, find_pools, plan_pools
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute

log = logging.getLogger("trust")

T = TypeVar("T")

_AT_ONCE = 64


@dataclass
class PrepareConfig(JobConfig):
    """`jobs.prepare`.

    Attributes:
        data: the files and how to read them.
        task: em, em5, cm or none, for rows that do not say; overrides the data's.
    """

    data: DataConfig = field(default_factory=DataConfig)
    task: str | None = None


def run_prepare(config: PrepareConfig) -> Manifest:
    """Cuts the files into units and reads them into the tables samples, responses and failed.

    Raises:
        PreflightError: no such file, nothing in it, not in a form that can be read.
    """
    check(config)
    run = Run.of(config)
    run.storage.preflight(run.root)
    spread = partial(on_cluster, config.cluster, config.cluster.actor_cpus or 1)
    return execute(plan_prepare(config, run, spread), run, config)


def check(config: PrepareConfig) -> None:
    """Raises PreflightError where no file is named."""
    if not config.data.path:
        raise PreflightError("data.path is not set: add data.path=FILE (a file, folder or glob, local or s3://)")


def plan_prepare(config: PrepareConfig, run: Run, spread: Spread) -> Plan:
    """What is to be done, after one pass over the files.

    Args:
        spread: how files are passed over (trust.prepare.plan).

    Raises:
        PreflightError: no such file, nothing in it, not in a form that can be read.
    """
    data = replace(config.data, path=absolute(config.data.path or ""), task=config.task or config.data.task)
    data.name = dataset_name(data)
    if data.kind == "nomiracl" and (found := find_pools(data, run.storage)):
        counted = spread(count, [(pool, plain(data.pool), run.storage) for pool in found])
        files = plan_pools(data, counted)
    else:
        files = plan_files(data, run.storage, config.unit_rows, spread)
    for warning in files.warnings:
        log.warning("%s", warning)
    read_as = plain(data)
    del read_as["path"]
    return Plan(
        job="prepare",
        identity={"data": read_as, "inputs": files.fingerprint, "compat": config.compat},
        units=files.units,
        worker="trust.prepare.worker:PrepareWorker",
        worker_config={"data": plain(data), "compat": config.compat, "storage": plain(config.storage)},
        config=plain(config),
        unique=("samples", "responses"),
        cpus=config.cluster.actor_cpus or 1,
    )


def on_cluster(
    config: ClusterConfig, cpus: float, function: Callable[..., T], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[T]:
    """Calls `function` for each tuple of arguments in a Ray task, some dozens at a time; results in order.

    Raises:
        PreflightError: as `function` raised it, or the cluster is too small.
    """
    import ray
    from ray.exceptions import RayTaskError

    cluster.connect(config)
    cluster.preflight(config, cpus, 0)
    task = ray.remote(num_cpus=cpus)(function)
    left = iter(arguments)
    running = deque(task.remote(*each) for each in islice(left, _AT_ONCE))
    while running:
        try:
            yield ray.get(running.popleft())
        except RayTaskError as error:
            raise error.cause from None
        running.extend(task.remote(*each) for each in islice(left, 1))
