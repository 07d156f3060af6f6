"""Positives over the whole job on a real local Ray, with an endpoint of our own as the writer and the lexical judge."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.positives import positives
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from tests.jobs.test_evaluate import rows
from tests.trust.test_dry_run import tree
from trust import tables
from trust.align.positives_job import PositivesConfig
from trust.config import load
from trust.errors import ConfigError, PreflightError, TooManyFailed
from trust.respond import SamplingConfig
from trust.runs import Manifest, Run
from trust.storage import Storage

DOWN, NEVER, SECOND, PADDED = 1, 2, 3, 4  # the endpoint fails, never tags, tags the second time, says more than it must
EM, CM, LISTS, SILENT = range(6), range(6, 8), range(8, 11), range(11, 14)
ITALIAN, UNLABELLED = 14, 15
ROWS = 16
FAILED = {DOWN: "request_refused", NEVER: "no_tagged_sentence", ITALIAN: "no_refusal_sentence", UNLABELLED: "no_labels"}
WRITTEN = len(EM) + len(CM)


def sample(n: int) -> dict[str, Any]:
    task = "cm" if n in CM else "em5" if n in LISTS else "em"
    claim = f"Router R{n:02d} has {n} ports."
    answer = claim if task == "cm" else f"{n} ports"
    found = None if n == UNLABELLED else [int(n not in SILENT and n != ITALIAN)]
    texts = {"It was sold in Norway.": None if found is None else [0], f"Question {n:02d}? {claim}": found}
    return {
        "sample_id": f"d:{n:02d}",
        "parent_id": f"p:{n // 4}",
        "dataset": "d",
        "language": "it" if n == ITALIAN else "en",
        "task": task,
        "question": f"Question {n:02d}?",
        "answers": [[answer, f"{n} jacks"]],
        "docs": [{"title": "", "text": text, "score": 1.0, "answers_found": has} for text, has in texts.items()],
        "meta": {"split": "train"},
        "kind": "answerable",
        "pattern": [1],
    }


class Writer:
    """What the endpoint says; `heal` ends the failures."""

    def __init__(self) -> None:
        self.down = True

    def __call__(self, request: Request) -> Reply:
        place = request.prompt.rpartition("Question: Question ")[2][:2]
        n = int(place) if place.isdigit() else -1  # the preflight asks something else
        if n == DOWN and self.down:
            return Reply({"error": {"message": "no"}}, 400)
        said = f"Router R{n:02d} has {n} ports"
        first = request.body["seed"] == SamplingConfig(seed=42).of(f"d:{n:02d}", 0)["seed"]
        if n == NEVER or (n == SECOND and first):
            return Reply(answer(f"{said} [1]."))
        tag = "[Claim 1]" if n in CM else "[Answer Label 1]"
        text = f"{said} {tag}." if n != PADDED else f"Well. {said}. {tag} Ask me more!"
        return Reply(answer(text))


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(Writer()) as fake:
        yield fake


def variants(root: Path, name: str, parts: list[list[int]]) -> Run:
    """A run with the table variants, in these parts."""
    run = Run(Storage(), str(root), name)
    made = []
    for index, numbers in enumerate(parts):
        content = tables.to_table("variants", map(sample, numbers))
        path = f"variants/{index}.parquet"
        made.append({"path": path, "rows": content.num_rows, "bytes": run.storage.write_table(run.path(path), content)})
    manifest = Manifest("recombine", name, "f", {}, {}, {}, "now", 1, {"ok": ROWS}, {}, {"variants": made})
    run.storage.write_bytes(run.path("manifests", "recombine.json"), json.dumps(manifest.__dict__).encode())
    return run


def config(root: Path, name: str, fake: FakeEndpoint, *words: str) -> PositivesConfig:
    common = [f"storage.root={root}", f"run={name}", "judge/entails=lexical", "unit_rows=3", "max_failed=1"]
    writer = ["judge/complete=openai", f"judge.complete.engine.base_url={fake.url}", "judge.complete.model.path=gpt"]
    return load("positives", PositivesConfig, [*common, *writer, *words])


def made(run: Run) -> dict[int, dict[str, Any]]:
    return {int(row["sample_id"].removeprefix("d:")): row for row in rows(run, "positives")}


@pytest.mark.usefixtures("ray_session")
def test_positives_of_all_kinds(tmp_path: Path, endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str]) -> None:
    run = variants(tmp_path, "R", [list(range(ROWS))])
    positives(config(tmp_path, "R", endpoint))
    found = made(run)
    assert set(found) == set(range(ROWS)), "nothing is lost"
    assert {n: row["reason"] for n, row in found.items() if row["status"] == "failed"} == FAILED
    assert all(found[n]["output"] is None for n in FAILED), "a failed generation is never a refusal"
    good = found[SECOND]
    assert good["output"] == "Router R03 has 3 ports [2]."
    assert (good["model"], good["prompt"], good["draw"], good["output_tokens"]) == ("gpt", "positive", 0, 5)
    assert (good["parent_id"], good["meta"], good["docs"][1]["answers_found"]) == ("p:0", {"split": "train"}, [1])
    assert found[PADDED]["output"] == "Router R04 has 4 ports [2]."
    assert (found[6]["output"], found[6]["model"]) == ("Router R06 has 6 ports [2].", "gpt")
    assert (found[8]["output"], found[8]["model"], found[8]["output_tokens"]) == ("8 ports [2].", "assembled", None)
    assert found[11]["model"] == "refusal"
    assert found[11]["output"].startswith("I apologize, but I couldn't find an answer")

    manifest = run.manifest("positives")
    assert manifest.counts == {"ok": ROWS - len(FAILED), "failed": len(FAILED)}
    totals = manifest.totals
    kinds = {key: totals[f"positives_{key}"] for key in ("written", "assembled", "refusal")}
    assert kinds == {"written": WRITTEN - 2, "assembled": len(LISTS), "refusal": len(SILENT)}
    assert totals["texts_written"] == WRITTEN - 1 + 1 + 2, "none for DOWN, one more for SECOND, two for NEVER"
    assert totals["refused_texts:no_tagged_sentence"] == 1 + 3
    assert totals["sentences_deleted"] == 2
    # Beside the texts, of each good answer: whether it is entailed by what it cites, and each claim of cm.
    assert totals["asks_asked"] == 1 + totals["texts_written"] + (WRITTEN - 2) + len(LISTS) + len(CM)
    assert len(endpoint.requests) == totals["texts_written"] + 2, "DOWN's, and the preflight's"
    card = json.loads((tmp_path / "R" / "cards" / "positives.json").read_text())
    assert card["failed"] == dict.fromkeys(FAILED.values(), 1)
    assert (card["rows_in"], card["ok"]) == (ROWS, ROWS - len(FAILED))
    printed = capsys.readouterr().out
    assert "failed: 1 no_refusal_sentence" in printed
    assert "refused texts:no tagged sentence: 4" in printed

    # The same words do nothing. Failed rows are done again, with other seeds: the endpoint is well now.
    positives(config(tmp_path, "R", endpoint))
    assert run.manifest("positives") == manifest
    endpoint.reply.down = False  # type: ignore[attr-defined]
    asked = len(endpoint.requests)
    positives(config(tmp_path, "R", endpoint, "retry_failed=true"))
    again = made(run)
    assert again[DOWN]["output"] == "Router R01 has 1 ports [2]."
    assert {n: row["reason"] for n, row in again.items() if row["status"] == "failed"} == {
        n: reason for n, reason in FAILED.items() if n != DOWN
    }
    seeds = {n: [r.body["seed"] for r in endpoint.requests if f"Question {n:02d}?" in r.prompt] for n in (DOWN, NEVER)}
    assert [len(seeds[n]) for n in (DOWN, NEVER)] == [2, 6]
    assert len(set(seeds[NEVER])) == 6
    assert len(endpoint.requests) - asked == 1 + 3 + 1, "and the preflight's"
    after = run.manifest("positives")
    assert after.counts == {"ok": ROWS - 3, "failed": 3}
    assert (after.totals.get("failed:request_refused", 0), after.totals["positives_written"]) == (0, WRITTEN - 1)
    assert after.totals["texts_written"] == totals["texts_written"] + 1 + 3
    with pytest.raises(PreflightError, match="already holds positives rows of another config"):
        positives(config(tmp_path, "R", endpoint, "max_sentences=3"))


@pytest.mark.usefixtures("ray_session")
def test_one_shard_and_three_give_the_same_table(tmp_path: Path, endpoint: FakeEndpoint) -> None:
    order = [*range(9, ROWS), *range(9)]
    found = []
    for name, parts in (("one", [list(range(ROWS))]), ("three", [order[:2], order[2:12], order[12:]])):
        run = variants(tmp_path / name, "R", parts)
        positives(config(tmp_path / name, "R", endpoint, f"unit_rows={5 if name == 'one' else 2}"))
        found.append(made(run))
    assert found[0] == found[1]


@pytest.mark.usefixtures("ray_session")
def test_too_many_failed_rows_are_told_with_their_reasons(tmp_path: Path, endpoint: FakeEndpoint) -> None:
    variants(tmp_path, "R", [[DOWN, NEVER, 5, ITALIAN]])
    with pytest.raises(
        TooManyFailed, match=r"3 of 4 rows failed \(no_refusal_sentence: 1, no_tagged_sentence: 1, request"
    ):
        positives(config(tmp_path, "R", endpoint, "max_failed=0.1"))


@pytest.mark.usefixtures("ray_session", "nltk_data")
@pytest.mark.parametrize("compat", ["strict", "upstream"])
def test_lists_need_no_writer(tmp_path: Path, compat: str) -> None:
    run = variants(tmp_path, "R", [[0, *LISTS, *SILENT]])
    words = [f"storage.root={tmp_path}", "run=R", "judge/entails=lexical", "max_failed=1", f"compat={compat}"]
    positives(load("positives", PositivesConfig, words))
    found = made(run)
    assert (found[0]["reason"], found[0]["model"]) == ("no_writer", "none")
    assert [found[n]["status"] for n in (*LISTS, *SILENT)] == ["ok"] * 6


def test_a_dry_run_shows_the_first_prompt_and_writes_nothing(
    tmp_path: Path, endpoint: FakeEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    variants(tmp_path, "R", [list(range(ROWS))])
    before = tree(tmp_path)
    priced = ["judge.complete.engine.price_in=1", "judge.complete.engine.price_out=2"]
    positives(config(tmp_path, "R", endpoint, "dry_run=true", *priced))
    assert tree(tmp_path) == before
    printed = capsys.readouterr().out
    kinds = "8 written by a model, 4 refusal, 3 assembled, 1 failed (no_labels), of all 16 rows"
    assert f"positives:    {kinds}" in printed
    assert "texts:        about 8, an estimate; up to 3 times as many" in printed
    assert "cost:" in printed
    assert "[user]\nWrite an answer to a question" in printed
    assert printed.rstrip().endswith("Short answers:\n[Answer Label 1]: 0 ports\n\nAnswer:\n-------- end")
    assert len(endpoint.requests) == 1, "the preflight alone asked"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["from_table=variant"], "did you mean variants?"),
        (["writing.tries=0"], "writing.tries=0: must be at least 1"),
        (["writing.temperature=0"], "writing.tries=3: at temperature 0 all tries are the same"),
        (["writing.temperature=-1"], "writing.temperature=-1"),
        (["writing.max_token=1"], "did you mean writing.max_tokens?"),
        (["max_citations.em=4"], "max_citations.em=4: from 1 to 3, as trust_score counts no more in a sentence"),
        (["max_citations.qa=1"], "max_citations=qa: unknown value"),
        (["max_sentences=0"], "max_sentences=0: must be at least 1"),
        (["refusals.de=Paris."], "refusals.de='Paris.': our own detector does not take this for a refusal"),
        (["refusals.de=''"], "refusals.de='': our own detector"),
        (["refusals.zh_TW='抱歉'"], "refusals.zh_TW: give it for the language, zh"),
        (["retry_failed=true", "overwrite=true"], "give one of them"),
        (["judge/entails=none"], "judge/entails=none: unknown value"),
    ],
)
def test_a_wrong_config_is_named(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load("positives", PositivesConfig, ["judge.entails.model=x", *words])
    assert message in str(error.value)


def test_without_the_check_no_judge_is_needed_and_writers_may_be_left_out() -> None:
    made = load("positives", PositivesConfig, ["judge.entails.model=x", "check=false"])
    assert made.judge.chosen() == {}
    assert (made.from_table, made.max_citations) == ("variants", {"em": 2, "em5": 1, "cm": 2})


def test_the_table_to_read_has_to_be_there(tmp_path: Path) -> None:
    words = [f"storage.root={tmp_path}", "run=R", "judge/entails=lexical"]
    with pytest.raises(
        PreflightError, match=r"run=R has no finished variants table .*run jobs\.recombine for it first"
    ):
        positives(load("positives", PositivesConfig, words))
