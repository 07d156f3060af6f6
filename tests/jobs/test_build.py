"""From questions and a corpus to preference pairs: the README's commands over the demo, all of it on s3://, with an
endpoint of our own as the model that rates, writes and answers, and MiniLM's real vectors."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from jobs.curate import curate
from jobs.label import label
from jobs.negatives import negatives
from jobs.pair import pair
from jobs.positives import positives
from jobs.prepare import prepare
from jobs.recombine import recombine
from jobs.respond import respond
from jobs.retrieve import retrieve
from tests.conftest import S3_SECRET
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from tests.jobs.test_evaluate import rows
from trust.align.curate_job import CurateConfig
from trust.align.label_job import LabelConfig
from trust.align.negatives_job import NegativesConfig
from trust.align.pair_job import PairConfig
from trust.align.positives_job import PositivesConfig
from trust.align.recombine_job import RecombineConfig
from trust.config import load
from trust.prepare.job import PrepareConfig
from trust.respond import RespondConfig
from trust.retrieve.config import RetrieveConfig
from trust.runs import Run
from trust.storage import Storage

JOBS: dict[str, tuple[Any, Any]] = {
    "prepare": (prepare, PrepareConfig),
    "curate": (curate, CurateConfig),
    "retrieve": (retrieve, RetrieveConfig),
    "label": (label, LabelConfig),
    "recombine": (recombine, RecombineConfig),
    "positives": (positives, PositivesConfig),
    "respond": (respond, RespondConfig),
    "negatives": (negatives, NegativesConfig),
    "pair": (pair, PairConfig),
}
_LABEL = re.compile(r"^\[(Answer Label|Claim) (\d+)\]: (.*)$", re.M)


def commands(readme: str) -> list[list[str]]:
    """The words of the README's commands, in order."""
    section = readme.split("## Build data to align with")[1].split("\n## ", maxsplit=1)[0]
    block = section.split("```\n")[1].replace("\\\n", " ")
    return [shlex.split(line, comments=True)[2:] for line in block.splitlines() if line.startswith("python -m ")]


def said(request: Request) -> Reply:
    """Rates clusters; writes a sentence a label; answers questions with something that no document says."""
    if '"demand"' in request.prompt:
        return Reply(answer('{"topic": "facts", "demand": 5}'))
    if labels := _LABEL.findall(request.prompt.rpartition("Now your task")[2]):
        return Reply(answer(" ".join(f"{text.rstrip('.')} [{kind} {number}]." for kind, number, text in labels)))
    return Reply(answer("It was built by the moon people [1]."))


def test_the_makefile_builds_what_the_readme_shows(repo: Path) -> None:
    recipe = (repo / "Makefile").read_text().split("build: setup\n")[1].split("\n\n")[0]
    made = [shlex.split(line)[2:] for line in recipe.splitlines()]
    assert made == commands((repo / "README.md").read_text())


@pytest.mark.usefixtures("ray_session")
def test_the_chain_on_s3(repo: Path, s3: str, s3_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = f"{s3}/runs"
    where = ["storage=s3", f"storage.root={root}", f"storage.endpoint={s3_server}"]
    with FakeEndpoint(said) as fake:
        writer = [
            "judge/complete=openai",
            f"judge.complete.engine.base_url={fake.url}",
            "judge.complete.model.path=gpt",
        ]
        server = ["engine=openai", f"engine.base_url={fake.url}", "model=served", "model.path=gpt"]
        for module, *words in commands((repo / "README.md").read_text()):
            name = module.removeprefix("jobs.")
            told = [word for word in words if word not in ("judge/complete=smollm2", "model=smollm2")]
            told += writer if "judge/complete=smollm2" in words else server if "model=smollm2" in words else []
            job, schema = JOBS[name]
            job(load(name, schema, [*told, *where]))
    storage = Storage(s3_server)
    runs = {
        name: Run(storage, root, f"build{name}")
        for name in ("", "-found", "-labelled", "-oracle", "-answers", "-pairs")
    }
    seeds = rows(runs[""], "seeds")
    assert {row["topic"] for row in seeds} == {"facts"}
    variants = rows(runs["-labelled"], "variants")
    assert {row["parent_id"] for row in variants} <= {row["sample_id"] for row in seeds}
    assert {row["kind"] for row in variants} == {"supported", "unanswerable"}
    written = [row for row in rows(runs["-labelled"], "positives") if row["status"] == "ok"]
    assert {row["model"] for row in written} == {"gpt", "assembled", "refusal"}
    errors = rows(runs["-answers"], "errors")
    assert len(errors) == len(variants)
    assert {row["primary_type"] for row in errors} >= {"over_responsiveness"}
    pairs = rows(runs["-pairs"], "pairs")
    good = {row["sample_id"]: row["output"] for row in written}
    assert pairs
    for row in pairs:
        assert row["chosen"] == [{"role": "assistant", "content": good[row["sample_id"]]}]
        assert row["rejected"] == [{"role": "assistant", "content": "It was built by the moon people [1]."}]
        assert row["prompt"][-1]["role"] == "user"
    assert rows(runs["-pairs"], "sft")
    cards = {name: run.storage.list_names(run.path("cards")) for name, run in runs.items()}
    assert cards["-labelled"] == ["label.json", "positives.json", "recombine.json"]
    card = json.loads(storage.read_bytes(runs["-pairs"].path("cards", "pair.json")))
    assert card["rows_in"] == card["ok"] + sum(card["dropped"].values()) + sum(card["failed"].values())
    out = capsys.readouterr()
    assert S3_SECRET not in out.out + out.err
