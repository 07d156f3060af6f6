"""A dry run of `jobs.positives`."""

from collections import Counter
from typing import Any

from trust import cost
from trust.align.positives import ASSEMBLED, REFUSAL
from trust.align.positives_job import PositivesConfig, builder, check, plan_positives
from trust.align.rows import source
from trust.dry_run import show
from trust.dry_run.evaluate import show_judge
from trust.dry_run.respond import ABOUT, about, price, spelt
from trust.dry_run.sample import sample
from trust.errors import RowError
from trust.prompts import Messages
from trust.runs import Run

_WRITTEN = "written by a model"


def show_positives(config: PositivesConfig) -> None:
    """Prints what `jobs.positives` would do, with the first prompt for the writer."""
    run = Run.of(config)
    show.look(run)
    check(config, run)
    plan = plan_positives(config, run, cpus=1, gpus=0)
    parts = source(config)[0]
    chosen = config.judge.chosen()
    show.head("positives", run)
    rows = sum(part["rows"] for part in parts)
    show.line(config.from_table, f"of run {config.from_run or run.name}: {rows:,} rows")
    left = show.progress(plan, run, config, config.retry_failed)
    show.actors(
        config.cluster,
        len(plan.units),
        sum(backend.gpus or 0 for backend in chosen.values()),
        all_cpus=any(backend.all_cpus for backend in chosen.values()),
        if_any=sum(backend.gpus is None for backend in chosen.values()),
    )
    for ask, backend in chosen.items():
        show_judge(ask, backend, run)
    drawn = sample(parts, run.storage)
    kinds, prompts = _kinds(config, drawn.rows)
    show.line("positives", f"{', '.join(f'{n} {kind}' for kind, n in kinds.most_common()) or 'none'}, of {drawn.how}")
    if prompts:
        texts = left.rows * len(prompts) / len(drawn.rows)
        mean = sum(about(messages) for _, messages in prompts) / len(prompts)
        tries, longest = config.writing.tries, config.writing.max_tokens
        show.line("texts", f"about {texts:,.0f}, an estimate; up to {tries} times as many where texts are refused")
        show.line("prompts", f"{mean:,.0f} tokens on average, {ABOUT}")
        if chosen["complete"].engine.backend == "openai":
            price(chosen["complete"].engine, mean * texts, longest * texts, texts, cost.spent(plan, run, config))
    show.tables(run, "positives", "verdicts", "cards/positives.json")
    if prompts:
        sample_id, messages = prompts[0]
        show.block("first prompt", sample_id, spelt(messages))


def _kinds(config: PositivesConfig, rows: list[dict[str, Any]]) -> tuple[Counter[str], list[tuple[str, Messages]]]:
    """How positives of these rows would be made, and the prompts of those that a model would write."""
    build = builder(config.options(), config.writer, config.compat)
    kinds, prompts = Counter[str](), []
    for row in rows:
        try:
            evidence = build.evidence(row)
            if evidence is None:
                kinds[REFUSAL] += 1
            elif row["task"] == "em5":
                kinds[ASSEMBLED] += 1
            elif config.writer is None:
                kinds["failed (no_writer)"] += 1
            else:
                prompts.append((row["sample_id"], build.asked(row, evidence)))
                kinds[_WRITTEN] += 1
        except RowError as error:
            kinds[f"failed ({error.reason})"] += 1
    return kinds, prompts
