"""A dry run of `jobs.agree`."""

from trust.agree.config import AgreeConfig
from trust.agree.corrected import read_labels
from trust.agree.items import metric_names
from trust.agree.job import ORIGIN, PLOT, read
from trust.agree.scored import open_run
from trust.dry_run import show
from trust.runs import Run
from trust.storage import absolute, open_storage


def show_agree(config: AgreeConfig) -> None:
    """Prints what `jobs.agree` would compare, after reading it; no coefficient is computed."""
    storage = open_storage(config.storage.root, config.storage)
    run = Run(storage, config.storage.root, config.run)
    show.look(run)
    rated, notes = read(config, storage) if config.data.path else (None, [])
    labels = read_labels(config, storage) if config.labels else None
    runs = [open_run(name, config).root for name in config.runs]
    show.head("agree", run)
    for note in notes:
        show.line("rated", note)
    if rated:
        dimensions = sorted({name for item in rated.items for name in item.ratings})
        show.line("dimensions", ", ".join(dimensions))
        show.line(
            "metrics", ", ".join(sorted(metric_names(rated.items))) or "none: annotators are compared with each other"
        )
    if labels:
        count = sum(map(len, labels.values.values())) + len(labels.verdicts)
        show.line("labels", f"{absolute(config.labels or '')}: {count:,}, by which means would be corrected")
    for root in runs:
        show.line("scores", f"of {root}")
    show.line("models", "none, and no cluster")
    names = [f"{name}.{ending}" for name in _tables(config) for ending in ("csv", "parquet")]
    show.tables(run, *names, *([PLOT] if rated else []), ORIGIN)


def _tables(config: AgreeConfig) -> list[str]:
    return [name for name, wanted in (("agreement", config.data.path), ("corrected", config.labels)) if wanted]
