"""What a user says about a file: where it lies, what it holds, and how its columns are called."""

import posixpath
from dataclasses import dataclass, field

from trust.config import one_of
from trust.errors import ConfigError
from trust.metrics import TASKS
from trust.prepare import rated, releases

KINDS = ("trust", "nomiracl", *rated.KINDS, *releases.KINDS)
OUTPUTS = ("ignore", "require", "split")

ROW_COLUMNS = (
    "id",
    "question",
    "answers",
    "docs",
    "output",
    "references",
    "dataset",
    "language",
    "task",
    "model",
    "prompt",
    "draw",
    "source",
    "history",
    "fact",
)
DOC_COLUMNS = ("doc_id", "doc_title", "doc_text", "doc_score", "answers_found", "rec_score")

_COMPRESSED = (".gz", ".zst")
_FORMATS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow")


@dataclass
class PoolConfig:
    """How queries and their passages are drawn from topics, judgements and a corpus (trust.prepare.pools).

    Attributes:
        cap: queries at most, a language and subset; null takes all. NoMIRACL's own number is 250.
        non_relevant_share: share of a language's queries that no passage answers, 0 to 1; null takes them as they are.
        seed: of the draw.
        passages: of a retrieval run, the first so many are shown.
        unjudged: what becomes of a query some of whose passages are not judged, where none that is answers it: it is a row
            that `failed`, or it counts as `non_relevant`.
    """

    cap: int | None = 250
    non_relevant_share: float | None = None
    seed: int = 42
    passages: int = 10
    unjudged: str = "failed"

    def __post_init__(self) -> None:
        one_of("data.pool.unjudged", self.unjudged, ("failed", "non_relevant"))
        for key in ("cap", "passages"):
            if (value := getattr(self, key)) is not None and value < 1:
                raise ConfigError(f"data.pool.{key}={value}: must be at least 1")
        if self.non_relevant_share is not None and not 0 <= self.non_relevant_share <= 1:
            raise ConfigError(f"data.pool.non_relevant_share={self.non_relevant_share}: a share from 0 to 1")


@dataclass
class DataConfig:
    """A data set as it lies in files.

    Attributes:
        kind: how rows are read; `trust` is the published Trust-Score form with ALCE's forms of gold answers, `nomiracl` the
            forms in which NoMIRACL was published (trust.prepare.nomiracl), `unieval`, `summeval` and `wikieval` those of
            outputs that people have rated (trust.prepare.rated), `asqa`, `qampari`, `eli5` and `expertqa` the question sets
            as their authors released them, to build from (trust.prepare.releases).
        path: a file, a folder or a glob, local or s3://.
        split: of a folder that Hugging Face `datasets` saved with several; null where there is one. Of a release, the split
            that its rows are of: the key in a JSON file that holds several, else what a file's name does not tell.
        name: name of the data set, first part of every sample_id; null takes the file's or folder's name.
        task: how correctness is measured: `em` short answers, `em5` lists, `cm` claims, `none`; a row's own wins.
        language: of the rows (a BCP 47 tag such as `en`); a row's own `language` wins, null means `und`.
        model: whose outputs the file holds; a row's own `model` wins.
        prompt: name of the prompt behind the outputs; a row's own `prompt` wins.
        outputs: what becomes of a row's `output`: `ignore` it, `require` one in each row (table responses), or `split`
            rows with one (responses) from rows without (samples).
        columns: our name -> where the file has it, as a dotted path (`question: input.query`); an empty path says that
            the file has no such column, and one of that name is the user's own. Document columns are looked up in each
            document. In CSV and TSV lists (answers, docs, references) are JSON text in their cell.
        max_docs: keep only the first so many documents of a row; null keeps all.
        pool: how queries are drawn from a collection (kind nomiracl).
    """

    kind: str = "trust"
    path: str | None = None
    split: str | None = None
    name: str | None = None
    task: str | None = None
    language: str | None = None
    model: str = "unknown"
    prompt: str = "unknown"
    outputs: str = "ignore"
    columns: dict[str, str] = field(default_factory=dict)
    max_docs: int | None = None
    pool: PoolConfig = field(default_factory=PoolConfig)

    def __post_init__(self) -> None:
        one_of("data.kind", self.kind, KINDS)
        one_of("data.outputs", self.outputs, OUTPUTS)
        if self.task is not None:
            one_of("data.task", self.task, TASKS)
        for name in self.columns:
            one_of("data.columns", name, (*ROW_COLUMNS, *DOC_COLUMNS))
        for ours in (ROW_COLUMNS, DOC_COLUMNS):
            _each_its_own({name: path for name, path in self.columns.items() if name in ours and path})
        if self.max_docs is not None and self.max_docs < 1:
            raise ConfigError(f"data.max_docs={self.max_docs}: must be at least 1, or null for all")
        if self.kind != "nomiracl" and self.pool != PoolConfig():
            raise ConfigError("data.pool does something only with data.kind=nomiracl")
        for key in ("name", "language", "model", "prompt"):
            value = getattr(self, key)
            if value is not None and not value.strip():
                raise ConfigError(f"data.{key} is empty")


def _each_its_own(columns: dict[str, str]) -> None:
    for name, path in columns.items():
        first = next(other for other in columns if columns[other] == path)
        if first != name:
            raise ConfigError(
                f"data.columns: {first} and {name} are both {path}; a column of the file has one meaning, so copy it under "
                "another name where it has two"
            )


def dataset_name(data: DataConfig) -> str:
    """The data set's name: `data.name`, else the name of the file or folder at `data.path`.

    It never depends on how the rows are spread over files, since it is a part of their ids: a glob is named after the
    folder above its first wildcard.
    """
    if data.name:
        return data.name
    parts = (data.path or "").rstrip("/").split("/")
    wild = next((i for i, part in enumerate(parts) if any(mark in part for mark in "*?[")), None)
    name = posixpath.basename("/".join(parts[:wild]))
    if wild is None:
        for suffixes in (_COMPRESSED, _FORMATS):
            name = next((name[: -len(end)] for end in suffixes if name.endswith(end) and name != end), name)
    return name or "data"
