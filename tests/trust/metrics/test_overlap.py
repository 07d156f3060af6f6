"""BLEU, chrF and ROUGE: the libraries' numbers over a corpus, whatever the shards, and the traps of other wrappers."""

from typing import Any

import numpy as np
import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from tests.trust.metrics.golden import Replay, run
from trust.errors import ConfigError
from trust.metrics import RowScore
from trust.metrics.overlap import MEASURES, Overlap, OverlapConfig

CORPUS = [
    ("the cat is on the mat", ["the cat sat on the mat"]),
    ("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"]),
    ("Paris lies in France, on the Seine.", ["Paris is in France.", "It is on the Seine."]),
    ("", ["something"]),
]


def metric(**options: Any) -> Overlap:
    return Overlap(OverlapConfig(**options), "strict")


def row(output: str, references: list[str] | None, language: str = "en", **more: Any) -> dict[str, Any]:
    base = {"sample_id": "s", "task": "none", "language": language, "output": output, "references": references}
    return base | more


def scores(made: Overlap, rows: list[dict[str, Any]]) -> list[RowScore]:
    return run(made, rows, Replay(lambda *_: 1))


def final(made: Overlap, found: list[RowScore]) -> dict[str, float]:
    sums = {term: np.array([sum(score.terms.get(term, 0.0) for score in found)] * 2) for term in made.terms}
    return {key: float(stat.value[0]) for key, stat in made.final(sums, "none").items()}


def test_a_corpus_is_scored_as_the_libraries_score_it() -> None:
    made = metric()
    found = final(made, scores(made, [row(output, references) for output, references in CORPUS]))
    outputs = [output for output, _ in CORPUS]
    padded = [[refs[min(n, len(refs) - 1)] for _, refs in CORPUS] for n in range(2)]
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(outputs, padded).score, abs=1e-9)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(outputs, padded).score, abs=1e-9)
    scorer = RougeScorer(["rougeL"])
    best = [scorer.score_multi(refs, output)["rougeL"] for output, refs in CORPUS]
    assert found["rougeL"] == pytest.approx(100 * np.mean([score.fmeasure for score in best]))
    assert found["rougeL_recall"] == pytest.approx(100 * np.mean([score.recall for score in best]))


def test_known_values() -> None:
    """sacrebleu 2.6.0, run on the pairs of the suite's facts E6."""
    made = metric(measures=["bleu"])
    one = scores(made, [row(*CORPUS[0])])
    assert final(made, one)["bleu"] == pytest.approx(37.99, abs=0.005)
    (second,) = scores(made, [row(*CORPUS[1])])
    assert second.terms["bleu_correct1"] / second.terms["bleu_total1"] == pytest.approx(2 / 7)
    (short,) = scores(made, [row("the cat", ["the cat sat on the mat"])])
    assert 100 * short.values["bleu"] == pytest.approx(13.53, abs=0.005)


def test_the_tokenizer_goes_by_language() -> None:
    pair = ("北京是中国的首都", ["北京是中国首都"])
    made = metric(measures=["bleu", "rouge1"])
    assert final(made, scores(made, [row(*pair, language="zh-Hans")]))["bleu"] > 50
    assert final(made, scores(made, [row(*pair, language="en")]))["bleu"] < 1
    (chinese,) = scores(made, [row(*pair, language="zh")])
    assert chinese.values["rouge1"] == pytest.approx(14 / 15)
    fixed = metric(measures=["bleu"], tokenizer="zh")
    assert final(fixed, scores(fixed, [row(*pair, language="en")]))["bleu"] > 50
    assert "tok:zh" in fixed.notes()["bleu_signature"]
    assert "char:ja" in made.notes()["bleu_signature"]
    assert made.notes()["bleu_signature"].endswith(f"version:{sacrebleu.__version__}")


def test_nonsense_behind_a_good_sentence_lowers_the_score_wherever_it_stands() -> None:
    good, bad = "Paris lies in France on the river Seine.", "Zug zwei drei vier fünf sechs sieben acht."
    made = metric(measures=["bleu"])
    alone, before, after = (
        final(made, scores(made, [row(text, [good])]))["bleu"] for text in (good, f"{bad} {good}", f"{good} {bad}")
    )
    assert alone == pytest.approx(100)
    assert before == pytest.approx(after, rel=0.05)
    assert 0 < before < 60


def test_without_references_it_is_not_applicable() -> None:
    made = metric()
    for references in (None, [], ["", " "]):
        (score,) = scores(made, [row("x", references)])
        assert (score.status, score.reason, score.terms) == ("na", "no_references", {})
    assert all(np.isnan(value) for value in final(made, []).values())


def test_answers_as_references() -> None:
    made = metric(measures=["rouge1"], against="answers")
    (score,) = scores(made, [row("france", None, answers=[["Norway", "France"], ["x"]])])
    assert score.values["rouge1"] == 1.0


def test_stems_are_of_english_words() -> None:
    pair = ("running dogs", ["run dog"])
    assert scores(metric(measures=["rouge1"]), [row(*pair)])[0].values["rouge1"] == 0
    assert scores(metric(measures=["rouge1"], stem=True), [row(*pair)])[0].values["rouge1"] == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"measures": []}, "choose from bleu"),
        ({"measures": ["rouge-l"]}, "did you mean rougeL"),
        ({"against": "reference"}, "did you mean references"),
        ({"tokenizer": "13b"}, "did you mean 13a"),
    ],
)
def test_options_are_checked(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        metric(**options)


def test_every_measure_alone() -> None:
    for measure in MEASURES:
        made = metric(measures=[measure])
        assert all(key.startswith(measure) for key in final(made, scores(made, [row(*CORPUS[0])])))
