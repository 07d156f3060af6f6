"""`jobs.prepare` from checked config to manifest."""

import logging
from dataclasses import dataclass, field, replace

from trust import cluster
from trust.config import JobConfig, plain
from trust.errors import PreflightError
from trust.prepare.config import DataConfig, dataset_name
from trust.prepare.plan import plan as plan_files
from trust.runs import Manifest, Plan, Run, execute
from trust.storage import absolute

log = logging.getLogger("trust")


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
    if not config.data.path:
        raise PreflightError("data.path is not set: add data.path=FILE (a file, folder or glob, local or s3://)")
    data = replace(config.data, path=absolute(config.data.path), task=config.task or config.data.task)
    data.name = dataset_name(data)
    run = Run.of(config)
    run.storage.preflight(run.root)
    files = plan_files(data, run.storage, config.unit_rows)
    for warning in files.warnings:
        log.warning("%s", warning)
    read_as = plain(data)
    del read_as["path"]
    plan = Plan(
        job="prepare",
        identity={"data": read_as, "inputs": files.fingerprint, "compat": config.compat},
        units=files.units,
        worker="trust.prepare.worker:PrepareWorker",
        worker_config={"data": plain(data), "compat": config.compat, "storage": plain(config.storage)},
        config=plain(config),
        unique=("samples", "responses"),
        cpus=config.cluster.actor_cpus or 1,
    )
    cluster.connect(config.cluster)
    return execute(plan, run, config)
