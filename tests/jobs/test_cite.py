"""From a closed-book run to cited responses and their scores, over the whole jobs on a real local Ray."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.cite import cite
from jobs.evaluate import evaluate
from jobs.prepare import prepare
from jobs.respond import respond
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from tests.jobs.test_evaluate import rows
from tests.trust.ask.nli_models import write
from trust.cite import CiteConfig
from trust.config import load
from trust.errors import PreflightError
from trust.evaluate import EvaluateConfig
from trust.prepare.job import PrepareConfig
from trust.respond import RespondConfig
from trust.runs import Run

ROWS, DOWN, REFUSED = 10, 4, 7


def number(request: Request) -> int:
    return int(request.prompt.partition("router R")[2][:2] or -1)


def reply(request: Request) -> Reply:
    """Two sentences about router `n`, from memory; one refusal, and one request that is refused itself."""
    n = number(request)
    if n == DOWN:
        return Reply({"error": {"message": "no"}}, 400)
    said = f"Router R{n:02d} has {n} ports. It was sold in Norway."
    return Reply(answer("I apologize, but I couldn't find an answer to your question." if n == REFUSED else said))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, ray_session: None) -> Path:
    """A run `demo` with samples, and closed-book responses to them in a run `closed`."""
    folder = tmp_path_factory.mktemp("runs")
    items = []
    for n in range(ROWS):
        texts = ["The office is in Oslo.", f"Router R{n:02d} has {n} ports.", "It was sold in Norway.", "Never shown."]
        docs = [{"text": text, "answers_found": [int("ports" in text)]} for text in texts]
        question = f"How many ports has router R{n:02d}?"
        items.append({"id": f"{n:02d}", "question": question, "answers": [[f"{n} ports"]], "docs": docs})
    (folder / "data.json").write_text(json.dumps(items))
    common = [f"storage.root={folder}", "max_failed=1"]
    words = ["run=demo", f"data.path={folder}/data.json", "data.language=en", "task=em"]
    prepare(load("prepare", PrepareConfig, [*common, *words]))
    with FakeEndpoint(reply) as fake:
        words = ["engine=openai", f"engine.base_url={fake.url}", "model=served", "model.path=m", "prompt=closedbook"]
        respond(load("respond", RespondConfig, [*common, *words, "prompt.shots=0", "from_run=demo", "run=closed"]))
    return folder


def config(root: Path, name: str, *words: str) -> CiteConfig:
    common = [f"storage.root={root}", "from_run=closed", f"run={name}", "max_failed=1", "unit_rows=4", "cite.docs=3"]
    return load("cite", CiteConfig, [*common, *words])


def cited(root: Path, name: str, *words: str) -> tuple[Run, dict[str, dict[str, Any]]]:
    made = config(root, name, *words)
    cite(made)
    run = Run.of(made)
    return run, {row["sample_id"].removeprefix("data:"): row for row in rows(run, "responses")}


def test_by_entailment_then_evaluated(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("cite=entailment", "judge/entails=lexical")
    run, found = cited(root, "postattr", *words)
    assert "16 of 16 sentences got a citation" in capsys.readouterr().out
    assert len(found) == ROWS
    good = found["03"]
    assert good["output"] == "Router R03 has 3 ports [2]. It was sold in Norway [3]."
    assert (good["model"], good["prompt"], good["draw"], good["output_tokens"]) == ("m", "closedbook+postattr", 0, 5)
    assert [doc["text"] for doc in good["docs"]] == [
        "The office is in Oslo.",
        "Router R03 has 3 ports.",
        "It was sold in Norway.",
    ]
    assert [doc["answers_found"] for doc in good["docs"]] == [[0], [1], [0]]
    assert found[f"{REFUSED:02d}"]["output"].endswith("answer to your question.")
    down = found[f"{DOWN:02d}"]
    assert (down["status"], down["reason"], down["output"]) == ("failed", "request_refused", None)
    choices = {(row["sample_id"], row["sentence"]): row for row in rows(run, "citations")}
    assert len(choices) == 2 * (ROWS - 2)
    chosen = choices["data:03", 0]
    assert (chosen["text"], chosen["doc"], chosen["prompt"]) == ("Router R03 has 3 ports.", 2, "closedbook+postattr")
    assert chosen["scores"][1] == max(chosen["scores"]) == 1

    scored = load(
        "evaluate",
        EvaluateConfig,
        [f"storage.root={root}", "run=postattr", "judge/entails=lexical", "max_failed=1", "replicates=100"],
    )
    evaluate(scored)
    summary = json.loads((root / "postattr" / "summary.json").read_text())
    assert (summary["prompt"], summary["num_scored"]) == ("closedbook+postattr", ROWS - 1)
    assert summary["answered_citation_f1"] == 100
    totals = run.manifest("evaluate").totals
    assert (totals["asks_asked"], totals["asks_reused"]) == (0, 16), "the judge has given these verdicts already"
    page = (root / "postattr" / "report.html").read_text()
    assert "closedbook+postattr" in page
    assert page.count("request_refused") >= 2, "of the jobs respond and cite"

    # The same words again do nothing; the failed row, done again, fails for the same reason; other words are refused.
    before = run.manifest("cite")
    cited(root, "postattr", *words)
    assert run.manifest("cite") == before
    cited(root, "postattr", *words, "retry_failed=true")
    again = run.manifest("cite")
    assert (again.retries, again.counts) == (1, before.counts)
    with pytest.raises(
        PreflightError, match=r"run=postattr already holds cite rows of another config \(cite\.docs was 3"
    ):
        cite(config(root, "postattr", *words, "cite.docs=2"))


@pytest.mark.usefixtures("nltk_data")
def test_by_embedding_with_a_model(root: Path, tmp_path: Path) -> None:
    model = write(tmp_path / "model")
    run, found = cited(root, "postcite", f"judge.embed.model={model}", "compat=upstream")
    assert found["03"]["prompt"] == "closedbook+postcite"
    totals = run.manifest("cite").totals
    # 9 responses (the refusal too, as published) to 3 documents each, two of which are everybody's.
    assert totals["sentences"] == totals["sentences_cited"] == 17
    assert totals["asks_asked"] == 9 * 2 + 1 + 1 + 1
    for row in rows(run, "citations"):
        assert all(-1 <= score <= 1 for score in row["scores"])
        assert row["doc"] == row["scores"].index(max(row["scores"])) + 1
        if row["text"] in {doc["text"] for doc in found[row["sample_id"][-2:]]["docs"]}:
            assert f"[{row['doc']}] {row['text']}" in found[row["sample_id"][-2:]]["output"]


def test_nothing_starts_without_responses_samples_or_a_model(root: Path, tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"run=none has no finished responses table .*jobs\.respond"):
        cite(load("cite", CiteConfig, [f"storage.root={root}", "from_run=none", "run=x"]))
    with pytest.raises(PreflightError, match="there is no such folder"):
        cite(config(root, "x", f"judge.embed.model={tmp_path}/none"))
    manifest = root / "demo" / "manifests" / "prepare.json"
    kept = manifest.read_text()
    manifest.unlink()
    try:
        with pytest.raises(PreflightError, match=r"run=demo has no finished samples table .*jobs\.prepare"):
            cite(config(root, "x", "cite=entailment", "judge/entails=lexical"))
    finally:
        manifest.write_text(kept)
    assert not (root / "x" / "manifests").exists()


def test_outputs_of_ones_own_as_the_readme_has_it(root: Path, repo: Path) -> None:
    docs = [{"text": "Lyon is on the Rhone."}, {"title": "Paris", "text": "Paris is the capital."}]
    row = {
        "id": "q1",
        "question": "What is Paris?",
        "language": "en",
        "docs": docs,
        "output": "Paris is the capital [1].",
    }
    (root / "answers.json").write_text(json.dumps([row]))
    section = (repo / "README.md").read_text().split("## Citations added afterwards")[1].split("\n## ")[0]
    words = section.split("`python -m jobs.prepare ")[1].split("`")[0].replace("answers.json", f"{root}/answers.json")
    prepare(load("prepare", PrepareConfig, [*words.split(), f"storage.root={root}"]))
    commands = [line.split() for line in section.splitlines() if line.startswith("python -m jobs.cite ")]
    (entailment,) = [words[3:] for words in commands if "cite=entailment" in words]
    own = ["from_run=mine", "run=own", "judge/entails=lexical", f"storage.root={root}"]
    made = load("cite", CiteConfig, [*entailment, *own])
    cite(made)
    (found,) = rows(Run.of(made), "responses")
    assert found["output"] == "Paris is the capital [2]."
    assert found["prompt"] == "unknown+postattr"
