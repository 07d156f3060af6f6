"""Finding a normalised answer in a normalised text: where a match may begin and end."""

import regex

from trust.text.normalize import UNSPACED

_UNSPACED = regex.compile(UNSPACED)
_KATAKANA = regex.compile(r"[\p{Katakana}ー]{2}")
_HANGUL = regex.compile(r"\p{Hangul}")
# "1994년", "1994లో", "KBS는": what is written onto numbers and foreign names is in another script.
_SCRIPTS_MEET = regex.compile(
    r"[\p{Nd}\p{Latin}][\p{L}--\p{Latin}--\p{Cyrillic}--\p{Greek}]|[\p{L}--\p{Latin}--\p{Cyrillic}--\p{Greek}][\p{Nd}\p{Latin}]",
    regex.V1,
)
_THAI_BEFORE = frozenset("เแโใไ")  # written before the consonant that they follow in speech
_GOES_ON = regex.compile(r"[\p{M}ะาๅ]")  # marks, and Thai vowels behind their consonant
_PROCLITICS = frozenset("وفبلک")  # Arabic "and", "so", "in", "for", "like", written onto the next word
_LONG_ENOUGH = 4  # letters of a word before which one of them is taken for a word of its own
_PARTICLES = regex.compile(
    r"(?:들|씨|님|등|은|는|이|가|을|를|의|에|에서|에게|에게서|께|께서|한테|으로|로|으로서|로서|으로써|로써|와|과|이나|나|도|만|부터|까지|보다|처럼|같이|"
    r"마다|조차|마저|뿐|밖에|이랑|랑|하고|이며|며|이고|고|이란|란|이라는|라는|이라고|라고|이라|라|인|인데|이자|이다|다|이었다|였다|이었으며|였으며|"
    r"이었고|였고|이었습니다|였습니다|입니다|이에요|예요|이었던|였던)+(?![\p{L}\p{N}])"
)


def contains(text: str, answer: str, language: str) -> bool:
    """Whether the normalised text holds the normalised answer as whole tokens.

    Where words are parted by spaces a match begins and ends with a word. In scripts without spaces (Chinese, Japanese,
    Thai ...) any character will do, but a run of Katakana is a word, and no letter is parted from its marks. A Korean
    word may carry particles behind it, an Arabic one of four letters or more a conjunction or preposition before it,
    and a number or a name in Latin letters an ending in another script. An answer that normalises to nothing is found
    nowhere.

    Args:
        text: output of `trust.text.normalize.normalize`.
        answer: output of the same.
        language: base language code of the row.
    """
    if not answer:
        return False
    start = text.find(answer)
    while start >= 0:
        if _begins(text, start, answer, language) and _ends(text, start + len(answer), answer):
            return True
        start = text.find(answer, start + 1)
    return False


def _begins(text: str, start: int, answer: str, language: str) -> bool:
    if start == 0 or text[start - 1] == " ":
        return True
    before, first = text[start - 1], answer[0]
    if before in _THAI_BEFORE or _KATAKANA.match(before + first):
        return False
    if _UNSPACED.match(first) or _UNSPACED.match(before) or _SCRIPTS_MEET.match(before + first):
        return True
    alone = before in _PROCLITICS and (start == 1 or text[start - 2] == " ")
    return language == "ar" and alone and len(answer.split(" ", 1)[0]) >= _LONG_ENOUGH


def _ends(text: str, end: int, answer: str) -> bool:
    if end == len(text) or text[end] == " ":
        return True
    last, behind = answer[-1], text[end]
    if _GOES_ON.match(behind) or _KATAKANA.match(last + behind):
        return False
    if _UNSPACED.match(last) or _UNSPACED.match(behind) or _SCRIPTS_MEET.match(last + behind):
        return True
    return _HANGUL.match(last) is not None and _PARTICLES.match(text, end) is not None
