"""What each job inside `jobs.curate` is to do. The fingerprint of one is a part of the next one's."""

from collections.abc import Callable
from itertools import starmap
from typing import TYPE_CHECKING, Any

from trust.align.clusters import NOISE
from trust.align.rows import source
from trust.config import plain
from trust.errors import PreflightError
from trust.prepare.config import DataConfig
from trust.prepare.plan import plan as plan_files
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute
from trust.units import Unit, row_units

if TYPE_CHECKING:
    from trust.align.curate_job import CurateConfig

EMBED_ROWS, CURATE_ROWS, CLUSTERS = 256, 1024, 8  # of a unit, at most


def plan_embed(config: "CurateConfig", run: Run, cpus: float, gpus: float, spread: Any = starmap) -> Plan:
    """Questions and their vectors, those of the evaluation sets among them: the table `question_vectors`.

    Args:
        cpus, gpus: what one actor takes.
        spread: how files are passed over (trust.prepare.plan).

    Raises:
        PreflightError: there are no samples, or there is no such evaluation set.
    """
    parts, inputs = source(config)
    units = row_units(parts, config.unit_rows, EMBED_ROWS)
    identity: dict[str, Any] = dict(inputs)
    excluded = {}
    for number, name in enumerate(config.exclude):
        found, excluded[name] = _evaluation(config, run, name, spread)
        units += [Unit(f"set{number}-{unit.name}", {"evaluation": name, **unit.source}, unit.rows) for unit in found]
    judge = config.judge.chosen().get("embed")
    identity |= {
        "exclude": excluded,
        "splits": sorted(config.splits),
        "stratum": config.stratum,
        "judge": judge and judge.fingerprint(run.storage),
        "near_evaluation": config.near.evaluation is not None,
    }
    return _plan(
        config,
        "embed_questions",
        identity,
        units,
        "trust.align.curate_models:EmbedWorker",
        {
            "embed": judge and judge.for_actor(int(cpus)),
            "splits": config.splits,
            "stratum": config.stratum,
            "near_evaluation": config.near.evaluation is not None,
        },
        cpus=cpus,
        gpus=gpus,
        rows_in_flight=128,
    )


def _evaluation(config: "CurateConfig", run: Run, name: str, spread: Callable[..., Any]) -> tuple[list[Unit], str]:
    """Units of an evaluation set, and a hash over its content."""
    if "/" not in name and "." not in name:
        parts, inputs = Run.of(config, name).inputs("samples", "jobs.prepare")
        return row_units(parts, config.unit_rows, EMBED_ROWS), inputs
    try:
        files = plan_files(DataConfig(path=absolute(name)), run.storage, config.unit_rows, spread)
    except PreflightError as error:
        raise PreflightError(f"exclude: {error}") from error
    return [Unit(unit.name, {"file": unit.source}, unit.rows) for unit in files.units], files.fingerprint


def plan_clusters(config: "CurateConfig", run: Run, vectors: Manifest) -> Plan:
    """One unit: what repeats or stands in an evaluation set, and which cluster the others are in; the table `clustered`."""
    options = config.options
    return _plan(
        config,
        "cluster_questions",
        {"vectors": vectors.fingerprint, "near": options["near"], "clustering": options["clustering"]},
        [Unit("all", {"vectors": _paths(run, vectors, "question_vectors")}, max(1, vectors.rows))],
        "trust.align.curate_choice:ClusterWorker",
        {"near": options["near"], "clustering": options["clustering"]},
    )


def plan_ratings(config: "CurateConfig", run: Run, found: Manifest, cpus: float, gpus: float) -> Plan:
    """Topic and demand of each cluster; the table `clusters`."""
    parts, _ = source(config)
    judge = config.judge.chosen()["complete"]
    first = NOISE if config.clustering.noise == "keep" and found.totals.get("noise") else 0
    numbers = range(first, round(found.totals["clusters"]))
    starts = numbers[:: min(CLUSTERS, config.unit_rows or CLUSTERS)]
    units = [numbers[at : at + starts.step] for at in range(0, len(numbers), starts.step)]
    return _plan(
        config,
        "rate_clusters",
        {
            "clustered": found.fingerprint,
            "rating": config.options["rating"],
            "judge": judge.fingerprint(run.storage),
            "compat": config.compat,
        },
        [Unit(f"{some[0] + 1:06d}-{len(some)}", {"first": some[0], "last": some[-1]}, len(some)) for some in units],
        "trust.align.curate_models:RateWorker",
        {
            "complete": judge.for_actor(int(cpus)),
            "rating": config.options["rating"],
            "compat": config.compat,
            "clustered": _paths(run, found, "clustered"),
            "samples": [part["path"] for part in parts],
        },
        cpus=cpus,
        gpus=gpus,
        rows_in_flight=16,
    )


def plan_selection(config: "CurateConfig", run: Run, found: Manifest, ratings: Manifest | None) -> Plan:
    """One unit: what becomes of every question; the table `selection`."""
    return _plan(
        config,
        "select_seeds",
        {
            "clustered": found.fingerprint,
            "ratings": ratings and ratings.fingerprint,
            "draw": config.options["draw"] | {"at_least": config.at_least},
            "noise": config.clustering.noise,
            "compat": config.compat,
        },
        [Unit("all", {}, max(1, found.rows))],
        "trust.align.curate_choice:SelectWorker",
        {
            "clustered": _paths(run, found, "clustered"),
            "clusters": _paths(run, ratings, "clusters") if ratings else [],
            "draw": config.options["draw"],
            "at_least": config.at_least,
            "noise": config.clustering.noise,
            "clusters_wanted": config.clusters,
            "compat": config.compat,
        },
    )


def plan_curate(config: "CurateConfig", run: Run, selection: Manifest) -> Plan:
    """The seeds; the tables `seeds` and `failed`."""
    parts, inputs = source(config)
    return _plan(
        config,
        "curate",
        inputs | {"selection": selection.fingerprint},
        row_units(parts, config.unit_rows, CURATE_ROWS),
        "trust.align.curate_choice:CurateWorker",
        {"selection": _paths(run, selection, "selection")},
    )


def _plan(
    config: "CurateConfig",
    job: str,
    identity: dict[str, Any],
    units: list[Unit],
    worker: str,
    worker_config: dict[str, Any],
    **more: Any,
) -> Plan:
    return Plan(
        job=job,
        identity=identity,
        units=units,
        worker=worker,
        worker_config=worker_config | {"storage": plain(config.storage), "root": absolute(config.storage.root)},
        config=plain(config),
        **({"cpus": config.cluster.actor_cpus or 1} | more),
    )


def _paths(run: Run, manifest: Manifest, table: str) -> list[str]:
    return [run.path(part["path"]) for part in manifest.tables.get(table, [])]
