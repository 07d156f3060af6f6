"""Queries with passages out of topics, relevance judgements (qrels) and a corpus, with or without a user's own retrieval run.

A collection is a folder, `data.path` itself or one below it:

```
topics/dev.non_relevant.tsv ...  qrels/dev.non_relevant.tsv ...  corpus.jsonl      NoMIRACL as published: a folder a language
topics.tsv  qrels.tsv  corpus.jsonl  run.trec                                     one's own; the run is one in TREC's form
```

The passages of a query are those judged for it, in the file's order, or the first of the run. Its subset is in the file's name,
or follows from the judgements: `relevant` where one of the passages is judged to answer it, `non_relevant` where all are judged
not to. A unit is one subset of a collection; which queries it takes is drawn by lot from their ids.
"""

import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from trust.errors import ConfigError, PreflightError, RowError
from trust.metrics.nomiracl import SUBSETS
from trust.prepare.config import DataConfig, PoolConfig
from trust.prepare.nomiracl import language_named, place
from trust.prepare.plan import Plan
from trust.prepare.pool_files import read_corpus, read_qrels, read_run, read_topics
from trust.prepare.read import RawRow
from trust.storage import FileInfo, Storage, absolute
from trust.units import Unit

FORMAT = "pool"
UNJUDGED = "unjudged"

_TABLES = (".tsv", ".tsv.gz", ".txt", ".trec")
_CORPUS = (".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz")
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Pool:
    """One collection, or one subset of it where the file's name says which.

    Attributes:
        split: dev, test or train; empty where the name does not say.
        subset: null where it follows from the judgements.
        run: a file with a retrieval run; null where the judged passages are taken.
    """

    language: str
    split: str
    subset: str | None
    topics: str
    qrels: str
    run: str | None
    corpus: list[str]


@dataclass(frozen=True)
class Counted:
    """A pool with its number of queries a subset, those left out for want of passages, and a hash over its files."""

    pool: Pool
    queries: dict[str, int]
    without: int
    fingerprint: str
    size: int


@dataclass(frozen=True)
class _Query:
    lot: str
    id: str
    text: str
    passages: list[str]
    relevant: list[str] = field(default_factory=list)


def find_pools(data: DataConfig, storage: Storage) -> list[Pool]:
    """The collections of `data.path`; none where it holds no topics.

    Raises:
        ConfigError: several splits, and `data.split` names none of them; a language that nothing says.
        PreflightError: topics without judgements or corpus.
    """
    files = {file.path: file for file in storage.list_files(absolute(data.path or ""))}
    topics = [path for path in files if _called(path, "topics", _TABLES)]
    pools = [_pool(path, files, data) for path in topics]
    splits = sorted({pool.split for pool in pools})
    if data.split is None and len(splits) > 1:
        raise ConfigError(f"data.path={data.path} holds several splits: add data.split= ({', '.join(splits)})")
    if pools and data.split is not None and data.split not in splits:
        raise ConfigError(f"data.split={data.split}: {data.path} holds {', '.join(splits) or 'no splits'}")
    return [pool for pool in pools if data.split in (None, pool.split)]


def count(pool: Pool, options: dict[str, Any], storage: Storage) -> Counted:
    """How many queries the pool has a subset. Reads all its files but the corpus, of which only head and tail."""
    chosen, without = _queries(pool, PoolConfig(**options), storage)
    digest, size = hashlib.sha256(), 0
    for path in filter(None, (pool.topics, pool.qrels, pool.run, *pool.corpus)):
        length = storage.list_files(path)[0].size
        with storage.open_input(path) as source:
            if path in pool.corpus and length > 2 * _BLOCK:
                content = source.read(_BLOCK)
                source.seek(length - _BLOCK)
                content += source.read(_BLOCK)
            else:
                content = source.read()
        digest.update(f"{length}:".encode() + content)
        size += length
    return Counted(pool, {name: len(found) for name, found in chosen.items()}, without, digest.hexdigest(), size)


def plan_pools(data: DataConfig, found: Iterable[Counted]) -> Plan:
    """A unit a subset of a pool, with as many queries as `data.pool` lets it have.

    Raises:
        PreflightError: no query has passages.
    """
    listed = list(found)
    sizes: dict[tuple[str, str], dict[str, int]] = {}
    for item in listed:
        both = sizes.setdefault((item.pool.language, item.pool.split), {})
        for subset, number in item.queries.items():
            both[subset] = both.get(subset, 0) + number
    units, inputs, notes = [], [], []
    for item in listed:
        pool = item.pool
        inputs.append({"path": pool.topics, "format": FORMAT, "fingerprint": item.fingerprint, "bytes": item.size})
        if item.without:
            notes.append(f"{pool.topics}: {item.without} queries have no passages and are left out")
        wanted = _shares(sizes[pool.language, pool.split], data.pool)
        for subset, number in sorted(item.queries.items()):
            rows = number if subset == UNJUDGED else min(number, wanted[subset])
            if rows:
                name = "-".join(filter(None, (pool.language, pool.split, subset, item.fingerprint[:12])))
                source = {"format": FORMAT, "pool": asdict(pool), "subset": subset, "rows": rows}
                units.append(Unit(name.replace(".", "_"), source, rows))
    rows = sum(unit.rows for unit in units)
    if not rows:
        raise PreflightError(f"data.path={data.path}: no query of {len(listed)} file(s) of topics has passages")
    whole = hashlib.sha256("\n".join(sorted(item.fingerprint for item in listed)).encode()).hexdigest()
    return Plan(units, rows, inputs, whole, notes)


def read_pool(source: dict[str, Any], options: PoolConfig, storage: Storage) -> Iterator[RawRow]:
    """The rows of a unit, in the form that `trust.prepare.nomiracl` reads.

    A query whose passages are not all in the corpus, or not all judged, comes as its error.
    """
    pool, subset = Pool(**source["pool"]), source["subset"]
    chosen = sorted(_queries(pool, options, storage)[0][subset], key=lambda query: query.lot)[: source["rows"]]
    wanted = {docid for query in chosen for docid in query.passages}
    corpus = read_corpus(pool.corpus, wanted, storage) if subset != UNJUDGED else {}
    for index, query in enumerate(chosen):
        value: dict[str, Any] | RowError
        missing = next((docid for docid in query.passages if docid not in corpus), None)
        if subset == UNJUDGED:
            value = RowError(
                "unjudged",
                f"query {query.id}: not all of its passages are judged, and none that is answers it; judge them, or set "
                "data.pool.unjudged=non_relevant",
                "qrels",
            )
        elif missing is not None:
            value = RowError("missing_passage", f"query {query.id}: passage {missing} is not in the corpus", "corpus")
        else:
            value = {
                "query_id": query.id,
                "query": query.text,
                "language": pool.language,
                "subset": subset,
                "passages": [{"docid": docid, **corpus[docid]} for docid in query.passages],
                "relevant_passages": query.relevant,
            } | ({"split": pool.split} if pool.split else {})
        yield RawRow(pool.topics, None, index, value)


def _queries(pool: Pool, options: PoolConfig, storage: Storage) -> tuple[dict[str, list[_Query]], int]:
    """Subset -> its queries; and how many have no passages."""
    topics, qrels = read_topics(pool.topics, storage), read_qrels(pool.qrels, storage)
    run = read_run(pool.run, options.passages, storage) if pool.run else None
    found: dict[str, list[_Query]] = {}
    without = 0
    for query, text in topics.items():
        judged = qrels.get(query, {})
        passages = list(judged) if run is None else run.get(query, [])
        if not passages:
            without += 1
            continue
        relevant = [docid for docid in passages if judged.get(docid, 0) > 0]
        lot = hashlib.sha256(f"{options.seed}:{pool.language}:{query}".encode()).hexdigest()
        subset = pool.subset or _subset(passages, relevant, judged, options)
        found.setdefault(subset, []).append(_Query(lot, query, text, passages, relevant))
    return found, without


def _subset(passages: list[str], relevant: list[str], judged: dict[str, int], options: PoolConfig) -> str:
    if relevant:
        return "relevant"
    unknown = any(docid not in judged for docid in passages)
    return UNJUDGED if unknown and options.unjudged == "failed" else "non_relevant"


def _shares(sizes: dict[str, int], options: PoolConfig) -> dict[str, int]:
    """How many queries of each subset a language may have, by share and cap."""
    wanted = {subset: sizes.get(subset, 0) for subset in SUBSETS}
    share = options.non_relevant_share
    if share in (0, 1):
        wanted["non_relevant" if share == 0 else "relevant"] = 0
    elif share is not None:
        relevant = min(wanted["relevant"], int(wanted["non_relevant"] * (1 - share) / share))
        wanted = {
            "relevant": relevant,
            "non_relevant": min(wanted["non_relevant"], int(relevant * share / (1 - share))),
        }
    if options.cap is not None:
        wanted = {subset: min(number, options.cap) for subset, number in wanted.items()}
    return wanted


def _pool(topics: str, files: dict[str, FileInfo], data: DataConfig) -> Pool:
    folder, name = posixpath.split(topics)
    inside = posixpath.basename(folder) == "topics"
    root = posixpath.dirname(folder) if inside else folder
    qrels = posixpath.join(root, "qrels", name.replace("topics", "qrels", 1)) if inside else ""
    if not inside:
        qrels = next((path for path in files if _in(path, root) and _called(path, "qrels", _TABLES)), "")
    if qrels not in files:
        raise PreflightError(
            f"{topics}: there are no judgements beside it ({qrels or posixpath.join(root, 'qrels.tsv')})"
        )
    corpus = sorted(path for path in files if _below(path, root) and _called(path, "corpus", _CORPUS))
    if not corpus:
        raise PreflightError(f"{topics}: there is no corpus beside it ({posixpath.join(root, 'corpus.jsonl')})")
    run = next((path for path in files if _in(path, root) and _called(path, "run", _TABLES)), None)
    language = data.language or language_named(root)
    if not language:
        raise ConfigError(f"{topics}: its folder is not called by a language; set data.language=")
    split = next((part for part in name.split(".") if part in ("dev", "test", "train")), "")
    return Pool(language, split, place(name)[1] if run is None else None, topics, qrels, run, corpus)


def _called(path: str, kind: str, endings: tuple[str, ...]) -> bool:
    """Whether a file is one of this kind: in a folder of that name, or beginning with it."""
    folder, name = posixpath.split(path)
    return name.endswith(endings) and (posixpath.basename(folder) == kind or name.startswith(f"{kind}."))


def _in(path: str, root: str) -> bool:
    return posixpath.dirname(path) == root


def _below(path: str, root: str) -> bool:
    return posixpath.dirname(path) in (root, posixpath.join(root, "corpus"))
