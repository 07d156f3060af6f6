"""Joining or starting Ray, and whether its nodes can hold and reach what a job asks for."""

import contextlib
import json
import logging
import os
import socket
import time
import uuid
import warnings
from collections.abc import Iterable
from typing import Any, Protocol

from trust.config import ClusterConfig
from trust.errors import JobStopped, PreflightError
from trust.storage import Storage, is_s3, join

log = logging.getLogger("trust")

AUTOSCALER_S = 20.0  # it looks at what is asked for every 5 s
ANSWER_S = 120.0  # a node may first have to fetch the job's environment

_started_here = False


class Backend(Protocol):
    """What the config of a backend says of its needs: its share of GPUs (None takes one where the cluster has one now), and
    whether it keeps all CPUs busy that it is given, where it has no GPU."""

    @property
    def gpus(self) -> float | None: ...

    @property
    def all_cpus(self) -> bool: ...


def connect(config: ClusterConfig) -> None:
    """Joins the cluster at `config.address`, or the one this submitted job runs on, else starts Ray on this machine.

    Raises:
        PreflightError: nothing answers at the address.
        JobStopped: Ray did not start.
    """
    import ray

    global _started_here  # noqa: PLW0603
    if ray.is_initialized():
        return
    address = config.address or ("auto" if is_named(config) else "local")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address == "local":
        options["include_dashboard"] = False
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
    try:
        _knock(address)
        ray.init(address=address, **options)
    except OSError as error:
        raise PreflightError(f"cluster.address={address}: no Ray cluster answers there") from error
    except Exception as error:  # Ray has no class of its own for this
        said = " ".join(str(error).split())[:300]
        raise JobStopped(f"cluster.address={address}: Ray did not start: {said} Start the job again") from error
    _started_here = address == "local"


def is_named(config: ClusterConfig) -> bool:
    """Whether there is a cluster to join; else Ray is started on this machine."""
    return bool(config.address or os.environ.get("RAY_ADDRESS"))


def _knock(address: str) -> None:
    """Raises OSError where nothing listens; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    host = host.strip("[]")
    if port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def preflight(config: ClusterConfig, cpus: float, gpus: float) -> None:
    """Compares what `min_actors` actors ask for with what the nodes have, and spells the sum out where it is too little.

    What other jobs hold now is not counted against it: they end. Nor is an autoscaler's cluster refused for nodes that it
    does not have yet; it is asked for them, which takes up to `AUTOSCALER_S` seconds.

    Raises:
        PreflightError: the cluster is too small and does not grow.
    """
    each = _each(cpus, gpus)
    fit, have = room(cpus, gpus)
    if fit >= config.min_actors or _grows(each, config.min_actors, fit):
        return
    raise PreflightError(
        f"cluster.min_actors={config.min_actors} actors of {_spell(each)} each need "
        f"{_spell({kind: config.min_actors * amount for kind, amount in each.items()})}, and an actor lies on one node; "
        f"this cluster's nodes have {have}, which is room for {fit}, and none is being added. Ask for less or add nodes"
    )


def room(cpus: float, gpus: float) -> tuple[int, str]:
    """How many actors the nodes hold, whatever runs on them now, and what the nodes have, in words."""
    each = _each(cpus, gpus)
    totals = [node["Resources"] for node in _nodes()]
    have = "; ".join(_spell({kind: node.get(kind, 0) for kind in each}) for node in totals)
    return sum(_fit(node, each) for node in totals), have


def check_reach(storage: Storage, root: str) -> None:
    """Has every node look for what this process writes below `root`, and write there itself; a busy one too.

    A node that does not answer within `ANSWER_S` seconds is named in the log; its actors look for themselves.

    Raises:
        PreflightError: names the nodes that do not see it, and says what to do.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = {node["NodeID"]: node for node in _nodes()}
    if len(nodes) == 1:  # this one
        return
    marker = join(root, f"trust-reach-{uuid.uuid4().hex[:12]}")
    storage.write_bytes(marker, b"trust")
    try:
        look = ray.remote(num_cpus=0, max_retries=0)(_look)
        asked = {
            look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False)).remote(
                storage, root, marker
            ): name
            for name in nodes
        }
        answered, silent = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_S)
        faults = {asked[answer]: fault for answer in answered if (fault := _answer(answer))}
    finally:
        storage.delete(marker)
    for answer in silent:
        ray.cancel(answer, force=True)
        log.warning("%s has not said in %.0f s whether it sees %s", _name(nodes[asked[answer]]), ANSWER_S, root)
    alive = {node["NodeID"] for node in _nodes()}
    told: dict[str, list[str]] = {}
    for name in sorted(faults.keys() & alive):
        told.setdefault(faults[name], []).append(_name(nodes[name]))
    if told:
        lines = "; ".join(f"{', '.join(names)}: {fault}" for fault, names in told.items())
        raise PreflightError(f"{len(faults.keys() & alive)} of {len(alive)} nodes cannot use the storage: {lines}")


def offers_gpu() -> bool:
    """Whether the cluster has a GPU now. One that an autoscaler may add has to be asked for."""
    import ray

    return bool(ray.cluster_resources().get("GPU", 0) > 0)


def node_cpus(config: ClusterConfig) -> float:
    """CPUs of the smallest node, shared among the actors of a full pool (at least 1)."""
    counts = [node["Resources"].get("CPU", 0) for node in _nodes()]
    usable = [count for count in counts if count >= 1] or [1]
    actors_a_node = -(-config.max_actors // len(usable))
    return float(max(1.0, min(usable) // actors_a_node))


def actor_resources(backends: Iterable[Backend], config: ClusterConfig) -> tuple[float, float]:
    """CPUs and GPUs of an actor that holds these backends."""
    held = list(backends)
    gpus = sum(float(offers_gpu()) if backend.gpus is None else backend.gpus for backend in held)
    cpus = node_cpus(config) if any(backend.all_cpus for backend in held) and not gpus else 1.0
    return config.actor_cpus or cpus, gpus


def _nodes() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]


def _name(node: dict[str, Any]) -> str:
    """Several nodes may share an address, and several machines a name."""
    return f"node {node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def _each(cpus: float, gpus: float) -> dict[str, float]:
    return {kind: amount for kind, amount in (("CPU", cpus), ("GPU", gpus)) if amount}


def _fit(node: dict[str, float], each: dict[str, float]) -> int:
    """How many actors a node's resources hold."""
    return min(int(node.get(kind, 0) // amount) for kind, amount in each.items())


def _spell(amounts: dict[str, float]) -> str:
    return " and ".join(f"{amount:g} {kind}" for kind, amount in amounts.items())


def _grows(each: dict[str, float], actors: int, fit: int) -> bool:
    """Whether asking for what is missing makes nodes come.

    Ray keeps no list of the nodes that may be added, so this asks for them as the actors will, by a placement group
    that is taken back. What others hold now is left out of what is asked for: it comes free without new nodes.
    """
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group

    if _started_here:
        return False
    free = sum(_fit(left, each) for left in ray._private.state.available_resources_per_node().values())
    group = placement_group([dict(each)] * (actors - max(0, fit - free)))
    try:
        deadline = time.monotonic() + AUTOSCALER_S
        while time.monotonic() < deadline:
            if group.wait(1) or _on_their_way():
                log.info("the cluster is growing: %d actors of %s each do not fit yet", actors, _spell(each))
                return True
        return False
    finally:
        remove_placement_group(group)


def _on_their_way() -> bool:
    """Whether the autoscaler has nodes coming; its two versions tell of it in different places."""
    import ray
    from ray.autoscaler.v2.sdk import get_cluster_status
    from ray.experimental.internal_kv import _internal_kv_get

    status = get_cluster_status(ray.get_runtime_context().gcs_address)
    if status.pending_launches or status.pending_nodes:
        return True
    report = json.loads(_internal_kv_get("__autoscaling_status") or "{}").get("autoscaler_report") or {}
    return bool(report.get("pending_launches") or report.get("pending_nodes"))


def _look(storage: Storage, root: str, marker: str) -> str:
    """Runs on a node: what is wrong with the storage as it is seen from there; empty where nothing is."""
    seen = True
    with contextlib.suppress(Exception):  # what it is comes out below, in words
        seen = storage.exists(marker)
    if not seen:
        return f"storage.root={root} is not the {'bucket' if is_s3(root) else 'folder'} that the job writes to; " + (
            "storage.endpoint must lead to the same store from every node"
            if is_s3(root)
            else "put it on a file system that every node shares, or use an s3:// address"
        )
    try:
        storage.preflight(root)
    except PreflightError as error:
        return str(error) + ("; keys come from the environment of each node" if is_s3(root) else "")
    return ""


def _answer(answer: Any) -> str:
    """What a node said; where it could say nothing, why."""
    import ray

    try:
        return str(ray.get(answer))
    except Exception as error:  # whatever keeps a node from running a small task keeps it from running an actor
        return " ".join(str(error).split())[-300:]
