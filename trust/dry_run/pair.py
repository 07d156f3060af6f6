"""A dry run of `jobs.pair`."""

from functools import partial

from trust import tokenizer
from trust.align import rows
from trust.align.pair_job import PairConfig, measure, plan_pair, read_tokenizer
from trust.dry_run import show
from trust.dry_run.respond import spelt
from trust.dry_run.sample import first
from trust.errors import RowError
from trust.prompts import Prompt
from trust.runs import Run


def show_pair(config: PairConfig) -> None:
    """Prints what `jobs.pair` would do, with the first prompt; which errors are kept is found out by the run."""
    run = Run.of(config)
    show.look(run)
    for table in ("sft", "pairs"):
        rows.check_target(config, "pair", table)
    plan = plan_pair(config, run)
    reading = read_tokenizer(plan.worker_config["model"], config.lengths, run.storage)
    show.head("pair", run)
    parts = []
    for table, name in (("sft", config.sft_run), ("pairs", config.positives_run)):
        if name:
            found = Run.of(config, name).parts("positives")
            parts += found
            show.line(table, f"from the positives of run {name}: {sum(part['rows'] for part in found):,} rows")
    if config.errors_run:
        errors = sum(part["rows"] for part in Run.of(config, config.errors_run).parts("errors"))
        show.line("errors", f"of run {config.errors_run}: {errors:,} rows, of which the run keeps the most severe")
    show.progress(plan, run, config)
    show.actors(config.cluster, len(plan.units), gpus=0, all_cpus=False)
    show.line("tokenizer", f"of {config.model.name}; {show.where(config.model.path)}")
    made = [*(["sft"] if config.sft_run else []), *(["pairs"] if config.errors_run else [])]
    show.tables(run, *made, "failed", "cards/pair.json", "audit/pair.json", "hub/")
    prompt = Prompt.load(config.prompt, run.storage)
    prompt = Prompt(prompt.config, prompt.texts, partial(tokenizer.cut, reading.tokenizer))
    for row in first(parts, run.storage):
        try:
            messages = prompt.render(row)
        except RowError as error:
            show.line("warning", f"{row['sample_id']} would be a failed row: {error.reason}: {error.detail}")
            continue
        assert not isinstance(messages, str)  # the config has prompt.chat=true
        tokens = measure(reading, config.model.chat_template_kwargs, messages, [{"role": "assistant", "content": ""}])
        show.block("first prompt", f"{row['sample_id']}: {tokens.prompt:,} tokens", spelt(messages))
        return
