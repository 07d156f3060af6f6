"""Taking away what an earlier config left in a run, and what was made from it."""

from trust.runs import Plan, Run
from trust.units import UnitStore

LINE = ("prepare", "respond", "cite", "evaluate")  # each reads what those before it left in the run
MADE_LAST = (
    "summary.json",
    "summary.parquet",
    "slices.parquet",
    "slices.csv",
    "rates.parquet",
    "rates.csv",
    "report.html",
    "agreement.parquet",
    "agreement.csv",
    "agreement.json",
    "agreement.svg",
    "corrected.parquet",
    "corrected.csv",
)


def remove(plan: Plan, run: Run) -> None:
    """Removes what an earlier config left, and what later jobs of the run made from it.

    Unfinished units of the same fingerprint stay: an overwriting job that was killed goes on where it was.
    """
    earlier = run.manifest(plan.job)
    if earlier:
        remove_later(plan.job, run)
    finished = earlier is not None and earlier.fingerprint == plan.fingerprint
    _remove_job(plan.job, run, keep="" if finished else plan.fingerprint)


def remove_later(job: str, run: Run) -> None:
    """Removes what is made from a job's tables."""
    for name in MADE_LAST:
        run.storage.delete(run.path(name))
    for name in run.storage.list_names(run.path("compare")):
        run.storage.delete(run.path("compare", name))
    for later in LINE[LINE.index(job) + 1 :] if job in LINE else ():
        _remove_job(later, run)


def _remove_job(job: str, run: Run, keep: str = "") -> None:
    """The manifest goes first, so that no reader sees a table half gone.

    Args:
        keep: a fingerprint whose units stay.
    """
    if manifest := run.manifest(job):
        run.storage.delete(run.path("manifests", f"{job}.json"))
        for part in [part for parts in manifest.tables.values() for part in parts]:
            run.storage.delete(run.path(part["path"]))
        if manifest.sums:
            run.storage.delete(run.path(manifest.sums))
    for name in run.storage.list_folders(run.path("_units", job)):
        if name != keep:
            UnitStore(run.storage, run.root, job, name).clear(keep_receipts=False)
