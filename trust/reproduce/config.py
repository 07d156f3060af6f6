"""What `jobs.reproduce` is told, and the runs that follow from it."""

from dataclasses import dataclass, field, fields
from typing import Any

from trust.ask import engines, judges
from trust.config import AskingJobConfig, nearest, plain
from trust.errors import ConfigError
from trust.evaluate import EvaluateConfig
from trust.metrics.trust_score import TrustScoreConfig
from trust.models import ModelConfig, is_hub_id
from trust.prepare.config import DataConfig
from trust.prepare.job import PrepareConfig
from trust.prompts import PromptConfig
from trust.reproduce import published
from trust.reproduce.published import Recipe, Row, Table
from trust.respond import RespondConfig, SamplingConfig

DOCS = 5  # that the published prompts show, and that what is answerable rests on


@dataclass(kw_only=True)
class ReproduceConfig(AskingJobConfig):
    """`jobs.reproduce`.

    Attributes:
        table: a file of trust/reproduce/tables.
        rows: rows of it, by name or pattern (`*_icl`); empty is all.
        datasets: data sets of it, likewise.
        data: data set -> its file in a published form.
        models: model, or row with a checkpoint of its own -> folder, s3:// address, hub id (`ID@REVISION`), or with
            engine=openai the endpoint's name for it; in place of the public name.
        prompts: data set -> prompt file in the published JSON form, in place of the project's own.
        engine, judge: as in jobs.respond and jobs.evaluate.
        replicates: bootstrap replicates behind every interval.
    """

    table: str
    rows: list[str] = field(default_factory=list)
    datasets: list[str] = field(default_factory=list)
    data: dict[str, str] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    engine: Any = field(metadata={"choices": engines.CHOICES, "by": "backend"})
    judge: judges.JudgeConfig = field(default_factory=judges.JudgeConfig)
    compat: str = "upstream"
    replicates: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.judge.only(["entails"])
        printed = published.table(self.table)
        published.select("rows", self.rows, list(printed.rows))
        published.select("datasets", self.datasets, printed.datasets)
        for option, known in (
            ("data", list(published.datasets())),
            ("prompts", list(published.datasets())),
            ("models", published.model_keys()),
        ):
            for key in getattr(self, option):
                if key not in known:
                    raise ConfigError(
                        f"{option}.{key}: no table has such a {'model' if option == 'models' else 'data set'}"
                        f"{nearest(key, known)} (known: {', '.join(known)})"
                    )

    @property
    def published(self) -> Table:
        """The printed table."""
        return published.table(self.table)

    def prepare(self, dataset: str) -> PrepareConfig:
        """The run `{run}-{dataset}` that reads a data set, once for all rows."""
        known = published.datasets()[dataset]
        data = DataConfig(
            path=self.data.get(dataset, known.path),
            name=dataset,
            task=known.task,
            language=known.language,
            max_docs=DOCS,
        )
        return PrepareConfig(**self._common(f"{self.run}-{dataset}", PrepareConfig), data=data)

    def respond(self, key: str, dataset: str) -> RespondConfig:
        """The run `{run}-{row}-{dataset}`: the row's model answers, as its recipe says."""
        recipe, known = self.recipe(self.published.rows[key]), published.datasets()[dataset]
        model = self.model(key)
        if model is None:
            raise ConfigError(f"models.{self.model_key(key)} is not set: add models.{self.model_key(key)}=FOLDER")
        file = self.prompts.get(dataset, f"package://trust/prompt_files/{known.prompt}.json")
        return RespondConfig(
            **self._common(self.name(key, dataset), RespondConfig),
            model=model,
            engine=self.engine,
            prompt=PromptConfig(name=dataset, file=file, refusal=True, shots=recipe.shots, docs=DOCS),
            sampling=SamplingConfig(temperature=recipe.temperature, top_p=0.95, max_tokens=recipe.max_tokens),
            from_run=f"{self.run}-{dataset}",
        )

    def evaluate(self, key: str, dataset: str) -> EvaluateConfig:
        """The evaluation of these answers, in the same run; as `jobs.evaluate run=…` with the same judge and mode."""
        return EvaluateConfig(
            **self._common(self.name(key, dataset), EvaluateConfig),
            judge=self.judge,
            metrics={"trust_score": plain(TrustScoreConfig())},
            replicates=self.replicates,
        )

    def name(self, key: str, dataset: str) -> str:
        """The run of a row on a data set."""
        return f"{self.run}-{key}-{dataset}"

    def model(self, key: str) -> ModelConfig | None:
        """The model of a row; None where it has no public name and none is given."""
        own = self.model_key(key)
        base = published.models()[self.published.rows[key].model]
        path = self.models.get(own) or (base.path if own == self.published.rows[key].model else None)
        if not path:
            return None
        if self.engine.backend == "openai":
            return ModelConfig(path, name=own) if own in self.models else None
        name, _, revision = path.partition("@")
        path, commit = (name, revision) if revision and is_hub_id(name) else (path, None)
        return ModelConfig(path, name=own, revision=commit, dtype="bfloat16", max_model_len=base.max_model_len)

    def model_key(self, key: str) -> str:
        """What `models.` calls the model of a row."""
        row = self.published.rows[key]
        return key if self.recipe(row).checkpoint else row.model

    def recipe(self, row: Row) -> Recipe:
        return published.recipes()[row.recipe]

    def _common(self, run: str, of: type) -> dict[str, Any]:
        """The options that this job shares with another, for that one's run."""
        shared = {item.name for item in fields(AskingJobConfig)} & {item.name for item in fields(of)}
        return {key: getattr(self, key) for key in shared} | {"run": run}
