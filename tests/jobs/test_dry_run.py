"""`dry_run=true` of every job: what it says is what the run would do, and nothing is loaded, started or written."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.agree import agree
from jobs.compare import compare
from jobs.evaluate import evaluate
from jobs.judges import judges
from jobs.prepare import prepare
from jobs.respond import respond
from tests.conftest import API_KEY, API_KEY_ENV
from tests.fake_endpoint import FakeEndpoint, Reply, answer
from tests.jobs.test_recipes import recipe
from tests.trust.agree.helpers import lines, rated
from tests.trust.compare.helpers import RIGHT, evaluated, rows
from tests.trust.report.helpers import response, save
from tests.trust.test_dry_run import finished, tree
from trust import cluster, models, tables
from trust.agree import AgreeConfig
from trust.agreement import JudgesConfig
from trust.ask.lexical import LexicalConfig
from trust.cli import main
from trust.compare import CompareConfig
from trust.config import load
from trust.errors import PreflightError
from trust.evaluate import EvaluateConfig, plan_evaluate, responses
from trust.prepare.job import PrepareConfig
from trust.respond import RespondConfig, plan_respond
from trust.runs import Run
from trust.storage import Storage
from trust.tokenizer import encode, without_weights
from trust.units import UnitResult, UnitStore
from trust.verdicts import VerdictStore

JOBS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "prepare": (PrepareConfig, prepare),
    "respond": (RespondConfig, respond),
    "evaluate": (EvaluateConfig, evaluate),
    "judges": (JudgesConfig, judges),
    "compare": (CompareConfig, compare),
    "agree": (AgreeConfig, agree),
}
SMALL = {"instruction": "Cite.", "demo_sep": "\n", "demo_prompt": "{INST}\n{Q}\n{D}{A}", "doc_prompt": "[{ID}] {P}\n"}


class Dry:
    """Dry runs below a folder, in which whatever a dry run may not do fails the test."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.root = folder, folder / "runs"
        self._capsys, self._monkeypatch = capsys, monkeypatch
        monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def __call__(self, job: str, *words: str) -> str:
        """What the dry run prints."""
        before = tree(self.folder)
        schema, run = JOBS[job]
        with self._monkeypatch.context() as within:
            for owner, name in (
                (cluster, "connect"),
                (models, "fetch"),
                (Storage, "write_bytes"),
                (Storage, "write_table"),
                (Storage, "delete"),
            ):
                within.setattr(owner, name, never)
            run(load(job, schema, [f"storage.root={self.root}", "dry_run=true", *words]))
        assert tree(self.folder) == before, "a dry run wrote something"
        return self._capsys.readouterr().out


def never(*_: object, **__: object) -> None:
    pytest.fail("a dry run started Ray, fetched a model or wrote to the storage")


@pytest.fixture
def dry(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Dry:
    return Dry(tmp_path, capsys, monkeypatch)


def data(folder: Path, count: int = 12, **changes: Any) -> Path:
    docs = [{"title": "Paris", "text": "Paris is the capital of France.", "answers_found": [1]}]
    items = [
        {"id": f"{n:02d}", "question": f"What is capital number {n:02d}?", "answers": [["Paris"]], "docs": docs}
        | changes
        for n in range(count)
    ]
    path = folder / "data.json"
    path.write_text(json.dumps(items))
    return path


def samples(root: Path, count: int = 12, name: str = "r", **changes: Any) -> None:
    """A run with prepared samples."""
    columns = tables.SCHEMAS["samples"].names
    made = [{key: value for key, value in response(n, "", **changes).items() if key in columns} for n in range(count)]
    save(Run(Storage(), str(root), name), "prepare", {}, UnitResult({"samples": tables.to_table("samples", made)}))


def shown(printed: str, label: str) -> str:
    """The text of a line."""
    return next(line for line in printed.splitlines() if line.startswith(f"{label}:")).partition(":")[2].strip()


def block(printed: str) -> str:
    """The text between the marks."""
    return printed.partition("-------- begin\n")[2].partition("\n-------- end")[0]


def test_prepare(dry: Dry) -> None:
    path = data(dry.folder)
    items = json.loads(path.read_text())
    items[3]["question"] = ""
    path.write_text(json.dumps(items))
    printed = dry("prepare", f"data.path={path}", "task=em", "unit_rows=5", "run=r")
    assert shown(printed, "data") == f"{path} as data, read once to find units"
    assert shown(printed, "units") == (
        "3 of at most 5 rows, 12 rows in all; 0 have a receipt, 3 units with 12 rows are left"
    )
    assert shown(printed, "first rows").startswith("the first 12 of 12, prepared in memory: 11 samples, 1 failed (")
    assert f"the first: {path}#3, line 1: " in printed
    assert shown(printed, "would write") == f"below {dry.root}/r: samples, failed"


def test_respond_by_an_engine(dry: Dry, smollm2: str) -> None:
    samples(dry.root)
    (dry.folder / "p.json").write_text(json.dumps(SMALL))
    words = [
        "run=r",
        "model=hf",
        f"model.path={smollm2}",
        "model.name=small",
        "engine=cpu",
        "prompt=file",
        "prompt.shots=0",
    ]
    words += [f"prompt.file={dry.folder}/p.json", "sampling.draws=2", "sampling.max_tokens=50", "unit_rows=4"]
    printed = dry("respond", *words)
    user = (
        "Cite.\nWhich river flows out of Lake Baikal?\n[1] The Angara flows out of Lake Baikal.\n"
        "[2] The Murray is a river in Australia."
    )
    assert block(printed).endswith(f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n")
    tokens = len(encode(without_weights(smollm2).tokenizer, [{"role": "user", "content": user}], {}))
    assert shown(printed, "first prompt") == (
        f"demo:00000, through the model's chat template: {tokens} tokens; the context holds 8,192 (the model's config)"
    )
    assert shown(printed, "answers").startswith("at most 1,200 tokens: 12 rows x 2 draws x 50")
    assert shown(printed, "prompts") == (
        f"about {24 * tokens:,} tokens, an estimate: {tokens} on average (at most {tokens}) over all 12 rows, counted by the "
        "model's tokenizer, x 12 rows x 2 draws"
    )
    assert shown(printed, "model") == f"small: {smollm2}, revision not given, dtype float32"
    assert f"fingerprint {models.fingerprint(smollm2)}; lies in {smollm2}\n" in printed
    assert shown(printed, "would write") == f"below {dry.root}/r: responses"
    assert "warning" not in printed

    config = load("respond", RespondConfig, [f"storage.root={dry.root}", *words])
    run = Run.of(config)
    plan = plan_respond(config, run)[0]
    assert shown(printed, "fingerprint") == plan.fingerprint
    UnitStore(run.storage, run.root, "respond", plan.fingerprint).write(plan.units[0], UnitResult({}, {"ok": 8}))
    with pytest.raises(PreflightError, match="already holds respond rows of another config"):
        dry("respond", *words, "engine.max_model_len=60")
    printed = dry("respond", *words, "engine.max_model_len=60", "overwrite=true")
    assert (
        shown(printed, "warning")
        == "12 of these have no room in the context and would be failed rows (prompt_too_long)"
    )
    assert shown(printed, "first prompt").endswith(
        "the context holds 60 (engine.max_model_len); the prompt does not fit"
    )


def test_respond_goes_on_where_a_killed_run_was(dry: Dry, smollm2: str) -> None:
    samples(dry.root)
    words = [
        "run=r",
        "model=hf",
        f"model.path={smollm2}",
        "engine=cpu",
        "prompt.shots=0",
        "unit_rows=4",
        "prompt.chat=false",
    ]
    words += ["engine.max_model_len=190"]
    config = load("respond", RespondConfig, [f"storage.root={dry.root}", *words])
    run = Run.of(config)
    plan = plan_respond(config, run)[0]
    store = UnitStore(run.storage, run.root, "respond", plan.fingerprint)
    store.keep_identity(plan.identity)
    store.write(plan.units[0], UnitResult({}, {"ok": 4}))
    printed = dry("respond", *words)
    assert shown(printed, "units").endswith("1 have a receipt, 2 units with 8 rows are left")
    assert shown(printed, "answers").startswith("at most 2,400 tokens: 8 rows x 1 draws x 300")
    assert "as plain text (prompt.chat=false): " in printed
    assert "are left for an answer of up to 300" in printed or "the prompt does not fit" in printed
    assert block(printed).startswith("Instruction: ")


def served(fake: FakeEndpoint) -> list[str]:
    """Words for a model behind the endpoint, asked without demonstrations."""
    engine = ["engine=openai", f"engine.base_url={fake.url}", "model=served", "model.path=m"]
    return ["run=r", *engine, "prompt.shots=0"]


def test_respond_by_an_endpoint(dry: Dry) -> None:
    samples(dry.root)
    with FakeEndpoint(lambda request: Reply(answer())) as fake:
        words = [*served(fake), f"engine.api_key_env={API_KEY_ENV}", "sampling.max_tokens=100"]
        words += ["engine.price_in=10", "engine.price_out=1000", "engine.cost_limit=0.6"]
        printed = dry("respond", *words)
        assert len(fake.requests) == 1, "the short question before every run"
    text = block(printed)
    assert text.startswith("[user]\nInstruction: ")
    tokens = round(len(text.removeprefix("[user]\n").encode()) / 4)
    assert shown(printed, "prompts").startswith(
        f"about {12 * tokens:,.0f} tokens, an estimate: {tokens:,.0f} on average"
    )
    assert "guessed at a token for 4 bytes of UTF-8" in printed
    cost = 10 * 12 * tokens / 1e6 + 1000 * 12 * 100 / 1e6
    assert shown(printed, "cost").startswith(f"up to about {cost:,.4g}, an estimate")
    reach = f"enough for about {0.6 / (cost / 12):,.0f} of 12 requests at the price above"
    assert shown(printed, "cost_limit") == f"0.6, of which 0 is spent: {reach}"
    assert f"m: m at {fake.url}, revision not given" in printed
    assert API_KEY not in printed


def test_failed_rows_that_are_done_again_and_rows_that_would_fail(dry: Dry) -> None:
    samples(dry.root)
    with FakeEndpoint(lambda request: Reply(answer())) as fake:
        words = [*served(fake), "sampling.draws=2", "sampling.temperature=1", "sampling.max_tokens=100"]
        config = load("respond", RespondConfig, [f"storage.root={dry.root}", *words])
        plan, run = plan_respond(config, Run.of(config))[0], Run.of(config)
        finished(plan, run, failed=5)
        assert shown(dry("respond", *words), "answers").startswith("at most 0 tokens")
        printed = dry("respond", *words, "retry_failed=true")
        assert shown(printed, "retry").endswith("its 5 failed rows would be done again")
        assert shown(printed, "answers") == "at most 500 tokens: 5 rows x 1 draws x 100 (sampling.max_tokens)"
        with pytest.raises(PreflightError, match=r"prompt file package://trust/nowhere\.json cannot be read"):
            dry("respond", *words, "overwrite=true", "prompt.files.em=package://trust/nowhere.json")
        samples(dry.root, count=80, docs=[{"doc_id": "a", "title": "", "text": None}])
        printed = dry("respond", *words, "overwrite=true")
    warned = [line for line in printed.splitlines() if line.startswith("warning:")]
    assert "64 would be failed rows, among 64 of 80 rows drawn with seed 0: doc_without_text" in warned[0]
    assert "demo:00000 would be a failed row: doc_without_text: document 1 has no text" in warned[1]
    assert len(warned) == 2
    assert "first prompt" not in printed


def test_the_command_of_the_readme(dry: Dry, repo: Path) -> None:
    (command,) = recipe(repo, "Before a run")
    samples(dry.root, name="demo")
    printed = dry("respond", *command.split()[3:])
    assert "through the model's chat template: " in printed
    assert "couldn't find an answer to your question in the search results" in block(printed)


def test_evaluate_a_run(dry: Dry) -> None:
    run = Run(Storage(), str(dry.root), "r")
    rows_made = [response(n, f"The Angara flows out of Lake Baikal {'[1][2]' if n % 2 else '[1]'}.") for n in range(8)]
    save(run, "respond", {}, UnitResult({"responses": tables.to_table("responses", rows_made)}))
    words = ["run=r", "judge/entails=lexical", "unit_rows=3"]
    printed = dry("evaluate", *words)
    assert shown(printed, "units").startswith("3 of at most 3 rows, 8 rows in all; 0 have a receipt")
    assert shown(printed, "asks").startswith(
        "about 8 to 16 different asks for 8 responses, an estimate over all 8 rows"
    )
    assert shown(printed, "known") == "0 of the 16 asks of this sample are answered already and not made again"
    assert shown(printed, "first ask") == "of demo:00000, for citation_recall"
    assert block(printed) == (
        "premise:\nTitle: Baikal\nThe Angara flows out of Lake Baikal.\n\n"
        "hypothesis:\nThe Angara flows out of Lake Baikal."
    )
    assert shown(printed, "would write").endswith("slices and rates by language (.csv, .parquet), report.html")
    config = load("evaluate", EvaluateConfig, [f"storage.root={dry.root}", *words])
    assert shown(printed, "fingerprint") == plan_evaluate(config, run, *responses(config), 1, 0).fingerprint
    assert LexicalConfig().fingerprint() in shown(printed, "entails")

    pair = {"premise": "Title: Baikal\nThe Angara flows out of Lake Baikal.", "hypothesis": RIGHT.replace(" [1]", "")}
    from trust.ask import ask_hash

    verdict = {"judge": LexicalConfig().fingerprint(), "hash": ask_hash("entails", pair), "sample_id": "demo:00002"}
    verdict |= {"ask": "entails", "inputs": pair, "answer": "1", "score": 1.0, "status": "ok"}
    VerdictStore(run.storage, str(dry.root), LexicalConfig().fingerprint()).add([verdict])
    assert shown(dry("evaluate", *words), "known").startswith("1 of the 16 asks")


def test_evaluate_a_file_that_has_yet_to_be_prepared(dry: Dry) -> None:
    path = data(dry.folder, 100, output="Paris is the capital of France [1].")
    words = [f"data.path={path}", "task=em", "judge/entails=lexical", "run=r"]
    printed = dry("evaluate", *words)
    assert shown(printed, "first rows") == "the first 64 of 100, prepared in memory: 64 responses, 0 failed"
    assert "what follows comes from these first rows, which need not be" in printed
    assert shown(printed, "asks").startswith(
        "about 100 to 100 different asks for 100 responses, an estimate over the 64 responses in the first 64 rows"
    )
    assert "responses, failed, scores, verdicts" in shown(printed, "would write")
    assert block(printed).endswith("hypothesis:\nParis is the capital of France.")


def test_evaluate_by_a_language_model_behind_an_endpoint(dry: Dry) -> None:
    run = Run(Storage(), str(dry.root), "r")
    save(
        run,
        "respond",
        {},
        UnitResult({"responses": tables.to_table("responses", [response(n, RIGHT) for n in range(4)])}),
    )
    token = {"token": "yes", "logprob": -0.1, "top_logprobs": [{"token": "yes", "logprob": -0.1}]}
    with FakeEndpoint(lambda request: Reply(answer("yes", logprobs={"content": [token]}))) as fake:
        words = [f"judge.entails.engine.base_url={fake.url}", "judge.entails.model.path=m", "judge/entails=llm_openai"]
        words += ["judge.entails.engine.price_in=1000000", "judge.entails.engine.price_out=1000000"]
        printed = dry("evaluate", "run=r", *words)
        assert len(fake.requests) == 1
    config = load("evaluate", EvaluateConfig, words)
    pair = {"premise": "Title: Baikal\nThe Angara flows out of Lake Baikal.", "hypothesis": RIGHT.replace(" [1]", "")}
    tokens = len(config.judge.entails.asked(pair)[0]["content"].encode()) / 4
    assert shown(printed, "cost").startswith(f"up to about {4 * tokens + 4 * 16:,.4g}, an estimate")


def test_evaluate_in_words_alone(dry: Dry) -> None:
    run = Run(Storage(), str(dry.root), "r")
    made = [response(n, RIGHT) for n in range(4)]
    save(run, "respond", {}, UnitResult({"responses": tables.to_table("responses", made)}))
    token = {"token": "5", "logprob": -0.1, "top_logprobs": [{"token": "5", "logprob": -0.1}]}
    with FakeEndpoint(lambda request: Reply(answer("5", logprobs={"content": [token]}))) as fake:
        words = ["run=r", "metrics=[geval]", "metrics.geval.aspects=[fluency]", "judge/complete=openai"]
        words += ["metrics.geval.steps=written"]
        words += [f"judge.complete.engine.base_url={fake.url}", "judge.complete.model.path=m"]
        words += ["judge.complete.engine.price_in=0", "judge.complete.engine.price_out=1000000"]
        printed = dry("evaluate", *words)
        assert len(fake.requests) == 1, "the short question before every run"
    assert shown(printed, "asks").startswith(
        "at least 4 different asks for 4 responses, an estimate over all 4 rows; those"
    )
    assert shown(printed, "known").startswith("0 of the 4 asks of this sample")
    assert shown(printed, "cost").startswith("up to about 20, an estimate")
    assert shown(printed, "first ask") == "of demo:00000, for fluency"
    assert block(printed).startswith("[user]\n")
    assert "entails" not in printed
    assert "geval is set up, once in the run" in printed


def test_judges(dry: Dry) -> None:
    run = Run(Storage(), str(dry.root), "r")
    save(
        run,
        "respond",
        {},
        UnitResult({"responses": tables.to_table("responses", [response(n, RIGHT) for n in range(4)])}),
    )
    words = ["from_run=r", "run=j", "judges.a.backend=lexical", "judges.b.backend=lexical", "judges.b.threshold=0.5"]
    printed = dry("judges", *words)
    for name, threshold in (("a", 0.8), ("b", 0.5)):
        assert f"evaluation:   by judge {name}, in {dry.root}/j-{name}\n" in printed
        assert LexicalConfig(threshold=threshold).fingerprint() in printed
    assert printed.count("asks:         about 4 to 4 different asks for 4 responses") == 2
    assert "once all have judged (a, b have not)" in printed
    assert printed.endswith(f"below {dry.root}/j: judges.json\n")


def test_compare(dry: Dry) -> None:
    evaluated(dry.root, "base", rows())
    evaluated(dry.root, "new", rows(wrong=[1, 2], questions=range(40)))
    words = ["base=base", "new=new", "by=[language]", "fail_below=-1"]
    with pytest.raises(PreflightError, match="questions=shared"):
        dry("compare", *words)
    printed = dry("compare", *words, "questions=shared")
    assert shown(printed, "compared").startswith(
        "demo (em): small with em / small with em: 40 questions are in both; 20 only in base (demo:00040, demo:00041, "
    )
    assert shown(printed, "base").startswith(f"{dry.root}/base, evaluated 2026-01-02T03:04:05Z")
    assert shown(printed, "fails") == "with exit code 4 where it loses: trust_score by more than 1 points"
    assert shown(printed, "would write") == f"{dry.root}/new/compare/base.csv, {dry.root}/new/compare/base.md"
    assert "60 questions, the same in both." in dry("compare", "base=base", "new=base")


def test_agree(dry: Dry) -> None:
    made = [rated(n, system, [n % 5, (n + k) % 5], (n % 5) + k) for n in range(6) for k, system in enumerate("ab")]
    path = lines(dry.folder / "rows.jsonl", made)
    printed = dry("agree", f"data.path={path}", "run=a")
    assert "rated:        " in printed
    assert "12 rated outputs of 6 groups and 2 systems" in printed
    assert shown(printed, "dimensions") == "quality"
    assert shown(printed, "metrics") == "m"
    assert shown(printed, "would write") == (
        f"below {dry.root}/a: agreement.csv, agreement.parquet, agreement.svg, agreement.json"
    )
    with pytest.raises(PreflightError, match="no finished evaluation"):
        dry("agree", f"data.path={path}", "runs=[gone]")


@pytest.mark.parametrize(
    ("job", "words", "said"),
    [
        ("prepare", [], "data.path is not set"),
        ("prepare", ["data.path=nowhere.json"], "nowhere.json"),
        ("respond", [], "run=r has no finished samples table"),
        ("evaluate", ["judge/entails=lexical"], "run=r has no finished responses table"),
        ("evaluate", ["judge.entails.model=/nowhere", "data.path=x.json"], "/nowhere"),
        ("respond", ["dry_runs=true"], "unknown key dry_runs; did you mean dry_run?"),
    ],
)
def test_what_is_wrong_is_said_as_in_the_run(
    dry: Dry, job: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [job, f"storage.root={dry.root}", "run=r", "dry_run=true", *words])
    with pytest.raises(SystemExit) as ended:
        main(job, *JOBS[job], "")
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not dry.root.exists()
