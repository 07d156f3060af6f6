"""A dry run of `jobs.evaluate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trust import cost, metrics, slices
from trust.dry_run import show
from trust.dry_run.asks import ANSWERS, Asked, count
from trust.dry_run.prepare import plan_files, read_first
from trust.dry_run.respond import ABOUT, about, price
from trust.dry_run.sample import Sample, sample
from trust.errors import PreflightError
from trust.evaluate import EvaluateConfig, check, plan_evaluate, prepare_config, responses
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute
from trust.verdicts import VerdictStore

_MADE = ("scores", "verdicts", "summary.json (or .parquet)", "slices.csv", "slices.parquet")


def show_evaluate(config: EvaluateConfig) -> None:
    """Prints what `jobs.evaluate` would do, with the first pair that the judge would be asked about."""
    run = Run.of(config)
    show.look(run)
    check(config, run)
    show.head("evaluate", run)
    plan_one(config, run)


def plan_one(config: EvaluateConfig, run: Run) -> Manifest | None:
    """Prints the plan of one evaluation; returns its manifest where it is finished."""
    work = (_from_file(config, run) if config.data.path else None) or _from_table(config, run)
    plan = work.plan
    show.actors(config.cluster, len(plan.units) if plan else None, config.judge.chosen().values())
    for ask, judge in config.judge.chosen().items():
        show_judge(ask, judge, run)
    made = [*_MADE, *(["report.html"] if config.report else [])]
    show.tables(run, *(["responses", "failed"] if plan is None else []), *made)
    _asks(config, run, work.chosen, work.left.rows, cost.spent(plan, run, config) if plan else 0.0)
    return work.left.done


@dataclass(frozen=True)
class _Work:
    """What is evaluated.

    Attributes:
        plan: None where the responses have yet to be prepared.
        left: how much of it is left; then an estimate.
        chosen: some of the responses.
    """

    plan: Plan | None
    left: show.Left
    chosen: Sample


def _from_table(config: EvaluateConfig, run: Run) -> _Work:
    """The plan over responses that are there."""
    parts, inputs = responses(config)
    source = Run.of(config, config.from_run)
    show.line("responses", f"of run {source.name}: {sum(part['rows'] for part in parts):,} rows")
    slices.check(config.slices, (slices.find(run.storage, part["path"], config.slices) for part in parts))
    plan = plan_evaluate(config, run, parts, inputs, cpus=1, gpus=0)
    return _Work(plan, show.progress(plan, run, config, config.retry_failed), sample(parts, run.storage))


def _from_file(config: EvaluateConfig, run: Run) -> _Work | None:
    """The first rows of a file that has yet to be prepared; None where it is prepared already.

    Raises:
        PreflightError: the run holds rows of another evaluation.
    """
    show.line("first", "jobs.prepare, for data.path:")
    plan, left = plan_files(prepare_config(config), run)
    if left.done:
        show.line("then", "jobs.evaluate, over what it left:")
        return None
    if not config.overwrite and (run.manifest("evaluate") or run.storage.list_folders(run.path("_units", "evaluate"))):
        raise PreflightError(
            f"run={run.name} already holds evaluate rows of other responses than those of data.path. "
            "Choose another run=, or replace them with overwrite=true"
        )
    first = read_first(plan)
    rows = sum(unit.rows for unit in plan.units)
    show.line("first rows", first.told)
    show.line(
        "then", "jobs.evaluate, over what it will leave: what follows comes from these first rows, which need not be"
    )
    show.line("", "like the others; fingerprint, units and slices cannot be told before the file is prepared")
    found = first.rows.get("responses", [])
    # A row of the file may hold several outputs, or none that can be used.
    likely = round(rows * len(found) / first.read) if first.read else 0
    how = f"the {len(found):,} responses in the first {first.read:,} rows"
    return _Work(None, show.Left(None, likely), Sample(found, how))


def show_judge(ask: str, judge: Any, run: Run) -> None:
    """Prints who answers an ask, and where its model lies."""
    show.line("judge", f"{judge.describe()}; fingerprint {judge.fingerprint(run.storage)}; answers {ask}")
    if hasattr(judge, "engine"):
        show.model(judge.model, judge.engine, run.storage)
    elif hasattr(judge, "model"):
        show.line("model", f"{judge.model}, revision {judge.revision or 'not given'}; {show.where(judge.model)}")


def _asks(config: EvaluateConfig, run: Run, chosen: Sample, rows: int, spent: float) -> None:
    """Prints how often the judge may be asked about `rows` responses, from a sample of them."""
    if not chosen.rows:
        show.line("asks", "cannot be estimated: no response could be read")
        return
    made = metrics.build(config.metrics, config.compat)
    for other in [metric.name for metric in made if set(metric.asks) - {"entails"}]:
        show.line("asks", f"of {other} cannot be told: they go to a language model or follow from its answers")
    made = [metric for metric in made if metric.asks == ("entails",)]
    if not made:
        return
    asked = count(chosen.rows, made)
    least, most = (sum(getattr(one, key) for one in asked) / len(asked) for key in ("least", "most"))
    says = "; ".join(ANSWERS)
    show.line(
        "asks",
        f"about {least * rows:,.0f} to {most * rows:,.0f} different pairs for {rows:,} responses, an estimate: {least:.1f} to "
        f"{most:.1f} a response over {chosen.how}, counted with judges that answer without reading ({says})",
    )
    store = VerdictStore(run.storage, absolute(config.storage.root), config.judge.entails.fingerprint(run.storage))
    known = {(row["sample_id"], row["hash"]) for row in store.load(row["sample_id"] for row in chosen.rows)}
    pairs = [(row["sample_id"], key) for row, one in zip(chosen.rows, asked, strict=True) for key in one.pairs]
    have = sum(pair in known for pair in pairs)
    show.line(
        "known", f"{have:,} of the {len(pairs):,} pairs of this sample are judged already and would not be asked again"
    )
    _cost(config, asked, most * rows, spent)
    for row, one in zip(chosen.rows, asked, strict=True):
        for pair in one.pairs.values():
            text = f"premise:\n{pair['premise']}\n\nhypothesis:\n{pair['hypothesis']}"
            show.block("first pair", f"of {row['sample_id']}, asked as {pair['role']}", text)
            return
    show.line("first pair", "none: no response of the sample asks the judge anything")


def _cost(config: EvaluateConfig, asked: Sequence[Asked], most: float, spent: float) -> None:
    """What the most asks would cost where the judge is behind an endpoint."""
    judge: Any = config.judge.entails
    if judge.backend != "llm" or judge.engine.backend != "openai":
        return
    pairs = [pair for one in asked for pair in one.pairs.values()]
    if not pairs:
        return
    mean = sum(about(judge.asked(pair)) for pair in pairs) / len(pairs)
    requests = most * (judge.samples if judge.reading == "samples" else 1)
    show.line(
        "prompts", f"about {mean * requests:,.0f} tokens, an estimate: {mean:,.0f} on average, guessed at {ABOUT}"
    )
    price(judge.engine, mean * requests, requests * judge.max_tokens, requests, spent)
