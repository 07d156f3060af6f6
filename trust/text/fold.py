"""One spelling for what a script or a language spells in several ways: width, digits, marks, thousands.

What is folded has one reading: letters and marks that tell words apart (Yoruba tones, Indic vowel signs, the dots of
й and ö) stay. Sources: Unicode TR15 (NFKC); Lucene's ArabicNormalizer, PersianNormalizer and HindiNormalizer, of which
only what spellers vary in is taken; CLDR for the marks in numbers.
"""

import unicodedata

import regex

_INVISIBLE = regex.compile(r"\p{Cf}")
# A non-joiner parts a word from what is written onto it in these scripts, and nothing in others.
_INNER_BREAK = regex.compile(r"(?<=[\p{Arabic}\p{Telugu}])\u200c|\u200c(?=[\p{Arabic}\p{Telugu}])")
_FOREIGN_DIGIT = regex.compile(r"(?![0-9])\p{Nd}")
_NARROW_GROUPS = regex.compile(r"(?<![\p{N}.,])[0-9]{1,3}(?:[\u00a0\u2009\u202f][0-9]{3})+(?!\p{N})")
_LETTERS = str.maketrans({"ё": "е", "٫": ".", "٬": ","})

_HAS_ARABIC = regex.compile(r"\p{Arabic}")
_ARABIC_MARKS = regex.compile(r"(?<=\p{Arabic})[\p{Mn}ـ]+")
_ARABIC_LETTERS = str.maketrans("ٱىيةك", "اییهک")
_PERSIAN_AFFIXES = regex.compile(
    r"(?<!\p{L})(ن?می) (?=\p{L})|(?<=\p{L}) (?=(?:ها(?:یی?|یم|یت|یش)?|تر(?:ین)?)(?!\p{L}))"
)
_PERSIAN_LINK = regex.compile(r"(?<=ه) ی(?!\p{L})")

_HAS_DEVANAGARI = regex.compile(r"\p{Devanagari}")
_NASALS = regex.compile(r"ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ])|ँ")
_LOAN_DOTS = regex.compile(r"(?<=[कखगजफ])़")

_GROUPS = regex.compile(r"(?<![\p{N}.,])(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3})(?!\p{N}|,\p{N})")
_DECIMAL_COMMA = frozenset(["de", "es", "fi", "fr", "id", "it", "nl", "pt", "ru"])
_SPACE_GROUPS = frozenset(["es", "fi", "fr", "ru"])
_POINT_OR_COMMA_GROUPS = regex.compile(r"(?<![\p{N}.,])[1-9][0-9]{0,2}([.,])[0-9]{3}(?:\1[0-9]{3})*(?!\p{N}|\1\p{N})")
_SPACED_GROUPS = regex.compile(r"(?<![\p{N}.,])[1-9][0-9]{0,2}(?: [0-9]{3})+(?!\p{N})")
_COMMA = regex.compile(r"(?<![\p{N}.,])([0-9]+),([0-9]+)(?!\p{N}|[.,]\p{N})")


def fold(text: str, language: str) -> str:
    """Case, width, digits, invisible characters, and letters that spellers use for one another, made one.

    Args:
        text: any text.
        language: base language code of the row; Persian affixes are joined to their words only in `fa`.
    """
    if text.isascii():
        return text.lower()
    text = _INNER_BREAK.sub(" ", text)
    text = _FOREIGN_DIGIT.sub(lambda match: str(unicodedata.decimal(match.group())), text)
    text = _NARROW_GROUPS.sub(lambda match: "".join(match.group().split()), text)
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold().translate(_LETTERS)
    if _HAS_ARABIC.search(text):
        text = fold_arabic(text)
        if language == "fa":
            text = _PERSIAN_LINK.sub("", _PERSIAN_AFFIXES.sub(r"\1", text))
    if _HAS_DEVANAGARI.search(text):
        text = _LOAN_DOTS.sub("", _NASALS.sub("ं", text))
    return text


def fold_arabic(text: str) -> str:
    """Arabic script without vowel signs, hamza seats and stretches; Arabic and Persian yeh and kaf are one."""
    bare = _ARABIC_MARKS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_ARABIC_LETTERS)


def fold_numbers(text: str, language: str) -> str:
    """Numbers with a point for the decimals and nothing between thousands.

    Where a language writes decimals with a comma, a mark before exactly three digits is taken for thousands, be it a
    point or a comma: "1.200", "1 200" and "1,200" are 1200 in German or French. Elsewhere only commas are thousands,
    also in Indian groups (12,00,000).

    Args:
        text: output of `fold`.
        language: base language code of the row.
    """
    if language not in _DECIMAL_COMMA:
        return _GROUPS.sub(lambda match: match.group().replace(",", ""), text)
    if language in _SPACE_GROUPS:
        text = _SPACED_GROUPS.sub(lambda match: match.group().replace(" ", ""), text)
    text = _POINT_OR_COMMA_GROUPS.sub(lambda match: match.group().replace(match[1], ""), text)
    return _COMMA.sub(r"\1.\2", text)
