"""Joining or starting Ray, and whether it can hold what a job asks for."""

import logging
import os
import warnings
from typing import Any

from trust.config import ClusterConfig
from trust.errors import PreflightError

log = logging.getLogger("trust")


def connect(config: ClusterConfig) -> None:
    """Joins the cluster at `config.address`, or the one this submitted job runs on, else starts Ray on this machine.

    Raises:
        PreflightError: nothing answers at the address.
    """
    import ray

    if ray.is_initialized():
        return
    address = config.address or ("auto" if os.environ.get("RAY_ADDRESS") else "local")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address == "local":
        options["include_dashboard"] = False
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
    try:
        ray.init(address=address, **options)
    except ConnectionError as error:
        raise PreflightError(f"cluster.address={address}: no Ray cluster answers there") from error


def preflight(config: ClusterConfig, cpus: float, gpus: float) -> None:
    """Compares what `min_actors` actors ask for with what the cluster has, and spells the sum out where it is too little.

    A cluster that can grow (an autoscaler is configured) is never refused for what it does not have yet.

    Raises:
        PreflightError: the cluster is too small and cannot grow.
    """
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for kind, each in (("CPU", cpus), ("GPU", gpus)):
        if not each or _can_grow(kind, each):
            continue
        fit = sum(int(node.get(kind, 0) // each) for node in nodes)
        if fit < config.min_actors:
            have = ", ".join(f"{node.get(kind, 0):g}" for node in nodes)
            raise PreflightError(
                f"cluster.min_actors={config.min_actors} actors of {each:g} {kind} each need "
                f"{config.min_actors * each:g} {kind}, and an actor lies on one node; this cluster's nodes have {have} "
                f"{kind} and room for {fit}, and it cannot grow. Ask for less or add nodes"
            )


def offers_gpu() -> bool:
    """Whether the cluster has a GPU or may grow one."""
    import ray

    return ray.cluster_resources().get("GPU", 0) > 0 or _can_grow("GPU", 1)


def node_cpus(config: ClusterConfig) -> float:
    """CPUs of the smallest node, shared among the actors of a full pool (at least 1)."""
    import ray

    counts = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    usable = [count for count in counts if count >= 1] or [1]
    actors_a_node = -(-config.max_actors // len(usable))
    return max(1.0, min(usable) // actors_a_node)


def _can_grow(kind: str, each: float) -> bool:
    """Whether an autoscaler may still add nodes that hold `each` of `kind`."""
    from ray._private.state import state

    groups = getattr(state.get_cluster_config(), "node_group_configs", ())
    return any(group.resources.get(kind, 0) >= each and group.max_count != 0 for group in groups)
