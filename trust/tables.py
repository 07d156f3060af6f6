"""The Arrow schema of every table that crosses a job boundary.

A table's columns are a contract: other jobs and people's notebooks rely on them. `SCHEMA_VERSION` is part of every
fingerprint, so that a change here never mixes with older rows.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA_VERSION = 2

DOC = pa.struct(
    [
        ("doc_id", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("score", pa.float64()),
        ("answers_found", pa.list_(pa.int8())),
        ("rec_score", pa.float64()),
    ]
)

_SAMPLE = [
    pa.field("sample_id", pa.string(), nullable=False),
    pa.field("parent_id", pa.string()),
    pa.field("dataset", pa.string(), nullable=False),
    pa.field("language", pa.string(), nullable=False),
    pa.field("task", pa.string(), nullable=False),
    pa.field("question", pa.string(), nullable=False),
    pa.field("answers", pa.list_(pa.list_(pa.string()))),
    pa.field("docs", pa.list_(DOC)),
    pa.field("references", pa.list_(pa.string())),
    pa.field("context", pa.map_(pa.string(), pa.string())),
    pa.field("meta", pa.map_(pa.string(), pa.string())),
]

_OUTCOME = [
    pa.field("status", pa.string(), nullable=False),
    pa.field("reason", pa.string()),
    pa.field("detail", pa.string()),
]

_RESPONSE_KEY = [
    pa.field("sample_id", pa.string(), nullable=False),
    pa.field("model", pa.string(), nullable=False),
    pa.field("prompt", pa.string(), nullable=False),
    pa.field("draw", pa.int32(), nullable=False),
]

_RESPONSES = [
    *_SAMPLE,
    *_RESPONSE_KEY[1:],
    pa.field("output", pa.string()),
    pa.field("finish_reason", pa.string()),
    pa.field("prompt_tokens", pa.int32()),
    pa.field("output_tokens", pa.int32()),
    *_OUTCOME,
]

_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))

_PAIR_KEY = [
    pa.field("pair_id", pa.string(), nullable=False),
    pa.field("sample_id", pa.string(), nullable=False),
    pa.field("parent_id", pa.string()),
    pa.field("dataset", pa.string(), nullable=False),
    pa.field("language", pa.string(), nullable=False),
    pa.field("task", pa.string(), nullable=False),
    pa.field("split", pa.string(), nullable=False),
]

_VECTOR_KEY = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("part", pa.int32()),
    pa.field("row", pa.int64()),
]

ASKED = pa.struct([("hash", pa.string()), ("role", pa.string()), ("sentence", pa.int32()), ("doc", pa.int32())])

SAMPLE_TABLES = {  # tables that hold samples -> the job that makes them
    "samples": "jobs.prepare",
    "seeds": "jobs.curate",
    "oracle": "jobs.label",
    "variants": "jobs.recombine",
}

RATES_KEY = ("dataset", "prompt", "language", "subset", "model")
RATES_COUNTS = ("n", "n_answer_present", "n_i_dont_know", "n_invalid", "n_failed", "n_missing")
RATES = (
    *(
        f"{rate}_{of}"
        for rate in ("hallucination_rate", "error_rate")
        for of in ("of_valid", "of_all", "invalid_wrong")
    ),
    *("accuracy", "invalid_rate"),
)

SCHEMAS: dict[str, pa.Schema] = {
    "samples": pa.schema(_SAMPLE),
    "seeds": pa.schema(
        [
            *_SAMPLE,
            pa.field("cluster", pa.int32()),
            pa.field("topic", pa.string()),
            pa.field("demand", pa.float64()),
        ]
    ),
    "oracle": pa.schema(_SAMPLE),
    "variants": pa.schema(
        [
            *_SAMPLE,
            pa.field("kind", pa.string(), nullable=False),
            pa.field("pattern", pa.list_(pa.int8())),
        ]
    ),
    "responses": pa.schema(_RESPONSES),
    "positives": pa.schema(_RESPONSES),
    "errors": pa.schema(
        [
            *_RESPONSES,
            pa.field("answerable", pa.bool_()),
            *(pa.field(f"e_{number}", pa.float64()) for number in range(1, 6)),
            pa.field("severity", pa.float64()),
            pa.field("primary_type", pa.string()),
        ]
    ),
    "sft": pa.schema(
        [
            *_PAIR_KEY,
            pa.field("prompt", _MESSAGES, nullable=False),
            pa.field("completion", _MESSAGES, nullable=False),
        ]
    ),
    "pairs": pa.schema(
        [
            *_PAIR_KEY,
            pa.field("prompt", _MESSAGES, nullable=False),
            pa.field("chosen", _MESSAGES, nullable=False),
            pa.field("rejected", _MESSAGES, nullable=False),
            pa.field("error_types", pa.list_(pa.string())),
            pa.field("primary_type", pa.string()),
            pa.field("severity", pa.float64()),
        ]
    ),
    "question_vectors": pa.schema(
        [
            pa.field("evaluation", pa.string(), nullable=False),
            pa.field("sample_id", pa.string(), nullable=False),
            pa.field("key", pa.string()),
            pa.field("stratum", pa.string()),
            pa.field("vector", pa.list_(pa.float32())),
            *_OUTCOME,
        ]
    ),
    "clustered": pa.schema(
        [
            pa.field("sample_id", pa.string(), nullable=False),
            pa.field("stratum", pa.string()),
            pa.field("cluster", pa.int32()),
            pa.field("x", pa.float64()),
            pa.field("y", pa.float64()),
            *_OUTCOME,
        ]
    ),
    "clusters": pa.schema(
        [
            pa.field("cluster", pa.int32(), nullable=False),
            pa.field("rows", pa.int64(), nullable=False),
            pa.field("topic", pa.string()),
            pa.field("demand", pa.float64()),
            *_OUTCOME,
        ]
    ),
    "selection": pa.schema(
        [
            pa.field("sample_id", pa.string(), nullable=False),
            pa.field("cluster", pa.int32()),
            pa.field("topic", pa.string()),
            pa.field("demand", pa.float64()),
            *_OUTCOME,
        ]
    ),
    "scores": pa.schema(
        [
            *_RESPONSE_KEY,
            pa.field("metric", pa.string(), nullable=False),
            pa.field("dataset", pa.string(), nullable=False),
            pa.field("language", pa.string(), nullable=False),
            pa.field("task", pa.string(), nullable=False),
            pa.field("slices", pa.map_(pa.string(), pa.string())),
            pa.field("values", pa.map_(pa.string(), pa.float64())),
            pa.field("terms", pa.map_(pa.string(), pa.float64())),
            pa.field("trace", pa.string()),
            pa.field("asks", pa.list_(ASKED)),
            pa.field("outside_judge_languages", pa.bool_()),
            *_OUTCOME,
        ]
    ),
    "verdicts": pa.schema(
        [
            pa.field("judge", pa.string(), nullable=False),
            pa.field("hash", pa.string(), nullable=False),
            pa.field("sample_id", pa.string(), nullable=False),
            pa.field("ask", pa.string(), nullable=False),
            pa.field("inputs", pa.map_(pa.string(), pa.string())),
            pa.field("answer", pa.string()),
            pa.field("score", pa.float64()),
            pa.field("raw", pa.string()),
            pa.field("truncated", pa.bool_()),
            *_OUTCOME,
        ]
    ),
    "setup": pa.schema(
        [pa.field("metric", pa.string(), nullable=False), pa.field("value", pa.string(), nullable=False)]
    ),
    "citations": pa.schema(
        [
            *_RESPONSE_KEY,
            pa.field("sentence", pa.int32(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("scores", pa.list_(pa.float64())),
            pa.field("doc", pa.int32()),
        ]
    ),
    "agreement": pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("dimension", "metric", "level", "statistic")),
            *(pa.field(name, pa.float64()) for name in ("value", "low", "high")),
            *(pa.field(name, pa.int64()) for name in ("n", "questions", "skipped", "ties")),
            *_OUTCOME,
        ]
    ),
    "corrected": pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("run", "model", "prompt", "value")),
            *(pa.field(name, pa.int64(), nullable=False) for name in ("rows", "labels")),
            *(pa.field(name, pa.float64()) for name in ("judge", "judge_bias", "lambda")),
            *(pa.field(name, pa.float64()) for name in ("corrected", "corrected_low", "corrected_high")),
            *(pa.field(name, pa.float64()) for name in ("labels_alone", "labels_alone_low", "labels_alone_high")),
            pa.field("wanted_width", pa.float64()),
            *(pa.field(name, pa.int64()) for name in ("labels_needed", "labels_needed_alone")),
            *_OUTCOME,
        ]
    ),
    "rates": pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in RATES_KEY),
            *(pa.field(name, pa.int64()) for name in RATES_COUNTS),
            *(pa.field(f"{rate}{end}", pa.float64()) for rate in RATES for end in ("", "_low", "_high")),
            pa.field("corpus_passages", pa.int64()),
            pa.field("corpus_passages_verified", pa.bool_()),
            pa.field("withheld", pa.string()),
        ]
    ),
    "corpus": pa.schema(
        [
            pa.field("doc_id", pa.string(), nullable=False),
            pa.field("title", pa.string(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
        ]
    ),
    "postings": pa.schema(
        [
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("term", pa.string(), nullable=False),
            pa.field("df", pa.int32(), nullable=False),
            pa.field("docs", pa.list_(pa.int32()), nullable=False),
            pa.field("counts", pa.list_(pa.int32()), nullable=False),
        ]
    ),
    "frequencies": pa.schema(
        [
            pa.field("term", pa.string(), nullable=False),
            pa.field("shards", pa.string(), nullable=False),
            pa.field("df", pa.int64(), nullable=False),
        ]
    ),
    "embeddings": pa.schema(
        [
            *_VECTOR_KEY,
            pa.field("vector", pa.list_(pa.float32()), nullable=False),
        ]
    ),
    "token_embeddings": pa.schema(
        [
            *_VECTOR_KEY,
            pa.field("tokens", pa.int32(), nullable=False),
            pa.field("vectors", pa.list_(pa.float16()), nullable=False),
        ]
    ),
    "hits": pa.schema(
        [
            pa.field("sample_id", pa.string(), nullable=False),
            pa.field("method", pa.string(), nullable=False),
            pa.field("doc_id", pa.string(), nullable=False),
            pa.field("score", pa.float64(), nullable=False),
            pa.field("part", pa.int32(), nullable=False),
            pa.field("row", pa.int64(), nullable=False),
        ]
    ),
    "failed": pa.schema(
        [
            pa.field("job", pa.string(), nullable=False),
            pa.field("row", pa.string(), nullable=False),
            pa.field("file", pa.string()),
            pa.field("line", pa.int64()),
            pa.field("field", pa.string()),
            pa.field("reason", pa.string(), nullable=False),
            pa.field("detail", pa.string()),
        ]
    ),
}

SORT_KEYS: dict[str, list[str]] = {
    **{key: ["sample_id"] for key in SAMPLE_TABLES},
    **{key: ["sample_id", "model", "prompt", "draw"] for key in ("responses", "positives", "errors")},
    **{key: ["pair_id"] for key in ("sft", "pairs")},
    **{key: ["sample_id"] for key in ("clustered", "selection")},
    "question_vectors": ["evaluation", "sample_id"],
    "clusters": ["cluster"],
    "scores": ["sample_id", "model", "prompt", "draw", "metric"],
    "verdicts": ["sample_id", "judge", "hash"],
    "setup": ["metric"],
    "citations": ["sample_id", "model", "prompt", "draw", "sentence"],
    "agreement": ["dimension", "metric", "level", "statistic"],
    "corrected": ["run", "model", "prompt", "value"],
    "rates": list(RATES_KEY),
    "corpus": ["doc_id"],
    "postings": ["shard", "term"],
    "frequencies": ["term", "shards"],
    "embeddings": ["id"],
    "token_embeddings": ["id"],
    "hits": ["sample_id", "method", "doc_id"],
    "failed": ["job", "row"],
}


def to_table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows (dicts; a missing key is null) as the Arrow table `name`, sorted by the table's key.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError: a value does not fit the schema.
        KeyError: a row holds a column that the schema does not have.
    """
    schema = SCHEMAS[name]
    rows = list(rows)
    names = set(schema.names)
    for row in rows:
        if unknown := set(row) - names:
            raise KeyError(f"table {name} has no column {sorted(unknown)}")
    columns = [
        pa.array([_map_items(row.get(field.name), field.type) for row in rows], type=field.type) for field in schema
    ]
    return sort(name, pa.Table.from_arrays(columns, schema=schema))


def sort(name: str, table: pa.Table) -> pa.Table:
    """The table sorted by its key."""
    return table.sort_by([(key, "ascending") for key in SORT_KEYS[name]])


def of_samples(sample_ids: Iterable[str]) -> pc.Expression:
    """A filter for rows of these samples (one or more), by which row groups that hold none of them are not read."""
    ids, wanted = pc.field("sample_id"), sorted(set(sample_ids))
    return (ids >= wanted[0]) & (ids <= wanted[-1]) & ids.isin(wanted)


def row_key(row: Mapping[str, Any], name: str = "responses") -> tuple[Any, ...]:
    """The key of a row of the table `name`, also from a row of a wider one."""
    return tuple(row[column] for column in SORT_KEYS[name])


def unrepeated(name: str, table: pa.Table) -> pa.Table:
    """The sorted table without rows that have the key of the row before."""
    new = pa.array([True] * min(1, table.num_rows), pa.bool_())
    before, after = table.slice(0, max(0, table.num_rows - 1)), table.slice(1)
    differs = [pc.not_equal(before.column(key), after.column(key)) for key in SORT_KEYS[name]]
    return table.filter(pa.chunked_array([new, *functools.reduce(pc.or_, differs).chunks]))


def to_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The table's rows as dicts, with map columns as dicts."""
    maps = [field.name for field in table.schema if pa.types.is_map(field.type)]
    rows = table.to_pylist()
    for row in rows:
        for name in maps:
            row[name] = dict(row[name] or ())
    return rows


def _map_items(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_map(kind) and isinstance(value, Mapping):
        return sorted(value.items())
    return value
