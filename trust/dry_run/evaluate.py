"""A dry run of `jobs.evaluate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trust import cost, metrics, slices
from trust.dry_run import show
from trust.dry_run.asks import ANSWERS, Asked, count
from trust.dry_run.prepare import plan_files, read_first
from trust.dry_run.respond import ABOUT, about, price, spelt
from trust.dry_run.sample import Sample, sample
from trust.errors import PreflightError
from trust.evaluate import KEPT, EvaluateConfig, check, plan_evaluate, prepare_config, responses
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute
from trust.verdicts import VerdictStore

_MADE = ("scores", "verdicts", "summary.json (or .parquet)", "slices and rates by language (.csv, .parquet)")


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
    judges = config.judge.chosen().values()
    shares = [judge.gpus for judge in judges]
    show.actors(
        config.cluster,
        units=len(plan.units) if plan else None,
        gpus=sum(share for share in shares if share is not None),
        all_cpus=any(judge.all_cpus for judge in judges),
        if_any=shares.count(None),
    )
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
    """Prints who answers one kind of ask."""
    show.line(ask, f"{judge.describe()}; fingerprint {judge.fingerprint(run.storage)}")
    if hasattr(judge, "engine"):
        show.model(judge.model, judge.engine, run.storage)
    elif hasattr(judge, "model"):
        show.line("model", f"{judge.model}, revision {judge.revision or 'not given'}; {show.where(judge.model)}")


def _asks(config: EvaluateConfig, run: Run, chosen: Sample, rows: int, spent: float) -> None:
    """Prints who is asked, and how often they may be about `rows` responses, from a sample of them."""
    judges = config.judge.chosen()
    if not judges:
        show.line("asks", "none: no metric asks anybody")
        return
    made = metrics.build(config.metrics, config.compat)
    for metric in metrics.to_set_up(made):
        show.line("first", f"{metric.name} is set up, once in the run, by a job of its own that asks the same models")
    asked = count(chosen.rows, made)
    for ask, judge in judges.items():
        show_judge(ask, judge, run)
        mine = [one[ask] for one in asked]
        if not mine:
            show.line("asks", "cannot be estimated: no response could be read")
            continue
        least, most = (sum(getattr(one, key) for one in mine) / len(mine) for key in ("least", "most"))
        over = f"different asks for {rows:,} responses, an estimate over {chosen.how}"
        if ask == "entails":
            how = f"judges that answer without reading: {'; '.join(ANSWERS)}"
            show.line("asks", f"about {least * rows:,.0f} to {most * rows:,.0f} {over}, counted with {how}")
        else:
            show.line("asks", f"at least {most * rows:,.0f} {over}; those that hang on earlier answers come on top")
        if ask in KEPT:
            _known(config, run, ask, chosen, mine)
        _cost(judge, mine, most * rows, spent)
        _first(ask, chosen, mine)


def _known(config: EvaluateConfig, run: Run, ask: str, chosen: Sample, asked: Sequence[Asked]) -> None:
    """Prints how many asks of the sample are answered already."""
    judge = config.judge.chosen()[ask].fingerprint(run.storage)
    store = VerdictStore(run.storage, absolute(config.storage.root), judge)
    known = {(row["sample_id"], row["hash"]) for row in store.load(row["sample_id"] for row in chosen.rows)}
    keys = [(row["sample_id"], key) for row, one in zip(chosen.rows, asked, strict=True) for key in one.questions]
    have = sum(key in known for key in keys)
    show.line("known", f"{have:,} of the {len(keys):,} asks of this sample are answered already and not made again")


def _first(ask: str, chosen: Sample, asked: Sequence[Asked]) -> None:
    """Prints the first ask of the sample."""
    for row, one in zip(chosen.rows, asked, strict=True):
        for question in one.questions.values():
            shown = question.inputs
            if ask == "entails":
                text = f"premise:\n{shown['premise']}\n\nhypothesis:\n{shown['hypothesis']}"
            elif ask == "logprob":
                text = f"context:\n{shown['context']}\n\ncontinuation:\n{shown['continuation']}"
            else:
                text = spelt(shown["messages"]) if ask == "complete" else shown["text"]
            show.block(
                "first ask", f"of {row['sample_id']}" + (f", for {question.role}" if question.role else ""), text
            )
            return
    show.line("first ask", "none: no response of the sample asks anything")


def _cost(judge: Any, asked: Sequence[Asked], most: float, spent: float) -> None:
    """Prints what the most asks would cost where an endpoint answers them."""
    if not hasattr(judge, "engine") or judge.engine.backend != "openai":
        return
    questions = [question.inputs for one in asked for question in one.questions.values()]
    if not questions:
        return
    by_pair = hasattr(judge, "asked")  # a judge of pairs puts them in its own words
    draws = judge.samples if by_pair and judge.reading == "samples" else 1
    texts = [judge.asked(inputs) if by_pair else inputs["messages"] for inputs in questions]
    longest = [judge.max_tokens if by_pair else inputs["sampling"]["max_tokens"] for inputs in questions]
    mean, answer, requests = sum(map(about, texts)) / len(texts), sum(longest) / len(longest), most * draws
    show.line(
        "prompts", f"about {mean * requests:,.0f} tokens, an estimate: {mean:,.0f} on average, guessed at {ABOUT}"
    )
    price(judge.engine, mean * requests, answer * requests, requests, spent)
