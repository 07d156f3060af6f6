"""The job that chooses seed questions: its config, and the small jobs that it is made of.

Clustering needs all questions at once, so `curate` is the last of five jobs, each with units, receipts and a manifest of its own:
`embed_questions` (units of rows), `cluster_questions` (one unit), `rate_clusters` (units of clusters), `select_seeds` (one unit)
and `curate` (units of rows), which writes the seeds. The two jobs of one unit hold all questions in one worker: their vectors
(rows x width x 4 bytes; UMAP takes a few times as much) and their ids (about 300 bytes a row). Nothing grows in the driver. That
worker takes one CPU, so that its sums do not hang on how many there are; cluster.actor_cpus gives it more.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trust import cluster, cost
from trust.align.clusters import ClusteringOptions
from trust.align.curate import CURATING, RatingOptions
from trust.align.curate_plans import (
    plan_clusters,
    plan_curate,
    plan_embed,
    plan_ratings,
    plan_selection,
)
from trust.align.curate_plot import draw_clusters
from trust.align.rows import SampleSource, check_target, source
from trust.ask import judges
from trust.config import AskingJobConfig
from trust.errors import ConfigError
from trust.execute import execute
from trust.prepare.job import on_cluster
from trust.runs import Manifest, Plan, Run

JOB = "curate"
PLOT = "clusters.svg"


@dataclass(frozen=True)
class NearOptions:
    """From which cosine of their vectors two questions count as the same, -1 to 1; null compares their normalised text alone.

    Attributes:
        repeats: of two questions that are built from.
        evaluation: of one and a question of the sets in `exclude`.
    """

    repeats: float | None = 0.95
    evaluation: float | None = 0.95

    def __post_init__(self) -> None:
        for key in ("repeats", "evaluation"):
            if (value := getattr(self, key)) is not None and not -1 <= value <= 1:
                raise ConfigError(f"near.{key}={value:g}: a cosine from -1 to 1, or null")


@dataclass(frozen=True)
class DrawOptions:
    """Which of the questions that are left become seeds.

    Attributes:
        size: how many; null takes all.
        at_least: demand for knowledge from which a cluster is kept, 1 to 7; null: 4 as in the paper, with compat=upstream 1: the
            released code has no threshold.
        by: strata, of which as many are drawn as is their share: `demand`, `dataset`, `language`, `task`, or a column of one's
            own (`meta`); null: `demand` where clusters are rated, else one stratum.
        seed: of the draw.
    """

    size: int | None = None
    at_least: float | None = None
    by: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ConfigError(f"draw.size={self.size}: must be at least 1, or null for all")
        if self.at_least is not None and not 1 <= self.at_least <= 7:
            raise ConfigError(f"draw.at_least={self.at_least:g}: a demand from 1 to 7, or null")


@dataclass(kw_only=True)
class CurateConfig(SampleSource, AskingJobConfig):
    """`jobs.curate`.

    Each question is counted once: `ok` is a seed; `dropped` are `in_evaluation_set`, `near_evaluation_set`, `repeated_question`,
    `near_repeat`, `noise`, `low_demand`, `rating_unread` (upstream) and `not_drawn`; `failed` are `not_for_building`,
    `rating_failed` and what the embedding model could not do.

    Attributes:
        splits: of rows that say of which split they are (`meta.split`), those that may be built from.
        exclude: evaluation sets whose questions are removed: names of runs, or files (a path or address with a slash or a dot)
            whose rows have a `question`.
        retry_failed: clusters whose rating failed are rated again, and no others.
    """

    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)
    splits: list[str] = field(default_factory=lambda: ["train"])
    exclude: list[str] = field(default_factory=list)
    near: NearOptions = field(default_factory=NearOptions)
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    rating: RatingOptions = field(default_factory=RatingOptions)
    draw: DrawOptions = field(default_factory=DrawOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_source()
        if self.from_table == "seeds":
            raise ConfigError("from_table=seeds: seeds are chosen from samples, not from seeds")
        if self.draw.by == "demand" and not self.clusters:
            raise ConfigError("draw.by=demand: clustering.method=skip rates no demand; name a column, or null")
        if self.draw.at_least is not None and not self.clusters:
            raise ConfigError("draw.at_least: clustering.method=skip rates no demand")
        self.judge = self.judge.only((["embed"] if self.embeds else []) + (["complete"] if self.clusters else []))
        if self.clusters:
            self.judge.complete = replace(self.judge.complete, logprobs=False)  # ratings are read, not weighed

    @property
    def clusters(self) -> bool:
        """Whether questions are clustered, and clusters rated."""
        return self.clustering.method != "skip"

    @property
    def embeds(self) -> bool:
        """Whether anything needs vectors."""
        evaluation = self.near.evaluation is not None and bool(self.exclude)
        return self.clusters or self.near.repeats is not None or evaluation

    @property
    def at_least(self) -> float | None:
        """The demand from which clusters are kept; None where there is none."""
        if not self.clusters:
            return None
        return CURATING[self.compat].at_least if self.draw.at_least is None else self.draw.at_least

    @property
    def stratum(self) -> str | None:
        """The column of the rows that makes strata; None where demand does, or nothing."""
        return None if self.draw.by == "demand" else self.draw.by

    @property
    def options(self) -> dict[str, Any]:
        """What the jobs in front of it and it itself are told, as plain values."""
        names = ("near", "clustering", "rating", "draw")
        return {name: asdict(getattr(self, name)) for name in names}


def run_curate(config: CurateConfig) -> Manifest:
    """Chooses seeds; the tables `seeds` and `failed`, and `clusters` with `clusters.svg` where there are clusters.

    Raises:
        PreflightError: no samples, no model, no room; nothing has been loaded then.
        JobStopped: `cost_limit` was reached before every cluster was rated, or an evaluation set cannot be read.
    """
    run = Run.of(config)
    run.storage.preflight(run.root)
    check(config, run)
    cluster.connect(config.cluster)
    chosen = config.judge.chosen()
    embed = [chosen["embed"]] if config.embeds else []
    vectors = _step(
        plan_embed(config, run, *cluster.actor_resources(embed, config.cluster), spread=_spread(config)), run, config
    )
    found = _step(plan_clusters(config, run, vectors), run, config)
    ratings = None
    if found.totals.get("clusters") or (config.clustering.noise == "keep" and found.totals.get("noise")):
        rater = chosen["complete"]
        plan = plan_ratings(config, run, found, *cluster.actor_resources([rater], config.cluster))
        plan.worker_config["budget"] = cost.share(rater.cost_limit, plan, run, config)
        ratings = _step(plan, run, config, config.retry_failed)
        cost.check(rater.cost_limit, ratings)
    selection = _step(plan_selection(config, run, found, ratings), run, config)
    manifest = execute(plan_curate(config, run, selection), run, config)
    if config.clusters:
        task = (run.storage, [run.path(part["path"]) for part in found.tables.get("clustered", [])], clusters(run))
        (drawn,) = on_cluster(config.cluster, 1, draw_clusters, [task])
        run.storage.write_bytes(run.path(PLOT), drawn.encode())
    return manifest


def _spread(config: CurateConfig) -> Any:
    return lambda function, arguments: on_cluster(config.cluster, 1, function, arguments)


def _step(plan: Plan, run: Run, config: CurateConfig, retry_failed: bool = False) -> Manifest:
    """Executes a job in front of `curate`. `overwrite=true` does not repeat what this very config has left: killed in a later
    step and started again with the same words, a run goes on there."""
    before = run.manifest(plan.job)
    done = before is not None and before.fingerprint == plan.fingerprint
    return execute(plan, run, replace(config, overwrite=config.overwrite and not done), retry_failed)


def check(config: CurateConfig, run: Run) -> None:
    """Whether samples and models are there, and the run may hold the table; nothing is loaded. Raises PreflightError."""
    check_target(config, JOB, "seeds")
    source(config)
    for judge in config.judge.chosen().values():
        judge.preflight(run.storage)


def clusters(run: Run) -> list[dict[str, Any]]:
    """Rows of the table `clusters`, by number: some hundreds at most."""
    rows = [row for part in run.parts("clusters") for row in run.storage.read_table(part["path"]).to_pylist()]
    return sorted(rows, key=lambda row: row["cluster"])
