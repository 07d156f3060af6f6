"""The tables `sft` and `pairs` as a folder that Hugging Face's `load_dataset` reads: Parquet shards and a card."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow.compute as pc
import yaml

from trust.align.negatives import TYPES
from trust.align.pair import SIDES
from trust.align.pair_job import PairConfig
from trust.config import ClusterConfig
from trust.prepare.job import on_cluster
from trust.runs import Manifest, Run
from trust.storage import Storage, join

FOLDER = "hub"
CONFIGS = {"sft": "sft", "pairs": "dpo"}  # table -> config of the data set

_CARD = "README.md"
_HELD = {
    "sft": "prompt and completion, for supervised fine-tuning",
    "pairs": "prompt, chosen and rejected, for preference training; types and severity of the rejected answer",
}


def export_hub(manifest: Manifest, run: Run, config: PairConfig, lengths: Mapping[str, Mapping[str, float]]) -> str:
    """Writes `{run}/hub/{sft,dpo}/{train,test}-00000-of-0000N.parquet`, a task a shard, last the card; with this card there
    already, nothing. The shards of a table have one schema; the side is told by the file.

    Args:
        lengths: as trust.align.audit.write_audit gives them.

    Returns:
        The folder.
    """
    folder, storage = run.path(FOLDER), run.storage
    text = card(manifest, config, lengths).encode()
    if storage.exists(join(folder, _CARD)):
        if storage.read_bytes(join(folder, _CARD)) == text:
            return folder
        storage.delete(join(folder, _CARD))
    for table, name in CONFIGS.items():
        parts = [run.path(part["path"]) for part in manifest.tables.get(table, [])]
        made = _write_shards(storage, parts, join(folder, name), config.cluster)
        for left in set(storage.list_names(join(folder, name))) - made:
            storage.delete(join(folder, name, left))
    storage.write_bytes(join(folder, _CARD), text)
    return folder


def _write_shards(storage: Storage, parts: list[str], folder: str, cluster: ClusterConfig) -> set[str]:
    """Writes a shard for each part and side that has rows; returns their names."""
    cpus = cluster.actor_cpus or 1
    held = list(on_cluster(cluster, cpus, sides_of, ((storage, part) for part in parts)))
    tasks = []
    for side in SIDES:
        having = [part for part, sides in zip(parts, held, strict=True) if side in sides]
        names = [f"{side}-{index:05d}-of-{len(having):05d}.parquet" for index in range(len(having))]
        tasks += [(storage, part, side, join(folder, name)) for part, name in zip(having, names, strict=True)]
    return set(on_cluster(cluster, cpus, write_shard, tasks))


def sides_of(storage: Storage, part: str) -> set[str]:
    """The sides of which a part holds rows."""
    return set(storage.read_table(part, ["split"])["split"].unique().to_pylist())


def write_shard(storage: Storage, part: str, side: str, target: str) -> str:
    """Writes the rows of one side of a part; returns the name of the file."""
    found = storage.read_table(part, filters=pc.field("split") == side)
    storage.write_table(target, found.drop_columns(["split"]).replace_schema_metadata(None))
    return target.rsplit("/", 1)[-1]


def card(manifest: Manifest, config: PairConfig, lengths: Mapping[str, Mapping[str, float]]) -> str:
    """The card: what `load_dataset` needs to know, then sources, counts and lengths. It names no folder and no address."""
    totals = {key: round(value) for key, value in manifest.totals.items()}
    head = yaml.safe_dump(_head(totals, config), sort_keys=False, allow_unicode=True)
    sections = [
        f"# {manifest.run}: training rows of Trust-Align",
        "Made by `jobs.pair` of the trust suite, by the recipe of Trust-Align (arXiv 2409.11242).",
        _sources(manifest, config),
        *(_about(table, totals) for table in CONFIGS if _of(totals, table, SIDES)),
        _errors(totals, manifest.config.get("selected") or {}, config),
        _lengths(config, totals, lengths),
        _left_out(totals),
    ]
    return f"---\n{head}---\n\n" + "\n\n".join(filter(None, sections)) + "\n"


def _head(totals: Mapping[str, int], config: PairConfig) -> dict[str, Any]:
    languages = sorted({key.split(":", 2)[2] for key in totals if ":language:" in key} - {"und"})
    return {
        "license": config.license or "unknown",
        **({"language": languages} if languages else {}),
        "task_categories": ["question-answering", "text-generation"],
        "tags": ["rag", "citations", "trl", "preference"],
        "configs": [
            {
                "config_name": name,
                "data_files": [{"split": side, "path": f"{name}/{side}-*.parquet"} for side in sides],
            }
            for table, name in CONFIGS.items()
            if (sides := _of(totals, table, SIDES))
        ],
    }


def _sources(manifest: Manifest, config: PairConfig) -> str:
    runs = {"SFT rows": config.sft_run, "chosen": config.positives_run, "rejected": config.errors_run}
    lines = [f"- {what}: run `{name}`" for what, name in runs.items() if name]
    lines += [
        f"- split: by question, {config.test_share:g} held out, seed {config.seed}",
        f"- prompt: `{config.prompt.name}`, {config.prompt.shots} demonstrations, at most {config.prompt.docs} documents",
        f"- lengths counted with the tokenizer of `{config.model.name}`",
        f"- fingerprint {manifest.fingerprint}, finished {manifest.finished}",
    ]
    return "## Sources\n\n" + "\n".join(lines)


def _about(table: str, totals: Mapping[str, int]) -> str:
    name = CONFIGS[table]
    sides = ", ".join(f"{_count(totals, table, side)} {side}" for side in SIDES)
    sources = _listed(totals, f"{table}:dataset:")
    return f"## {name}\n\n{_HELD[table].capitalize()}. {sides}.\n\n" + _sheet(("data set", "rows"), sources)


def _errors(totals: Mapping[str, int], selected: Mapping[str, Mapping[str, Any]], config: PairConfig) -> str:
    if not selected:
        return ""
    lines = [
        f"- {name}: {found['kept']} kept of {found['with_error']} responses with an error"
        for name, found in selected.items()
    ]
    types = [
        (name, str(_count(totals, "pairs", f"type:{name}")), str(_count(totals, "pairs", f"primary:{name}")))
        for name in TYPES
    ]
    return (
        f"## Rejected answers\n\nThe most severe {config.keep:g} of the responses with an error, by severity, then by a hash of "
        "their key; of several to one sample the most severe. A pair may show several types, and has one primary type.\n\n"
        + "\n".join(lines)
        + "\n\n"
        + _sheet(("error", "pairs that show it", "pairs whose primary type it is"), types)
    )


def _lengths(config: PairConfig, totals: Mapping[str, int], lengths: Mapping[str, Mapping[str, float]]) -> str:
    if not lengths:
        return ""
    names = list(next(iter(lengths.values())))
    rows = [(what, *(f"{found[name]:g}" for name in names)) for what, found in lengths.items()]
    limits = ", ".join(f"{name} {value}" for name, value in vars(config.lengths).items() if value is not None)
    return (
        f"## Tokens\n\nLimits: {limits}. {totals.get('prompts_shortened', 0)} prompts lost {totals.get('docs_dropped', 0)} "
        "documents to keep them.\n\n" + _sheet(("tokens", *names), rows)
    )


def _left_out(totals: Mapping[str, int]) -> str:
    found = [
        (key, str(rows)) for key, rows in sorted(totals.items()) if key.startswith(("dropped:", "failed:")) and rows
    ]
    return "## Positives left out\n\n" + _sheet(("reason", "rows"), found) if found else ""


def _sheet(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _listed(totals: Mapping[str, int], prefix: str) -> list[tuple[str, str]]:
    return [(key.removeprefix(prefix), str(n)) for key, n in sorted(totals.items()) if key.startswith(prefix) and n]


def _count(totals: Mapping[str, int], table: str, name: str) -> int:
    return totals.get(f"{table}:{name}", 0)


def _of(totals: Mapping[str, int], table: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if _count(totals, table, name)]
