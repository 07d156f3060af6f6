"""What a run may cost: how much of it is left to each actor, and what is said once it is spent.

Rows that were not asked about for that reason are failed rows, so that nothing that was paid for is lost.
"""

from trust.config import JobConfig
from trust.errors import JobStopped
from trust.runs import Manifest, Plan, Run
from trust.units import UnitStore

REASON = "cost_limit"  # of the rows that were not asked about


def share(limit: float | None, plan: Plan, run: Run, config: JobConfig) -> float | None:
    """What one actor may still spend of `limit`, by the receipts of the run so far; None for no limit."""
    return None if limit is None else (limit - spent(plan, run, config)) / config.cluster.max_actors


def spent(plan: Plan, run: Run, config: JobConfig) -> float:
    """What the run has cost so far, by its receipts; 0 where it begins anew."""
    if config.overwrite:
        return 0.0
    store = UnitStore(run.storage, run.root, plan.job, plan.fingerprint)
    return sum(receipt.totals.get("cost", 0.0) for receipt in store.receipts(sorted(store.finished())))


def check(limit: float | None, manifest: Manifest, again: str = "retry_failed=true") -> None:
    """Raises JobStopped where rows were not asked about since the limit was reached.

    Args:
        again: the words with which the job does them later.
    """
    if unasked := manifest.totals.get(f"failed:{REASON}"):
        raise JobStopped(
            f"engine.cost_limit={limit or 0:g} is reached: {manifest.totals.get('cost', 0):.6g} is spent, and {unasked:.0f} "
            f"rows were not asked about. What is answered is kept: raise the limit and start again with {again} "
            "for the rest"
        )
