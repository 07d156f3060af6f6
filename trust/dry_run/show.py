"""What the dry runs of all jobs print alike: the run, its units, actors and models."""

import os
from dataclasses import dataclass
from typing import Any

from trust import cluster, models
from trust.cache import cache_dir
from trust.config import ClusterConfig, JobConfig
from trust.errors import PreflightError
from trust.execute import already, lease_path
from trust.models import ModelConfig
from trust.runs import Manifest, Plan, Run
from trust.storage import Storage, absolute, is_s3
from trust.units import UnitStore

_WIDTH = 14


@dataclass(frozen=True)
class Left:
    """What a run has yet to do.

    Attributes:
        done: the manifest, where the job is finished with this config.
        rows: input rows of the units without a receipt; of a finished job whose failed rows are done again, these.
    """

    done: Manifest | None
    rows: int


def line(label: str, text: str) -> None:
    """One line, with what it is about in front."""
    print(f"{label + ':' if label else '':<{_WIDTH}}{text}")


def block(label: str, title: str, text: str) -> None:
    """A text of several lines, to the letter, between two marks."""
    line(label, title)
    print(f"{'-' * 8} begin\n{text}\n{'-' * 8} end")


def look(run: Run) -> None:
    """What the storage's preflight can find out without writing: whether the run's folder can be listed, and on a local
    disk whether it may be written to.

    Raises:
        PreflightError: says in one line what is wrong.
    """
    if is_s3(run.root):
        run.storage.s3.look(run.root)
        return
    above = run.root
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        raise PreflightError(f"storage.root={run.root}: cannot write: {above} is no folder")
    if not os.access(above, os.R_OK | os.W_OK | os.X_OK):
        raise PreflightError(f"storage.root={run.root}: cannot write: permission denied in {above}")


def head(job: str, run: Run) -> None:
    """The first lines: that this is a dry run, and of which run."""
    print(f"dry run of jobs.{job}: no model is loaded, no actor is started, nothing is written")
    line("run", f"{run.root} (only read: whether it can be written, the run tries itself)")


def progress(plan: Plan, run: Run, config: JobConfig, retry_failed: bool = False) -> Left:
    """Prints fingerprint, units, and how much of them is done already.

    Raises:
        PreflightError: the run holds another config's rows.
    """
    done, earlier = already(plan, run, config), run.manifest(plan.job)
    store = UnitStore(run.storage, run.root, plan.job, plan.fingerprint)
    again = config.overwrite and earlier is not None and earlier.fingerprint == plan.fingerprint
    finished = set() if again else store.finished() & {unit.name for unit in plan.units}
    rows = sum(unit.rows for unit in plan.units)
    left = 0 if done else sum(unit.rows for unit in plan.units if unit.name not in finished)
    line("fingerprint", plan.fingerprint)
    most = max((unit.rows for unit in plan.units), default=0)
    there = len(plan.units) if done else len(finished)
    line(
        "units",
        f"{len(plan.units):,} of at most {most:,} rows, {rows:,} rows in all; {there:,} have a receipt, "
        f"{len(plan.units) - there:,} units with {left:,} rows are left",
    )
    if done:
        failed = done.counts.get("failed", 0)
        if retry_failed and failed:
            left = failed
            line("retry", f"finished at {done.finished}; its {failed:,} failed rows would be done again")
        else:
            line(
                "finished", f"at {done.finished} with this config: nothing would be done; overwrite=true does it again"
            )
    elif earlier:
        line(
            "overwrite", f"what {plan.job} left at {earlier.finished}, and what later jobs made of it, would be removed"
        )
    if run.storage.exists(lease_path(plan, run)):
        line(
            "lease",
            f"{lease_path(plan, run)} is there: a run is writing, or was killed; the run looks whether it lives",
        )
    return Left(done, left)


def actors(config: ClusterConfig, units: int | None, gpus: float, all_cpus: bool, if_any: int = 0) -> None:
    """Prints what the actors ask for and, of a cluster that is named, what its nodes have.

    Args:
        units: more actors than these are never started; None where they are not known.
        gpus: of one actor, wherever it runs.
        all_cpus: whether an actor without a GPU shares all CPUs of its node with the others there.
        if_any: GPUs that it takes beside where the cluster has one.
    """
    named = cluster.is_named(config)
    if named:
        cluster.connect(config)
        gpus, if_any = gpus + (if_any if cluster.offers_gpu() else 0), 0
    shared = all_cpus and not gpus and config.actor_cpus is None
    cpus = cluster.node_cpus(config) if named and shared else config.actor_cpus or 1.0
    most = config.max_actors if units is None else max(1, min(config.max_actors, units))
    asked = "all CPUs of a node, shared among the actors there," if shared else f"{cpus:g} CPU"
    more = f", or {gpus + if_any:g} where the cluster has one" if if_any else ""
    line("actors", f"{min(config.min_actors, most)} to {most}, each {asked} and {gpus:g} GPU{more}")
    if not named:
        line("cluster", "none is named (cluster.address): the run starts Ray on this machine; the dry run does not")
        return
    fit, have = cluster.room(cpus, gpus)
    line("cluster", f"its nodes have {have}: room for {fit} such actors")
    if fit < config.min_actors:
        line(
            "warning",
            f"cluster.min_actors={config.min_actors} do not fit: the run asks an autoscaler for nodes, and stops with exit "
            "code 2 where none comes",
        )


def model(config: ModelConfig, engine: Any, storage: Storage) -> None:
    """Prints a model that writes, and where it lies."""
    known = engine.identity(config, storage)
    if engine.backend == "openai":
        line("model", f"{config.name}: {config.path} at {engine.base_url}, revision {config.revision or 'not given'}")
        line("", "no fingerprint: its weights are the endpoint's; it was asked one short question, as before every run")
        return
    line("model", f"{config.name}: {config.path}, revision {config.revision or 'not given'}, dtype {known['dtype']}")
    line("", f"fingerprint {known['content']}; {where(config.path)}")


def where(path: str) -> str:
    """Where a model's files lie, in words."""
    if models.is_gguf(path):
        from trust.gguf import GgufPackage

        package = GgufPackage.find(path)
        converted = cache_dir() / "models" / package.key
        then = (
            f"converted in {converted}"
            if converted.is_dir()
            else "converted into the cache of each node when first used"
        )
        return f"lies in {package.file}, {then}"
    if models.is_hub_id(path):
        return "on the hub, fetched into the cache of each node when first used"
    return f"lies in {absolute(path)}" + (", fetched into the cache of each node" if is_s3(path) else "")


def tables(run: Run, *names: str) -> None:
    """Prints the tables and files that would be written."""
    line("would write", f"below {run.root}: {', '.join(names)}")
