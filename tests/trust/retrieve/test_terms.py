"""Terms by language."""

import pytest
from bm25s.tokenization import Tokenizer

from trust.retrieve.terms import Terms


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("en", "The routers and the router of Lake Baikal, x", ["router", "router", "lake", "baikal"]),
        ("en-GB", "the lakes", ["lake"]),
        (None, "The routers", ["the", "routers"]),
        ("de", "Die Häuser der Stadt", ["haus", "stadt"]),
        ("yo", "ọmọ ilẹ̀ náà", ["ọmọ", "ilẹ̀", "náà"]),
        ("bn", "বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        ("zh", "首都 GPT4 1990年", ["首都", "gpt4", "1990", "年"]),
        ("ja", "カレーは", ["カレ", "レー", "ーは"]),
        ("th", "เมือง", ["เม", "มื", "ือ", "อง"]),
        ("en", "of the", []),
    ],
)
def test_of_a_text(language: str | None, text: str, terms: list[str]) -> None:
    assert Terms(language).of(text) == terms


def test_english_is_split_as_bm25s_splits_it() -> None:
    import Stemmer

    text = "U.S. routers' 2nd-hand café naïve e.g. x1 don't"
    own = Tokenizer(stopwords="en", stemmer=Stemmer.Stemmer("english"))
    expected = own.tokenize([text], show_progress=False, return_as="string", allow_empty=False)[0]
    assert Terms("en").of(text) == expected


def test_many_texts_are_counted_as_each_is_split() -> None:
    texts = ["The lake", "", "lakes of a router"]
    terms, ids, lengths = Terms("en").count(texts)
    assert lengths.tolist() == [1, 0, 2]
    assert [terms[i] for i in ids] == [term for text in texts for term in Terms("en").of(text)]
