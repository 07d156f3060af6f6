from pathlib import Path

import pytest
import yaml

from trust.config import build
from trust.errors import ConfigError
from trust.prepare.config import DataConfig, dataset_name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data/asqa.json", "asqa"),
        ("/data/asqa.v2.jsonl.gz", "asqa.v2"),
        ("s3://bucket/sets/eli5/", "eli5"),
        ("/data/qampari/part-*.parquet", "qampari"),
        ("/data/[ab]/x.json", "data"),
        ("/data/.json", ".json"),
    ],
)
def test_name_does_not_depend_on_how_rows_are_spread_over_files(path: str, name: str) -> None:
    assert dataset_name(DataConfig(path=path)) == name
    assert dataset_name(DataConfig(path=path, name="mine")) == "mine"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"outputs": "requires"}, "did you mean require"),
        ({"task": "em4"}, "did you mean em"),
        ({"kind": "thrust"}, "did you mean trust"),
        ({"columns": {"quesion": "q"}}, "did you mean question"),
        ({"columns": {"question": "q", "id": "i", "output": "q"}}, "question and output are both q"),
        ({"columns": {"doc_title": "body", "doc_text": "body"}}, "doc_title and doc_text are both body"),
        ({"max_docs": 0}, "at least 1"),
        ({"language": " "}, "data.language is empty"),
    ],
)
def test_wrong_values_are_named(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**values)


def test_every_data_config_is_valid_and_opens_with_its_command(repo: Path) -> None:
    files = sorted((repo / "conf" / "data").glob("*.yaml"))
    assert {file.stem for file in files} >= {"trust", "asqa", "qampari", "eli5", "expertqa", "custom"}
    for file in files:
        text = file.read_text()
        assert text.startswith("#"), file
        assert f" data={file.stem} " in text, file
        build(DataConfig, yaml.safe_load(text), "data")


def test_published_sets_know_their_task(repo: Path) -> None:
    tasks = {
        name: yaml.safe_load((repo / "conf" / "data" / f"{name}.yaml").read_text())["task"]
        for name in ("asqa", "qampari", "eli5", "expertqa")
    }
    assert tasks == {"asqa": "em", "qampari": "em5", "eli5": "cm", "expertqa": "cm"}
