"""A dry run of `jobs.retrieve`."""

from trust.align.rows import source
from trust.dry_run import show
from trust.dry_run.evaluate import show_judge
from trust.retrieve.bm25_job import index_run
from trust.retrieve.config import RetrieveConfig
from trust.retrieve.corpus_job import find_corpus
from trust.retrieve.encode_job import backend, vector_run
from trust.retrieve.job import check
from trust.retrieve.steps import Search
from trust.runs import Run


def show_retrieve(config: RetrieveConfig) -> None:
    """Prints what `jobs.retrieve` would do."""
    run = Run.of(config)
    show.look(run)
    check(config)
    parts, inputs = source(config)
    corpus, identity = find_corpus(config)
    search = Search(config, run, corpus, parts, inputs)
    show.head("retrieve", run)
    show.line("questions", f"{sum(part['rows'] for part in parts):,}, of run {config.from_run or config.run}")
    size = sum(size for _, size, _ in identity["files"])
    read = corpus.manifest("corpus")
    state = f"{read.counts.get('ok', 0):,} passages, read already" if read else "not read yet"
    show.line("corpus", f"{len(identity['files']):,} files, {size:,} bytes; {state} ({corpus.root})")
    for method in config.retriever.methods:
        index, job = (index_run(search), "index") if method == "bm25" else (vector_run(search, method), "encode")
        show.line(method, f"{'indexed already' if index.manifest(job) else 'not indexed yet'} ({index.root})")
        if method == "dense":
            show_judge("embed", backend(config, method), run)
        elif method == "late":
            show.line("model", f"{config.retriever.late.model}; {show.where(config.retriever.late.model)}")
    show.actors(config.cluster, None, 0, all_cpus=config.retriever.methods != ["bm25"])
    show.tables(run, "samples", "hits")
