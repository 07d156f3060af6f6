"""Reading citations out of a text, and taking them off it.

Two readers: the published one (an opening bracket, then digits) and a strict one, which reads the bracket as a whole.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import regex

_MAX_NUMBER = 10**9
_MAX_RANGE = 50

STYLES = ("square", "lenticular", "round")
DEFAULT_STYLES = ("square", "lenticular")
# Marks of direction stand between brackets and digits in right-to-left texts.
_GAP = r"[\s\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*+"
_BRACKETS = {
    "square": (rf"[\[［]{_GAP}\^?", r"[\]］]"),
    "lenticular": (rf"[【〔]{_GAP}", r"[】〕]"),
    "round": (rf"[(（]{_GAP}", r"[)）]"),
}

# "document", "source", "passage" ... as models write them before the number.
_LABEL = (
    r"(?:(?=\p{L})(?:search\s+)?(?:documents?|docs?|sources?|passages?|contexts?|results?|refs?|references?|citations?|"
    r"dokumente?|quellen?|documentos?|fuentes?|pasajes?|dokumen|sumber|asiakirjat?|lähteet|lähde|dokumentti|hati|nyaraka|chanzo|"
    r"ìwé|orísun|документы?|источники?|文档|文檔|文件|文献|文獻|资料|資料|来源|來源|段落|文書|出典|문서|출처|자료|(?:ال)?وثيقة|(?:ال)?مستند|(?:ال)?مصدر|"
    r"سند|منبع|दस्तावे(?:ज़|\u095b|ज)|स्रोत|নথি|উৎস|పత్రం|మూలం|เอกสาร|แหล่งข้อมูล|แหล่งที่มา)"
    rf"{_GAP}\.?{_GAP}(?:no\.?|nr\.?|\#|№|:|：)?{_GAP})"
)
_ITEM = rf"{_LABEL}?\#?(?P<low>\d++)(?:{_GAP}[-‐‑‒–—−~〜～]{_GAP}{_LABEL}?(?P<high>\d++))?"
_ITEM_UNNAMED = _ITEM.replace("?P<low>", "").replace("?P<high>", "")
_SEPARATOR = rf"{_GAP}(?:[,;、，；،؛&/+و和与與及とや와과및ও]|\b(?:and|und|et|y|и|och|en|e|dan|ja|na|àti)\b|और|এবং|మరియు|และ){_GAP}"
SENTENCE_MARKS = ".。．｡!?！？।॥؟۔"
_BLANKS = " \t\u00a0\u3000\u061c\u200e\u200f"
_MARKER = regex.compile(r"\s*(?:(?:#{1,6}|>|[-–—*•‣▪◦·●○]|[(（]?\d{1,3}[.)）])\s+)?")
_WORDS_MEET = regex.compile(r"[[\p{L}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]]{2}", regex.V1)
_TARGET = regex.compile(r"\(https?://[^\s)]*+\)")
_TARGET_OR_NUMBER = regex.compile(rf"{_TARGET.pattern}|\d++")
_LINK = rf"(?:{_TARGET.pattern})?"

_UPSTREAM_NUMBER = re.compile(r"\[\d+")
_UPSTREAM_MARK = re.compile(r" ?\[\d+")
_ITEMS = regex.compile(_ITEM, regex.IGNORECASE)
_BRACKETED_NUMBER = regex.compile(
    r"[(（]\s*+(?:\p{L}+\s+)?\d{1,3}(?:\s*+[,;-]\s*+\d{1,3})*+\s*+[)）]|[\[【［][^\[\]【】［］\n]{0,40}?\d[^\[\]【】［］\n]{0,40}[\]】］]|[⁰¹²³⁴-⁹]+"
    r"|\]\d{1,3}\["  # brackets that something turned around for right-to-left reading
)


@dataclass(frozen=True)
class Place:
    """Citations that stand together.

    Attributes:
        at: where they stood in the text without citations: behind its character `at - 1`.
        leads: whether they open a line, and so belong to what follows.
        start: first character of the group in the text as written.
        end: one past its last character.
        numbers: document numbers as written, in order, repeats kept.
    """

    at: int
    leads: bool
    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Detached:
    """A text without its citations, and where they stood.

    Attributes:
        text: the text without citations.
        places: the groups of citations, in order.
        origin: for each character of `text`, its position in the text as written.
    """

    text: str
    places: tuple[Place, ...]
    origin: tuple[int, ...]

    @cached_property
    def leading(self) -> frozenset[int]:
        """Where in `text` lines begin that citations open."""
        return frozenset(self.text.rfind("\n", 0, place.at) + 1 for place in self.places if place.leads)


def read_upstream(text: str) -> list[int]:
    """Document numbers as the published evaluator reads them: digits behind an opening bracket (facts.md A4 24)."""
    return [_bounded(match[1:]) for match in _UPSTREAM_NUMBER.findall(text)]


def remove_upstream(text: str) -> str:
    """The text without citations, as the published evaluator strips it (facts.md A3): residues stay behind."""
    return _UPSTREAM_MARK.sub("", text).replace(" |", "").replace("]", "")


def detach(text: str, styles: Sequence[str] = DEFAULT_STYLES) -> Detached:
    """Take all citations off a text and leave no residue.

    Read are lists, ranges, repeats, labels ("[Document 2]"), digits of any script and the brackets of `styles`.
    A range is at most 50 long, a longer one counts as its two ends; a number beyond a billion counts as a billion.

    Args:
        text: a response as written.
        styles: bracket styles from `STYLES`.
    """
    return _detach(text, tuple(styles))


def renumber(text: str, numbers: Mapping[int, int], styles: Sequence[str] = DEFAULT_STYLES) -> str:
    """The text with other document numbers in its citations, and nothing else changed.

    Args:
        text: a response as written.
        numbers: old number -> new one; a number that is not named stays. It must keep the order of the numbers, and all of
            a range ("[1-3]") must stay neighbours.
        styles: bracket styles from `STYLES`.
    """

    def other(match: "regex.Match[str]") -> str:
        written = match.group()
        return written if written.startswith("(") else str(numbers.get(_bounded(written), written))

    pieces, done = [], 0
    for place in detach(text, styles).places:
        pieces += [text[done : place.start], _TARGET_OR_NUMBER.sub(other, text[place.start : place.end])]
        done = place.end
    return "".join([*pieces, text[done:]])


def unread(text: str) -> list[str]:
    """What looks like a citation but was not read as one, in a text that `detach` has been through."""
    return [match.group() for match in _BRACKETED_NUMBER.finditer(text)]


def closing(text: str) -> int:
    """Where the marks that close a sentence begin: a citation of it stands before them."""
    return len(text.rstrip(SENTENCE_MARKS + "…").rstrip())


@lru_cache(maxsize=64)
def _detach(text: str, styles: tuple[str, ...]) -> Detached:
    pieces: list[tuple[int, int]] = []
    places: list[Place] = []
    gaps: set[int] = set()
    kept = done = 0
    for match in _group(styles).finditer(text):
        start, end = match.span()
        line_start = text.rfind("\n", 0, start) + 1
        before = text[max(line_start, done) : start]
        leads = _MARKER.fullmatch(before) is not None and (not places or places[-1].end <= line_start)
        left = start
        while not leads and left > done and text[left - 1] in _BLANKS:
            left -= 1
        if leads:
            while end < len(text) and text[end] in _BLANKS + ":：":
                end += 1
        elif end < len(text) and left > 0 and text[end] in SENTENCE_MARKS and text[left - 1] in SENTENCE_MARKS:
            end += 1
        if left > done:
            pieces.append((done, left))
            kept += left - done
        glued = not leads and left > 0 and _WORDS_MEET.match(text[left - 1] + text[end : end + 1]) is not None
        places.append(Place(kept, leads, start, match.end(), _numbers(match.group())))
        if glued:
            gaps.add(len(pieces))
            kept += 1
        done = end
    if done < len(text):
        pieces.append((done, len(text)))
    return _assemble(text, pieces, places, gaps)


def _assemble(text: str, pieces: list[tuple[int, int]], places: list[Place], gaps: set[int]) -> Detached:
    chunks: list[str] = []
    origin: list[int] = []
    for index, (start, end) in enumerate(pieces):
        if index in gaps:
            chunks.append(" ")
            origin.append(start)
        chunks.append(text[start:end])
        origin.extend(range(start, end))
    return Detached("".join(chunks), tuple(places), tuple(origin))


@lru_cache(maxsize=16)
def _group(styles: tuple[str, ...]) -> "regex.Pattern[str]":
    listed = rf"{_ITEM_UNNAMED}(?:{_SEPARATOR}{_ITEM_UNNAMED})*+{_GAP}"
    single = "|".join(rf"{_BRACKETS[style][0]}{listed}{_BRACKETS[style][1]}{_LINK}" for style in styles)
    several = rf"(?:{single})(?:[^\S\n]{{0,3}}[,;、]?[^\S\n]{{0,3}}(?:{single}))*+"
    return regex.compile(rf"[(（]\s*+{several}\s*+[)）]|{several}", regex.IGNORECASE)


@lru_cache(maxsize=1024)
def _numbers(group: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for match in _ITEMS.finditer(_TARGET.sub("", group)):
        low = _bounded(match["low"])
        high = low if match["high"] is None else _bounded(match["high"])
        if abs(high - low) > _MAX_RANGE:
            numbers += [low, high]
        else:
            numbers += range(min(low, high), max(low, high) + 1)
    return tuple(numbers)


def _bounded(digits: str) -> int:
    return _MAX_NUMBER if len(digits.lstrip("0")) > 9 else int(digits)
