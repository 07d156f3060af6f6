"""The files of a retrieval collection: topics, judgements and runs in TREC's forms, and the corpus, read as far as wanted."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from trust.errors import PreflightError
from trust.storage import Storage

_IDS = ("docid", "doc_id", "_id", "id", "pid")


def read_topics(path: str, storage: Storage) -> dict[str, str]:
    """Query id -> query; a line each, parted by a tab.

    Raises:
        PreflightError: a line is not of that form.
    """
    topics = {}
    for number, line in _lines(path, storage):
        query, tab, text = line.partition("\t")
        if not tab or not query.strip() or not text.strip():
            raise PreflightError(f"{path}, line {number}: expected `query id<TAB>query`, got {line[:80]!r}")
        topics[query.strip()] = text.strip()
    return topics


def read_qrels(path: str, storage: Storage) -> dict[str, dict[str, int]]:
    """Query id -> passage id -> relevance, in the file's order; lines of `query id, 0, passage id, relevance`.

    Raises:
        PreflightError: a line is not of that form.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, line in _lines(path, storage):
        parts = line.split()
        if len(parts) != 4 or not parts[3].lstrip("-").isdecimal():
            raise PreflightError(
                f"{path}, line {number}: expected `query id, 0, passage id, relevance`, got {line[:80]!r}"
            )
        judged.setdefault(parts[0], {})[parts[2]] = int(parts[3])
    return judged


def read_run(path: str, passages: int, storage: Storage) -> dict[str, list[str]]:
    """Query id -> its first passages by score; lines of `query id, Q0, passage id, rank, score, tag`.

    Raises:
        PreflightError: a line is not of that form.
    """
    scored: dict[str, list[tuple[float, int, str]]] = {}
    for number, line in _lines(path, storage):
        parts = line.split()
        try:
            query, _, docid, rank, score = parts[:5]
            scored.setdefault(query, []).append((-float(score), int(rank), docid))
        except ValueError as error:
            raise PreflightError(
                f"{path}, line {number}: expected `query id, Q0, passage id, rank, score, tag`, got {line[:80]!r}"
            ) from error
        if len(scored[query]) > 16 * passages:
            scored[query] = sorted(scored[query])[:passages]
    return {query: [docid for _, _, docid in sorted(found)[:passages]] for query, found in scored.items()}


def read_corpus(paths: Sequence[str], wanted: set[str], storage: Storage) -> dict[str, dict[str, Any]]:
    """Passage id -> `title` and `text` of the passages that are wanted; one pass over the files, JSON Lines or TSV with a header.

    Raises:
        PreflightError: a file is in neither form.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for docid, passage in _tsv(path, storage) if ".tsv" in path else _jsonl(path, storage):
            if docid in wanted:
                found.setdefault(docid, passage)
    return found


def _jsonl(path: str, storage: Storage) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in _lines(path, storage):
        try:
            row = json.loads(line)
            docid = next(row[name] for name in _IDS if name in row)
            yield str(docid), {"title": row.get("title") or "", "text": row["text"]}
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise PreflightError(
                f"{path}, line {number}: no passage with an id ({', '.join(_IDS)}) and text"
            ) from error


def _tsv(path: str, storage: Storage) -> Iterator[tuple[str, dict[str, Any]]]:
    with storage.open_stream(path) as stream:
        reader = csv.DictReader(
            io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline=""), delimiter="\t"
        )
        names = reader.fieldnames or []
        key = next((name for name in _IDS if name in names), None)
        if key is None or "text" not in names:
            raise PreflightError(f"{path}: its header {names} names no id ({', '.join(_IDS)}) and text")
        for row in reader:
            yield str(row[key]), {"title": row.get("title") or "", "text": row["text"] or ""}


def _lines(path: str, storage: Storage) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers from 1."""
    with storage.open_stream(path) as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline="\n")
        try:
            for number, line in enumerate(text, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise PreflightError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from error
