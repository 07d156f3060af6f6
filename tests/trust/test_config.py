"""Strict composition: every wrong key and value is an error that names the right one."""

from pathlib import Path

import pytest
import yaml

from trust.ask.lexical import LexicalConfig
from trust.ask.t5 import T5Config
from trust.cite import CiteConfig
from trust.config import CONF, job_groups, load
from trust.errors import ConfigError
from trust.evaluate import EvaluateConfig
from trust.prepare.job import PrepareConfig
from trust.respond import RespondConfig

JOBS = {"prepare": PrepareConfig, "respond": RespondConfig, "evaluate": EvaluateConfig, "cite": CiteConfig}
WANTED = {"cite": ["from_run=x"]}  # what a job cannot do without


def evaluate(*words: str) -> EvaluateConfig:
    return load("evaluate", EvaluateConfig, list(words))


class TestLoad:
    def test_defaults_are_the_dataclasses(self) -> None:
        assert evaluate().judge.entails == T5Config()

    def test_a_group_chooses_the_dataclass(self) -> None:
        assert evaluate("judge/entails=lexical", "judge.entails.threshold=0.5").judge.entails == LexicalConfig(
            threshold=0.5
        )

    @pytest.mark.parametrize(
        ("word", "message"),
        [
            ("judge.entails.modle=x", "judge.entails.modle; did you mean judge.entails.model?"),
            ("+judge.entails.modle=x", "judge.entails.modle; did you mean judge.entails.model?"),
            ("++judge.entails.modle=x", "judge.entails.modle; did you mean judge.entails.model?"),
            ("judge.entails.threshold=0.5", "unknown key judge.entails.threshold"),
            ("unit_row=5", "did you mean unit_rows?"),
            ("+storage.rot=x", "did you mean storage.root?"),
            ("metrics.trust_score.at_most_citation=3", "did you mean metrics.trust_score.at_most_citations?"),
            ("metrics=[trust_scor]", "unknown value; did you mean trust_score?"),
            ("judge/entails=lexicle", "did you mean lexical?"),
            ("compat=uptream", "did you mean upstream?"),
            ("unit_rows=many", "unit_rows='many': must be of type int"),
            ("unit_rows=0", "must be at least 1"),
            ("max_failed=2", "a share between 0 and 1"),
            ("run=a/b", "no slash"),
            ("data.task=emm", "did you mean em"),
            ("storage.root=null", "storage.root=None: must be of type str, not null"),
            ("~judge.entails.model", "keys cannot be deleted"),
            ("run=a,b", "one job runs one config"),
            ("run", "not of the form key=value"),
            ("replicates=3", "at least 100"),
            ("cluster.min_actors=3", "at most cluster.max_actors"),
            ("cluster.units_in_flight=0", "must be at least 1"),
            ("cluster.max_restarts=-5", "cannot be negative"),
            ("cluster.actor_cpus=0", "must be a number above 0"),
            ("cluster.actor_cpus=nan", "must be a number above 0"),
            ("hydra.run.dir=x", "hydra.run.dir=x: unknown key"),
            ("storage.root=''", "storage.root is empty"),
            ("metrics=[]", "metrics is empty"),
            ("judge=lexical", "did you mean judge/entails=lexical?"),
            ("model=hf", "jobs.evaluate has no group model"),
            ("data.path=~/x.json", "cannot be read as key=value; quote"),
            ("data.path=/a b/c=d.json", "data.path=/a b/c=d.json: cannot be read"),
            ("storage=s3", "storage.root is not set"),
        ],
    )
    def test_a_wrong_word_names_the_right_one(self, word: str, message: str) -> None:
        with pytest.raises(ConfigError) as error:
            evaluate(word)
        assert message in str(error.value)

    def test_integers_pass_as_floats_and_names_may_look_like_numbers(self) -> None:
        config = evaluate("max_failed=1", "run=2024")
        assert config.max_failed == 1.0
        assert config.run == "2024"

    def test_a_quoted_value_may_hold_anything(self) -> None:
        path = "/a b/c=d, [e]'s.json"
        assert load("prepare", PrepareConfig, [f'data.path="{path}"']).data.path == path

    def test_columns_are_free_keys(self) -> None:
        config = load("prepare", PrepareConfig, ["data.columns.question=input.query"])
        assert config.data.columns == {"question": "input.query"}


COMPLETER = ["judge/complete=openai", "judge.complete.engine.base_url=http://host/v1", "judge.complete.model.path=m"]
OWN = {  # what only a user can give
    "[rules]": ["metrics.rules.rules={r: {contains: x}}"],
    "[geval]": COMPLETER,
    "[pairwise]": COMPLETER,
    "[ragas]": COMPLETER,
    "[bertscore]": ["judge/embed=token"],
    "[bartscore]": ["judge/logprob=bart"],
    "[gptscore]": ["judge/logprob=bart", "metrics.gptscore.aspects=[fluency]"],
    "[code]": ["metrics.code.functions={f: tests.kills:job}", "metrics.code.modules=[tests]"],
}


def test_every_option_of_every_group_composes_and_validates() -> None:
    checked = 0
    for job, schema in JOBS.items():
        for group in job_groups(job):
            for file in sorted((CONF / group).glob("*.yaml")):
                value = f"[{file.stem}]" if group == "metrics" else file.stem
                words = [f"{group}={value}", *WANTED.get(job, [])]
                words += _mandatory(file, group) + OWN.get(value, [])
                load(job, schema, words)
                checked += 1
    assert checked >= 30


def _mandatory(file: Path, group: str) -> list[str]:
    def below(content: dict, path: str) -> list[str]:
        words = []
        for key, value in content.items():
            if isinstance(value, dict):
                words += below(value, f"{path}.{key}")
            elif value == "???":
                words.append(f"{path}.{key}={'http://host/v1' if key == 'base_url' else 'x'}")
        return words

    return below(yaml.safe_load(file.read_text()), group.replace("/", "."))


def test_every_config_opens_with_a_comment_and_a_command() -> None:
    files = sorted(CONF.rglob("*.yaml"))
    assert len(files) >= 30
    for file in files:
        head = [line for line in file.read_text().splitlines() if line.startswith("#")]
        assert any("python -m jobs." in line for line in head), f"{file.name} shows no command"
