"""What `jobs.retrieve` can be told."""

from dataclasses import dataclass, field

from trust.align.rows import SampleSource
from trust.ask.judges import JudgeConfig
from trust.ask.none import NoneConfig
from trust.ask.sentence import SentenceConfig
from trust.config import JobConfig, one_of
from trust.errors import ConfigError
from trust.retrieve.late import LateOptions

METHODS = ("bm25", "dense", "late")
FUSIONS = ("average", "rrf")
SCORINGS = ("lucene", "robertson", "atire")
TABLES = ("samples", "seeds")
COLUMNS = ("id", "title", "text")


@dataclass
class CorpusConfig:
    """The corpus that is searched.

    Attributes:
        path: a file, a folder or a glob, local or s3://: Parquet, TSV or CSV with a header, JSON Lines, Arrow, plain or .gz.
        columns: `id`, `title`, `text` -> what the files call them; what is not named is looked for under the usual names
            (trust.retrieve.corpus.NAMES).
    """

    path: str
    columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.path.strip():
            raise ConfigError("corpus.path is empty: give a file, a folder or a glob, local or s3://")
        for name, path in self.columns.items():
            one_of("corpus.columns", name, COLUMNS)
            if not path.strip():
                raise ConfigError(f"corpus.columns.{name} is empty: name the column, or leave {name} out")


@dataclass
class Bm25Options:
    """BM25 (Robertson and Zaragoza 2009; the variants as Kamphuis et al., ECIR 2020, name them).

    Attributes:
        k1, b: how soon a repeated word counts no more, and how much long passages are held back.
        scoring: the variant.
        language: of the corpus (BCP 47): its stop words are left out and its words stemmed, where bm25s has stop words for
            it and Snowball a stemmer; null does neither.
        shard_passages: passages of an index shard at most; bounds memory and changes no score.
    """

    k1: float = 0.9
    b: float = 0.4
    scoring: str = "lucene"
    language: str | None = "en"
    shard_passages: int = 250_000

    def __post_init__(self) -> None:
        one_of("retriever.bm25.scoring", self.scoring, SCORINGS)
        if self.k1 < 0:
            raise ConfigError(f"retriever.bm25.k1={self.k1:g}: cannot be negative")
        if not 0 <= self.b <= 1:
            raise ConfigError(f"retriever.bm25.b={self.b:g}: from 0 to 1")
        if self.shard_passages < 1:
            raise ConfigError(f"retriever.bm25.shard_passages={self.shard_passages}: must be at least 1")


@dataclass
class RetrieverConfig:
    """Who retrieves.

    Attributes:
        methods: one of `METHODS`, or several that are fused. `dense` takes the model of `judge.embed`.
        fusion: of several: `average` of scores brought to 0 to 1, or `rrf`, reciprocal ranks; null where there is one.
        depth: documents that each of several finds; null is `k`.
        rrf_k: the constant of reciprocal ranks.
        bm25: how it counts words.
        late: the model of late interaction.
    """

    methods: list[str] = field(default_factory=lambda: ["bm25"])
    fusion: str | None = None
    depth: int | None = None
    rrf_k: float = 60
    bm25: Bm25Options = field(default_factory=Bm25Options)
    late: LateOptions = field(default_factory=LateOptions)

    def __post_init__(self) -> None:
        for method in self.methods:
            one_of("retriever.methods", method, METHODS)
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise ConfigError(f"retriever.methods={self.methods}: name each once, at least one of {', '.join(METHODS)}")
        if self.fusion is not None:
            one_of("retriever.fusion", self.fusion, FUSIONS)
        if (self.fusion is None) != (len(self.methods) == 1):
            raise ConfigError(
                f"retriever.fusion={self.fusion}: one method needs none, several need one of {', '.join(FUSIONS)}"
            )
        if self.depth is not None and (self.depth < 1 or len(self.methods) == 1):
            raise ConfigError(f"retriever.depth={self.depth}: at least 1, and only where several methods are fused")
        if self.rrf_k < 0:
            raise ConfigError(f"retriever.rrf_k={self.rrf_k:g}: cannot be negative")


@dataclass(kw_only=True)
class RetrieveConfig(SampleSource, JobConfig):
    """`jobs.retrieve`.

    Attributes:
        k: documents of a question.
        corpus: where they come from.
        retriever: how they are found.
        judge: of which `embed` gives the vectors of `dense`.
    """

    corpus: CorpusConfig
    k: int = 100
    retriever: RetrieverConfig = field(default_factory=RetrieverConfig)
    judge: JudgeConfig = field(default_factory=lambda: JudgeConfig(entails=NoneConfig(), embed=SentenceConfig()))

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("from_table", self.from_table, TABLES)
        if self.k < 1:
            raise ConfigError(f"k={self.k}: must be at least 1")
        if self.retriever.depth is not None and self.retriever.depth < self.k:
            raise ConfigError(f"retriever.depth={self.retriever.depth}: at least k={self.k}")

    @property
    def depth(self) -> int:
        """Documents that each method finds of a question."""
        return self.retriever.depth or self.k
