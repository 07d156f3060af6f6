"""Word recall, in languages with and without spaces."""

import pytest

from trust.ask.lexical import LexicalConfig, LexicalJudge, words
from trust.errors import ConfigError


def recall(premise: str, hypothesis: str) -> float:
    (verdict,) = LexicalJudge(LexicalConfig()).answer_batch([{"premise": premise, "hypothesis": hypothesis}])
    assert verdict.label == (verdict.p_yes >= 0.8)
    return verdict.p_yes


def test_share_of_distinct_words_of_the_hypothesis() -> None:
    assert recall("The cat sat on the mat.", "the cat, the dog") == pytest.approx(2 / 3)
    assert recall("a b c d", "a b c d e") == pytest.approx(0.8)


def test_an_empty_hypothesis_is_entailed_by_nothing() -> None:
    assert recall("text", " .") == 0


def test_scripts_without_spaces_compare_characters() -> None:
    assert words("北京2008") == ["北", "京", "2", "0", "0", "8"]
    assert recall("北京是中国的首都", "首都北京") == 1


@pytest.mark.parametrize("text", ["हिन्दी भाषा", "বাংলা ভাষা", "తెలుగు భాష", "هزارتوی خانه", "Yorùbá dájú"])
def test_words_keep_their_vowel_signs(text: str) -> None:
    assert words(text) == text.casefold().split()


def test_arabic_words_are_the_same_with_and_without_vowel_signs() -> None:
    assert words("كِتَابٌ جَدِيدٌ") == words("كتاب جديد") == ["كتاب", "جديد"]


def test_the_threshold_is_part_of_the_identity() -> None:
    assert LexicalJudge(LexicalConfig(threshold=0.5)).fingerprint != LexicalJudge(LexicalConfig()).fingerprint
    with pytest.raises(ConfigError, match="threshold"):
        LexicalConfig(threshold=0)
