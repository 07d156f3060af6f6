"""`jobs.retrieve` from checked config to manifest: corpus, indexes, searches, and last each question with its documents."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from trust import cluster
from trust.align.rows import check_target, source
from trust.execute import execute
from trust.retrieve.bm25_job import search_bm25
from trust.retrieve.config import RetrieveConfig
from trust.retrieve.corpus_job import find_corpus, make_corpus, with_repeats
from trust.retrieve.encode_job import backend
from trust.retrieve.join_job import plan_retrieve
from trust.retrieve.steps import WORK_S, Search
from trust.retrieve.vector_job import search_vectors
from trust.runs import Manifest, Run

METHODS: dict[str, Callable[[Search], dict[str, Manifest]]] = {
    "bm25": search_bm25,
    "dense": partial(search_vectors, method="dense"),
    "late": partial(search_vectors, method="late"),
}


def run_retrieve(config: RetrieveConfig) -> tuple[Manifest, dict[str, Manifest]]:
    """The table `samples` of the run: the rows of `from_run`, each with the `k` documents that fit its question best.

    Returns:
        The manifest, and those of the jobs before it, by their names.

    Raises:
        PreflightError: no samples, no corpus, no model, no room; the run holds samples of another job.
        JobStopped: there is no passage in the corpus.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    check(config)
    cluster.connect(config.cluster)
    corpus, read = make_corpus(config)
    search = Search(config, run, corpus, *source(config))
    steps = {"corpus": read}
    for method in config.retriever.methods:
        steps |= METHODS[method](search)
    searches = {method: steps[f"search_{method}"] for method in config.retriever.methods}
    return execute(plan_retrieve(search, searches), run, config), steps


def check(config: RetrieveConfig) -> None:
    """Whether samples, corpus and models are there; nothing is read or loaded. Raises PreflightError."""
    check_target(config, "retrieve")
    source(config)
    find_corpus(config)
    for method in config.retriever.methods:
        if method != "bm25":
            backend(config, method).preflight(Run.of(config).storage)


def with_steps(manifest: Manifest, steps: dict[str, Manifest]) -> Manifest:
    """The manifest for a card that also tells rows and seconds of work of the jobs before, and what was no passage."""
    told = dict(manifest.totals)
    for name, step in steps.items():
        told |= {f"{name}_rows": float(step.rows), f"{name}_seconds": step.totals.get(WORK_S, 0.0)}
    told |= {
        f"corpus_{key.replace(':', '_')}": value
        for key, value in with_repeats(steps["corpus"]).totals.items()
        if key.startswith("failed:")
    }
    return replace(manifest, totals=told)
