"""Taking away what an earlier config left in a run, and what was made from it."""

from trust.align.card import FOLDER as CARDS
from trust.runs import Manifest, Plan, Run
from trust.tables import SAMPLE_TABLES
from trust.units import UnitStore

READS: dict[str, tuple[str, ...]] = {  # job -> tables it may read of its run, in the order in which they are made
    "prepare": (),
    "embed_questions": ("samples",),
    "cluster_questions": ("question_vectors",),
    "rate_clusters": ("samples", "clustered"),
    "select_seeds": ("clustered", "clusters"),
    "curate": ("samples", "selection"),
    **dict.fromkeys(
        ("frequencies", "search_bm25", "encode_dense", "search_dense", "encode_late", "search_late", "retrieve"),
        ("samples", "seeds"),
    ),
    "label": ("samples", "seeds"),
    "recombine": ("samples", "seeds"),
    "positives": tuple(SAMPLE_TABLES),
    "respond": tuple(SAMPLE_TABLES),
    "cite": ("responses",),
    "evaluate": ("responses",),
    "negatives": ("responses",),
    "pair": ("positives", "errors"),
}
EXPORTS = {  # job -> folders of what it writes for others
    "negatives": ("export",),
    "pair": ("hub", "hub/sft", "hub/dpo", "audit"),
}
OWN = (
    "question_vectors",
    "clustered",
    "clusters",
    "selection",
)  # read of the run itself, wherever its samples come from
DRAWN = {"curate": ("clusters.svg",)}  # job -> what it draws
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
    first = run.manifest(job)
    gone = set(first.tables if first else ())
    for later in READS if job in READS else ():
        manifest = run.manifest(later)
        if later != job and _reads(later, manifest) & gone:
            gone |= set(manifest.tables if manifest else ())
            _remove_job(later, run)


def _reads(job: str, manifest: Manifest | None) -> set[str]:
    """Tables of its run that a job has read; all that it may, where it has not finished."""
    tables = set(READS[job])
    if manifest is None:
        return tables
    if job == "pair":  # of several runs
        read = [table for table in READS[job] if manifest.config.get(f"{table}_run") == manifest.run]
        return {*read, *(["positives"] if manifest.config.get("sft_run") == manifest.run else [])}
    if manifest.config.get("from_run") not in (None, manifest.run):
        return tables & set(OWN)
    if (table := manifest.config.get("from_table")) is not None:
        tables = tables - set(SAMPLE_TABLES) | {table}
    return tables


def _remove_job(job: str, run: Run, keep: str = "") -> None:
    """The manifest goes first, so that no reader sees a table half gone.

    Args:
        keep: a fingerprint whose units stay.
    """
    for path in (run.path(CARDS, f"{job}.json"), *map(run.path, DRAWN.get(job, ()))):
        run.storage.delete(path)
    for folder in EXPORTS.get(job, ()):
        for name in run.storage.list_names(run.path(folder)):
            run.storage.delete(run.path(folder, name))
    if manifest := run.manifest(job):
        run.storage.delete(run.path("manifests", f"{job}.json"))
        for part in [part for parts in manifest.tables.values() for part in parts]:
            run.storage.delete(run.path(part["path"]))
        if manifest.sums:
            run.storage.delete(run.path(manifest.sums))
    for name in run.storage.list_folders(run.path("_units", job)):
        if name != keep:
            UnitStore(run.storage, run.root, job, name).clear(keep_receipts=False)
