"""A job from claim to manifest: what is there already, and what is missing."""

import json
import logging
from dataclasses import asdict
from itertools import islice
from typing import Any

from trust import cluster
from trust.config import JobConfig
from trust.errors import ConfigError, PreflightError
from trust.fingerprint import differences
from trust.finish import finish, finish_retry
from trust.lease import Lease
from trust.progress import Progress
from trust.remove import remove
from trust.retry import retry_units
from trust.runs import Manifest, Plan, Run
from trust.units import Receipt, Unit, UnitStore, run_pending, stopping

log = logging.getLogger("trust")


def execute(plan: Plan, run: Run, config: JobConfig, retry_failed: bool = False) -> Manifest:
    """Does the units that have no receipt yet and writes the manifest; with all done already, returns the manifest.

    Args:
        retry_failed: then also do the rows that failed again (trust.retry); the plan's worker must know how.

    Raises:
        ConfigError: the config asks for a dry run, which is shown by trust.dry_run.
        PreflightError: the run holds another config's rows, somebody else is writing, or the cluster is too small.
    """
    if config.dry_run:
        raise ConfigError("dry_run=true runs nothing: see trust.dry_run, or python -m jobs.NAME dry_run=true")
    done = already(plan, run, config)
    if done and not (retry_failed and done.counts.get("failed")):
        return done
    with stopping(), Lease(run.storage, lease_path(plan, run)) as lease:
        store = UnitStore(run.storage, run.root, plan.job, plan.fingerprint)
        if not done:
            if config.overwrite:
                remove(plan, run)
            store.keep_identity(plan.identity)
        cluster.connect(config.cluster)
        cluster.preflight(config.cluster, plan.cpus, plan.gpus)
        cluster.check_reach(run.storage, run.root)
        if not done:
            _work(plan, plan.units, store, config, lease)
            done = finish(plan, run, store, lease)
        if retry_failed and done.counts.get("failed"):
            log.info("%s: %d failed rows are done again", plan.job, done.counts["failed"])
            units = retry_units(plan.units, store, run, done)
            _work(plan, units, store, config, lease)
            done = finish_retry(plan, run, store, done, units, lease)
        return done


def _work(plan: Plan, units: list[Unit], store: UnitStore, config: JobConfig, lease: Lease) -> None:
    """Does those of `units` that have no receipt, as long as the lease is held."""
    finished = store.whole()
    pending = [unit for unit in units if unit.name not in finished]
    if len(pending) < len(units):
        log.info("%s: %d of %d units are done already", plan.job, len(units) - len(pending), len(units))
    if pending:
        pool = asdict(config.cluster) | {"num_cpus": plan.cpus, "num_gpus": plan.gpus}
        pool["units_in_flight"] = config.cluster.units_in_flight or _units_in_flight(plan)
        progress = Progress(plan.job, sum(unit.rows for unit in pending))

        def on_receipt(receipt: Receipt) -> None:
            lease.check()
            progress.step(receipt)

        run_pending(store, pending, plan.worker, plan.worker_config, pool, on_receipt)
    lease.check(at_once=True)


def lease_path(plan: Plan, run: Run) -> str:
    """Where the lease of a job lies while it runs."""
    return run.path("_units", f"{plan.job}.lease")


def already(plan: Plan, run: Run, config: JobConfig) -> Manifest | None:
    """The manifest of a job that is finished with this config; None where there is something to do.

    Raises:
        PreflightError: the run holds another config's rows.
    """
    earlier = run.manifest(plan.job)
    if earlier and earlier.fingerprint == plan.fingerprint and not config.overwrite:
        log.info("%s: run=%s is finished already with this config; overwrite=true does it again", plan.job, run.name)
        return earlier
    if config.overwrite:
        return None
    others = [name for name in run.storage.list_folders(run.path("_units", plan.job)) if name != plan.fingerprint]
    if earlier or others:
        old = earlier.identity if earlier else UnitStore(run.storage, run.root, plan.job, others[0]).identity()
        changed = "; ".join(
            f"{key} was {_short(was)}, is {_short(now)}" for key, was, now in islice(differences(old, plan.identity), 8)
        )
        raise PreflightError(
            f"run={run.name} already holds {plan.job} rows of another config ({changed}). "
            "Choose another run=, or replace it with overwrite=true"
        )
    return None


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:80]


def _units_in_flight(plan: Plan) -> int:
    """Units of the plan's size that hold `rows_in_flight` rows; at least two, so that one is read while one is worked on."""
    return max(2, -(-plan.rows_in_flight // max(unit.rows for unit in plan.units)))
