"""Where sentencex 1.0.32 ends a sentence that goes on, and where it misses an end, by language."""

import itertools

import regex

_BEFORE_NUMBER = frozenset({"approx", "ca", "cf", "ch", "fig", "figs", "no", "nos", "p", "pp", "sec", "vol", "vols"})
# Titles, units and the like: what follows is of the same sentence.
_NEVER_LAST = {
    "bn": frozenset(["ড", "ডা", "ডঃ", "মো", "মোঃ", "মোহা", "প্রফে", "কি", "মি", "কিমি", "খ্রি"]),
    "fr": frozenset(["m", "mm", "dr", "pr", "st", "ste"]),
    "hi": frozenset(["डॉ", "डा", "डाॅ", "प्रो", "पं", "कि", "मी", "किमी", "कु", "ई"]),
    "id": frozenset(["prof", "dr", "drs", "ir", "h", "hj", "kh", "jl", "no", "tgl", "hlm", "a.n", "s.d"]),
    "ru": frozenset({"т.е", "т. е", "напр"}),
    "sw": frozenset(["dkt", "bw", "bi", "mhe", "prof"]),
    "te": frozenset(["డా", "శ్రీ", "ప్రొ", "కి", "మీ", "కి.మీ"]),
}
_LETTER_IS_SHORT = frozenset({"ar", "fa"})  # a letter with a full stop stands for a title, an era or a unit
_LONGEST_WORD = 40
_INITIALS = regex.compile(r"(?:\p{L}\p{M}*\. ?)*\p{L}\p{M}*ـ?")
_LAST_WORD = regex.compile(r"(?<![\p{L}\p{M}])((?:\p{L}\p{M}*\. ?)*[\p{L}\p{M}]+)\.\s*$")
_NO_CAPITAL = regex.compile(r"\s*[\p{Ll}\p{Lo}]")
_LOWER_START = regex.compile(r"\s*\p{Ll}")
_DIGIT_START = regex.compile(r"\s*\d")
_TAIL = regex.compile(r"[-–,;:]")
_QUOTE_ENDS = regex.compile(r"[.。!?！？।؟][\"'”’»」』]\s*$")
_WRITTEN_ON = regex.compile(r"[\p{L}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]]", regex.V1)
_QUOTE_GOES_ON = {
    "ja": regex.compile(r"(?:と|って|という|など|は|が|を|に|の|も|で|や|から)"),
    "te": regex.compile(r"\s*(?:అని|అన్న|అంటూ)"),
}
_GERMAN_ORDINAL = regex.compile(
    r"(?i)\b(?:im|am|vom|zum|zur|der|die|das|dem|den|des|beim|ab|bis|seit|jedes?|seine[mnr]?|ihre[mnr]?) \d{1,3}\.\s*$"
)
_KOREAN_DATE = regex.compile(r"(?<!\d)\d{4}\. ?\d{1,2}\.(?: ?\d{1,2}\.)?\s*$|(?<!\d)\d{4}\.\s*$")
_THAI_SHORT = regex.compile(r"(?<!\p{Thai})(?:[\p{Thai}]{1,4}\.)+\s*$")
_BRACKETED_SENTENCE = regex.compile(r"(\s*[(（][^()（）]+(?:[.!?][)）]\s+|[。！？][)）]\s*))(?=\S)")
_AND_SO_ON = regex.compile(r"(?<=\b(?:usw|etc|dsb|dll|n\.k|т\. ?[дп])\.)\s(?=\p{Lu})")


def goes_on(before: str, after: str, language: str) -> bool:
    """Whether the boundary between two pieces of text is none: an abbreviation's full stop, a decimal, a quotation.

    Args:
        before: up to the boundary.
        after: from the boundary on; the space between them is in either.
        language: base language code of the text.
    """
    no_space = not (before[-1:].isspace() or after[:1].isspace())
    if no_space and (_TAIL.match(after) or (before[-2:-1].isdigit() and before[-1:] == "." and after[:1].isdigit())):
        return True
    if _QUOTE_ENDS.search(before):
        listed = _QUOTE_GOES_ON.get(language)
        return (no_space and _WRITTEN_ON.match(after) is not None) or bool(listed and listed.match(after))
    if language == "de" and _GERMAN_ORDINAL.search(before[-_LONGEST_WORD:]):
        return True
    if language == "ko" and _KOREAN_DATE.search(before):
        return True
    if language == "th" and _THAI_SHORT.search(before):
        return True
    return _is_short(before, after, language)


def parts(piece: str) -> list[str]:
    """The piece, cut behind a sentence in brackets that opens it, and behind "and so on." before a capital."""
    match = _BRACKETED_SENTENCE.match(piece)
    found = [piece[: match.end(1)], piece[match.end(1) :]] if match else [piece]
    cuts = [match.start() for match in _AND_SO_ON.finditer(found[-1])]
    edges = [0, *cuts, len(found[-1])]
    return [*found[:-1], *(found[-1][start:end] for start, end in itertools.pairwise(edges))]


def _is_short(before: str, after: str, language: str) -> bool:
    """Whether what stands before is an abbreviation that no sentence ends with, given what follows."""
    if not (word := _LAST_WORD.search(before[-_LONGEST_WORD:])):
        return False
    last = word[1].casefold()
    if last in _NEVER_LAST.get(language, ()) or (last in _BEFORE_NUMBER and _DIGIT_START.match(after)):
        return True
    if language == "ru" and _LOWER_START.match(after):
        return True
    if not _INITIALS.fullmatch(last):
        return False
    return language in _LETTER_IS_SHORT or _NO_CAPITAL.match(after) is not None
