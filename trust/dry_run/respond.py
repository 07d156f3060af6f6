"""A dry run of `jobs.respond`."""

from collections import Counter
from functools import partial
from typing import Any

from trust import cost, tokenizer
from trust.dry_run import show
from trust.dry_run.sample import Sample, first, sample
from trust.errors import PreflightError, RowError
from trust.prompts import Messages, Prompt
from trust.respond import RespondConfig, plan_respond
from trust.runs import Run

BYTES = 4  # of UTF-8 a token, about, where the model's own tokenizer is not at hand
ABOUT = f"a token for {BYTES} bytes of UTF-8, as the model's own tokenizer is behind the endpoint"


def show_respond(config: RespondConfig) -> None:
    """Prints what `jobs.respond` would do, with the first prompt as the engine would get it."""
    run, source = Run.of(config), Run.of(config, config.from_run)
    show.look(run)
    plan, prompt = plan_respond(config, run)
    parts = source.parts(config.from_table)
    reading = None
    if config.engine.backend != "openai":
        reading = tokenizer.without_weights(config.model.path, config.model.revision, run.storage)
        if config.prompt.chat and not reading.tokenizer.chat_template:
            raise PreflightError(f"model {config.model.name} has no chat template; set prompt.chat=false")
        prompt = Prompt(prompt.config, prompt.texts, partial(tokenizer.cut, reading.tokenizer))
    show.head("respond", run)
    show.line(config.from_table, f"of run {source.name}: {sum(part['rows'] for part in parts):,} rows")
    left = show.progress(plan, run, config, config.retry_failed)
    show.actors(config.cluster, len(plan.units), config.engine.gpus, config.engine.all_cpus)
    show.model(config.model, config.engine, run.storage)
    show.tables(run, "responses")
    # Failed rows that are done again are counted by draw already.
    draws, most = (1 if left.done else config.sampling.draws), config.sampling.max_tokens or 0
    requests, asked = left.rows * draws, f"{left.rows:,} rows x {draws} draws"
    show.line("answers", f"at most {requests * most:,} tokens: {asked} x {most} (sampling.max_tokens)")
    tokens = _prompts(config, prompt, sample(parts, run.storage), reading, requests, asked)
    if config.engine.backend == "openai" and tokens is not None:
        price(config.engine, tokens, requests * most, requests, cost.spent(plan, run, config))
    told = False
    for row in first(parts, run.storage):
        try:
            _first_prompt(config, row["sample_id"], prompt.render(row), reading)
            return
        except RowError as error:
            if not told:
                show.line("warning", f"{row['sample_id']} would be a failed row: {error.reason}: {error.detail}")
            told = True


def _prompts(
    config: RespondConfig,
    prompt: Prompt,
    chosen: Sample,
    reading: tokenizer.Reading | None,
    requests: int,
    asked: str,
) -> float | None:
    """Prints what the prompts of all requests take, from a sample of rows; gives their tokens, None where none can be made.

    Args:
        asked: the requests in words.
    """
    lengths, failed = [], Counter[str]()
    for row in chosen.rows:
        try:
            lengths.append(_tokens(config, prompt.render(row), reading))
        except RowError as error:
            failed[error.reason] += 1
    for reason, count in failed.most_common():
        show.line("warning", f"{count} would be failed rows, among {chosen.how}: {reason}")
    if not lengths:
        return None
    mean = sum(lengths) / len(lengths)
    how = "counted by the model's tokenizer" if reading else f"guessed at {ABOUT}"
    show.line(
        "prompts",
        f"about {mean * requests:,.0f} tokens, an estimate: {mean:,.0f} on average (at most {max(lengths):,}) over "
        f"{chosen.how}, {how}, x {asked}",
    )
    context = _context(config, reading)[0]
    if long := sum(length >= context for length in lengths) if context else 0:
        show.line("warning", f"{long} of these have no room in the context and would be failed rows (prompt_too_long)")
    return mean * requests


def price(endpoint: Any, tokens_in: float, tokens_out: float, requests: float, spent: float) -> None:
    """Prints what requests to an endpoint may cost, and how far its limit reaches.

    Args:
        tokens_in: an estimate of all their tokens.
        tokens_out: the most tokens of their answers.
        spent: by the run so far.
    """
    if endpoint.price_in is None and endpoint.price_out is None:
        show.line("cost", "not known: give engine.price_in and engine.price_out (of a million tokens) for an estimate")
        return
    read, written = endpoint.cost(round(tokens_in), 0), endpoint.cost(0, round(tokens_out))
    show.line(
        "cost",
        f"up to about {read + written:,.4g}, an estimate: {read:,.4g} for {tokens_in:,.0f} prompt tokens (see above) and at "
        f"most {written:,.4g} for answers of full length; most answers are shorter, failed tries are not counted",
    )
    if endpoint.cost_limit is None:
        show.line("cost_limit", "none")
        return
    left = endpoint.cost_limit - spent
    each = (read + written) / requests if requests else 0.0
    reach = min(requests, max(0.0, left) / each) if each else requests
    enough = "enough for all" if reach >= requests else f"enough for about {reach:,.0f}"
    show.line(
        "cost_limit",
        f"{endpoint.cost_limit:g}, of which {spent:,.4g} is spent: {enough} of {requests:,.0f} requests at the price above",
    )


def about(messages: Messages | str) -> float:
    """Tokens of a prompt where there is no tokenizer."""
    text = messages if isinstance(messages, str) else "".join(message["content"] for message in messages)
    return len(text.encode()) / BYTES


def _tokens(config: RespondConfig, messages: Messages | str, reading: tokenizer.Reading | None) -> int:
    if reading is None:
        return round(about(messages))
    return len(tokenizer.encode(reading.tokenizer, messages, config.model.chat_template_kwargs))


def _context(config: RespondConfig, reading: tokenizer.Reading | None) -> tuple[int | None, str]:
    """Tokens that a prompt and its answer have together, and who says so."""
    for key, length in (
        ("engine.max_model_len", getattr(config.engine, "max_model_len", None)),
        ("model.max_model_len", config.model.max_model_len),
    ):
        if length and reading:
            return length, key
    return (reading.context, "the model's config") if reading else (None, "")


def _first_prompt(
    config: RespondConfig, sample_id: str, messages: Messages | str, reading: tokenizer.Reading | None
) -> None:
    tokens = _tokens(config, messages, reading)
    if reading is None:
        title = f"{sample_id}, about {tokens:,} tokens ({ABOUT}); "
        title += (
            "as it is sent" if isinstance(messages, str) else "as it is sent; the endpoint applies its chat template"
        )
        show.block("first prompt", title, spelt(messages))
        return
    context, by = _context(config, reading)
    room = (
        f"the context holds {context:,} ({by})" if context else "the model's config does not say what the context holds"
    )
    longest = config.sampling.max_tokens or 0
    if context and tokens + longest > context:
        room += (
            "; the prompt does not fit"
            if tokens >= context
            else f"; {context - tokens:,} are left for an answer of up to {longest:,}"
        )
    how = "through the model's chat template" if config.prompt.chat else "as plain text (prompt.chat=false)"
    text = tokenizer.written_out(reading.tokenizer, messages, config.model.chat_template_kwargs)
    show.block("first prompt", f"{sample_id}, {how}: {tokens:,} tokens; {room}", text)


def spelt(messages: Messages | str) -> str:
    """Chat messages as text for people."""
    if isinstance(messages, str):
        return messages
    return "\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)
