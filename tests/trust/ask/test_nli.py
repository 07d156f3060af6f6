"""The NLI judge says what its model says, whichever way that one orders and names its classes."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertModel

from tests.trust.ask.nli_models import LABELS, READS, rename, write
from trust.ask import AskFailed, Verdict
from trust.ask.nli import LANGUAGES, NliConfig, NliJudge, entailment_class
from trust.errors import ConfigError, PreflightError
from trust.storage import Storage

PREMISES = ["The river flows out of the lake.", "Paris.", "", "東京は日本の首都です。", "القاهرة عاصمة مصر"]
HYPOTHESES = ["The lake is big.", "Paris is in France", "東京は首都"]
PAIRS = [{"premise": premise, "hypothesis": text} for premise in PREMISES for text in HYPOTHESES]


def judge(folder: Path, **options: Any) -> NliJudge:
    return NliJudge(NliConfig(model=str(folder), **{"languages": None, "threads": 2} | options))


def straight(folder: Path, pair: dict[str, str], **options: Any) -> torch.Tensor:
    """Probabilities of the classes, by one call of the model."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encoded = tokenizer(pair["premise"], pair["hypothesis"], return_tensors="pt", **options)
    with torch.no_grad():
        return model(**encoded).logits[0].softmax(-1)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2"])
def test_batches_give_what_one_call_a_pair_gives(tmp_path: Path, kind: str) -> None:
    folder = write(tmp_path, kind, seed=3)
    verdicts = judge(folder, max_batch_tokens=90).answer_batch(PAIRS)
    for pair, verdict in zip(PAIRS, verdicts, strict=True):
        wanted = straight(folder, pair)
        assert verdict.p_yes == pytest.approx(float(wanted[0]), abs=1e-4)
        assert verdict.label == int(wanted.argmax() == 0)
        assert not verdict.truncated
    assert {verdict.label for verdict in verdicts} == {0, 1}


@pytest.mark.parametrize("labels", itertools.permutations(LABELS))
def test_entailment_is_found_wherever_it_stands(tmp_path: Path, labels: tuple[str, ...]) -> None:
    folder = write(tmp_path, labels=[name.upper() for name in labels])
    at = labels.index("entailment")
    for pair, verdict in zip(PAIRS, judge(folder).answer_batch(PAIRS), strict=True):
        wanted = straight(folder, pair)
        assert verdict.p_yes == pytest.approx(float(wanted[at]), abs=1e-4)
        assert verdict.label == int(wanted.argmax() == at)


@pytest.mark.parametrize(
    ("names", "wanted", "at"),
    [
        (["entailment", "not_entailment"], None, 0),
        (["not_entailment", "entailment"], None, 1),
        (["not entailed", "Entailed"], None, 1),
        (["LABEL_0", "LABEL_1", "LABEL_2"], "LABEL_2", 2),
        (["LABEL_0", "LABEL_1", "LABEL_2"], "1", 1),
        (["contradiction", "neutral", "entailment"], "NEUTRAL", 1),
        (["c", "e", "n"], "e", 1),
    ],
)
def test_names_of_classes(names: list[str], wanted: str | None, at: int) -> None:
    settings = {"id2label": {str(i): name for i, name in enumerate(names)}}
    assert entailment_class(settings, wanted, "m") == at


@pytest.mark.parametrize(
    ("settings", "wanted", "said"),
    [
        ({"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}}, None, r"2=LABEL_2, none .*entailment_label"),
        ({}, None, r"0=LABEL_0, 1=LABEL_1, none of which says entailment"),
        ({"id2label": {"0": "entailment", "1": "entails"}}, None, "several of which say entailment"),
        ({"id2label": {"0": "entailment"}}, None, "needs one for entailment and another"),
        ({"id2label": {"0": "a", "1": "b"}}, "c", "entailment_label=c is none of them"),
        (
            {"id2label": {"0": "entailment", "1": "x"}, "label2id": {"entailment": 1, "x": 0}},
            None,
            "label2id says .*entailment_label",
        ),
    ],
)
def test_classes_that_do_not_say_which_is_entailment(settings: dict[str, Any], wanted: str | None, said: str) -> None:
    with pytest.raises(PreflightError, match=said):
        entailment_class(settings, wanted, "m")


def test_a_config_that_does_not_tell_is_refused_before_loading(tmp_path: Path) -> None:
    folder = rename(write(tmp_path), id2label=None, label2id=None)
    with pytest.raises(PreflightError, match=r"set judge\.entails\.entailment_label"):
        NliConfig(model=str(folder), languages=None).preflight()
    NliConfig(model=str(folder), languages=None, entailment_label="0").preflight()


def test_a_model_without_a_classifier_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    BertModel(BertConfig(vocab_size=400, max_position_embeddings=READS, **small)).save_pretrained(folder)
    rename(folder, id2label={"0": "entailment", "1": "other"}, vocab_size=400)
    with pytest.raises(PreflightError, match="is a BertModel, no sequence-classification model"):
        NliConfig(model=str(folder), languages=None).preflight()
    with pytest.raises(PreflightError, match="weights lack classifier"):
        judge(folder)


def test_a_threshold_in_place_of_the_most_likely_class(tmp_path: Path) -> None:
    folder = write(tmp_path)
    scores = sorted(verdict.p_yes for verdict in judge(folder).answer_batch(PAIRS))
    middle = (scores[6] + scores[7]) / 2
    verdicts = judge(folder, threshold=middle).answer_batch(PAIRS)
    assert [verdict.label for verdict in verdicts] == [int(verdict.p_yes >= middle) for verdict in verdicts]
    assert sum(verdict.label for verdict in verdicts) == len(PAIRS) - 7


@pytest.mark.parametrize(
    ("kind", "states_limit"), [("bert", True), ("bert", False), ("roberta", False), ("deberta-v2", False)]
)
def test_only_the_premise_is_cut_and_the_verdict_says_so(tmp_path: Path, kind: str, states_limit: bool) -> None:
    folder = write(tmp_path, kind, states_limit=states_limit)
    long, hypothesis = "The lake " * 60, "Paris is the capital."
    whole = {"premise": "Paris.", "hypothesis": hypothesis}
    cut, short, too_long = judge(folder).answer_batch(
        [{"premise": long, "hypothesis": hypothesis}, whole, {"premise": "Paris.", "hypothesis": long}]
    )
    wanted = straight(folder, {"premise": long, "hypothesis": hypothesis}, truncation="only_first", max_length=READS)
    assert isinstance(cut, Verdict)
    assert cut.truncated
    assert cut.p_yes == pytest.approx(float(wanted[0]), abs=1e-4)
    assert isinstance(short, Verdict)
    assert not short.truncated
    assert isinstance(too_long, AskFailed)
    assert too_long.reason == "hypothesis_too_long"


def test_the_length_is_a_setting_within_what_the_model_reads(tmp_path: Path) -> None:
    folder = write(tmp_path)
    pair = {"premise": "Paris is the capital of France. " * 2, "hypothesis": "Paris is the capital."}
    assert not judge(folder).answer_batch([pair])[0].truncated
    assert judge(folder, max_length=16).answer_batch([pair])[0].truncated
    with pytest.raises(PreflightError, match=f"max_length=65: .* reads at most {READS}"):
        judge(folder, max_length=READS + 1)


def test_bfloat16_comes_close(tmp_path: Path) -> None:
    folder = write(tmp_path, "deberta-v2")
    wide = [verdict.p_yes for verdict in judge(folder).answer_batch(PAIRS)]
    narrow = [verdict.p_yes for verdict in judge(folder, dtype="bfloat16").answer_batch(PAIRS)]
    assert narrow == pytest.approx(wide, abs=0.1)
    assert narrow != wide


def test_scores_that_overflow_are_failures(tmp_path: Path) -> None:
    made = judge(write(tmp_path))
    with torch.no_grad():
        made._model.classifier.bias[1] = float("nan")
    assert [getattr(answer, "reason", None) for answer in made.answer_batch(PAIRS)] == ["judge_overflow"] * len(PAIRS)


def test_identity_is_of_weights_and_what_decides_a_label(tmp_path: Path) -> None:
    def of(folder: Path, **options: Any) -> str:
        return NliConfig(model=str(folder), **{"languages": None} | options).fingerprint()

    folder, other = write(tmp_path / "a"), write(tmp_path / "b", seed=1)
    first = of(folder)
    assert of(folder, batch_size=3, gpus=1, threads=1, languages=["ja"]) == first
    changes = [{"dtype": "bfloat16"}, {"threshold": 0.5}, {"max_length": 32}, {"entailment_label": "1"}]
    assert len({first, of(other), *(of(folder, **change) for change in changes)}) == 6
    assert judge(folder).fingerprint == first


def test_languages_are_said_for_each_model(tmp_path: Path) -> None:
    assert {"ar", "ja", "ko", "sw", "zh"} < set(LANGUAGES)
    with pytest.raises(ConfigError, match=r"say which languages org/mine is for.*languages=\[en\]"):
        NliConfig(model="org/mine")
    assert NliConfig(model="org/mine", languages=["en"]).languages == ["en"]


@pytest.mark.parametrize(
    "options", [{"threshold": 0}, {"threshold": 2}, {"max_length": 3}, {"dtype": "int8"}, {"languages": []}]
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"judge\.entails\.{next(iter(options))}"):
        NliConfig(**options)


def test_a_model_in_a_bucket_is_the_same_judge(tmp_path: Path, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUST_CACHE", str(tmp_path / "cache"))
    folder, storage = write(tmp_path / "model"), Storage()
    for file in folder.iterdir():
        storage.write_bytes(f"{s3}/nli/{file.name}", file.read_bytes())
    config = NliConfig(model=f"{s3}/nli", languages=None, threads=2)
    config.preflight(storage)
    there, here = config.load(storage), judge(folder)
    assert there.fingerprint == config.fingerprint(storage) == here.fingerprint
    assert there.answer_batch(PAIRS) == here.answer_batch(PAIRS)
