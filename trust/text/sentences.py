"""Cutting a response into sentences, each with the citations that belong to it.

Two splitters: NLTK's Punkt for English, which the published scores used, and sentencex (Wikimedia), which knows the
sentence marks and abbreviations of many languages and needs no data.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import regex
import sentencex

from trust.errors import PreflightError
from trust.text.boundaries import goes_on, parts
from trust.text.citations import DEFAULT_STYLES, SENTENCE_MARKS, Detached, Place, detach
from trust.text.languages import base_language
from trust.text.normalize import has_content

_BULLET = regex.compile(r"[^\S\n]*(?:#{1,6}|>|[-–—*•‣▪◦·●○]|[(（]?\p{L}[)）])[^\S\n]+")
_NUMBER = regex.compile(r"[^\S\n]*[(（]?(\d{1,3})[.)）、．][^\S\n]+")
_EMPHASIS = regex.compile(r"\*\*|__|`")
_HEADING = regex.compile(r"[^\S\n]*#{1,6}[^\S\n]")
_NO_SENTENCE_MARKS = frozenset({"th", "lo", "km"})


@dataclass(frozen=True)
class Sentence:
    """One sentence of a response.

    Attributes:
        text: as written, with its citations.
        claim: without citations, list marker and emphasis marks; what a judge is asked about.
        cited: (offset in `claim` behind which the citation stood, document number as written), repeats kept.
        lead_in: whether it only announces what follows (a heading, or a line that ends in a colon).
        start: where `text` begins in the response as written.
    """

    text: str
    claim: str
    cited: tuple[tuple[int, int], ...] = ()
    lead_in: bool = False
    start: int = field(default=0, compare=False)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The document numbers cited, as written."""
        return tuple(number for _, number in self.cited)


def preflight(splitter: str) -> None:
    """Makes sure that a mode's splitter (`trust.compat.Choices.sentences`) can work.

    Raises:
        PreflightError: NLTK or its Punkt data is missing, where that is the splitter.
    """
    if splitter == "punkt":
        _punkt()


def punkt(text: str) -> list[str]:
    """English sentences by NLTK's Punkt, as the published evaluator cuts them (facts.md A4 item 22).

    Raises:
        PreflightError: NLTK or its Punkt data is missing.
    """
    return _punkt()(text)


def split(text: str, language: str, styles: Sequence[str] = DEFAULT_STYLES) -> list[Sentence]:
    """Sentences of a response with their citations.

    A citation belongs to the sentence before it, also behind the full stop or alone on the next line; one that opens
    a line belongs to what follows, and so do the others of that line unless one closes it. Lines part sentences; list
    markers are dropped; what holds no letter, digit or symbol is no sentence.

    Args:
        text: a response as written.
        language: language code of the row; for one that sentencex does not know it takes the nearest it has.
        styles: citation bracket styles, see `trust.text.citations`.
    """
    return _collect(text, detach(text, styles), lambda line, places: _cut(line, places, base_language(language)))


def split_list(text: str, styles: Sequence[str] = DEFAULT_STYLES) -> list[Sentence]:
    """Items of an answer that lists its answers, with their citations.

    With bullets or numbers at the lines, a line is an item; else commas, semicolons and line ends part the items. A
    comma between digits parts nothing.
    """
    detached = detach(text, styles)
    lines = [line for line in detached.text.split("\n") if has_content(line)]
    marked = len(lines) > 1 and all(_BULLET.match(line) or _NUMBER.match(line) for line in lines)
    return _collect(text, detached, _whole if marked else _at_commas)


@lru_cache(maxsize=1)
def _punkt() -> Callable[[str], list[str]]:
    try:
        from nltk.tokenize.punkt import PunktTokenizer
    except ImportError as error:
        raise PreflightError("compat=upstream cuts sentences with NLTK: pip install nltk") from error
    try:
        return PunktTokenizer("english").tokenize
    except LookupError as error:
        raise PreflightError(
            "compat=upstream cuts sentences with NLTK's Punkt, whose English data is missing: run "
            "`python -m nltk.downloader punkt_tab`, or set NLTK_DATA to a folder that holds tokenizers/punkt_tab, "
            "on every node"
        ) from error


def _collect(
    raw: str, detached: Detached, cut: Callable[[str, list[int]], Iterator[tuple[int, int]]]
) -> list[Sentence]:
    spans: list[tuple[int, int, int]] = []
    for start, end, skip in _lines(detached.text):
        line = detached.text[start + skip : end]
        here = [place.at - start - skip for place in detached.places if start + skip <= place.at <= end]
        found = [(start + skip + a, start + skip + b) for a, b in cut(line, here) if has_content(line[a:b])]
        spans += [(a, b, start if index == 0 else a) for index, (a, b) in enumerate(found)]
    owners: dict[int, list[Place]] = {}
    starts = [span[0] for span in spans]
    for place in detached.places:
        owner = _owner(place, starts, detached)
        if owner is not None:
            owners.setdefault(owner, []).append(place)
    return [_sentence(raw, detached, span, owners.get(index, [])) for index, span in enumerate(spans)]


def _lines(text: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and length of the list marker of each line; "3. May" is a marker only where the count fits."""
    start, count = 0, 0
    for line in text.split("\n"):
        skip = 0
        if bullet := _BULLET.match(line):
            skip = bullet.end()
        elif (number := _NUMBER.match(line)) and int(number[1]) in (1, count + 1):
            count, skip = int(number[1]), number.end()
        yield start, start + len(line), skip
        start += len(line) + 1


def _cut(line: str, places: list[int], language: str) -> Iterator[tuple[int, int]]:
    pieces: list[str] = []
    for piece in sentencex.segment(language, line) if line.strip() else []:
        for part in parts(piece):
            if pieces and goes_on(pieces[-1], part, language):
                pieces[-1] += part
            else:
                pieces.append(part)
    at = 0
    for piece in pieces:
        start = line.index(piece.strip(), at)
        end = start + len(piece.strip())
        stops = [stop for stop in places if start < stop < end] if language in _NO_SENTENCE_MARKS else []
        for stop in stops:
            yield start, stop
            start = stop
        yield start, end
        at = end


def _whole(line: str, places: list[int]) -> Iterator[tuple[int, int]]:
    yield 0, len(line)


def _at_commas(line: str, places: list[int]) -> Iterator[tuple[int, int]]:
    at = 0
    for match in regex.finditer(r"(?<!\d),|,(?!\d)|[;，、；،؛]", line):
        yield at, match.start()
        at = match.end()
    yield at, len(line)


def _owner(place: Place, starts: list[int], detached: Detached) -> int | None:
    """Index of the span that a group of citations belongs to; None where there is no span at all."""
    if not starts:
        return None
    before = bisect_left(starts, place.at) - 1
    after = before + 1
    forward = after < len(starts) and (place.leads or _line_leads(place, detached))
    if forward and (before < 0 or "\n" not in detached.text[place.at : starts[after]]):
        return after
    return max(before, 0)


def _line_leads(place: Place, detached: Detached) -> bool:
    """Whether citations stand before what they belong to on this line: one opens it and none closes it."""
    text = detached.text
    start = text.rfind("\n", 0, place.at) + 1
    if place.at == start or text[place.at - 1] not in SENTENCE_MARKS + "…" or start not in detached.leading:
        return False
    end = text.find("\n", place.at)
    end = len(text) if end < 0 else end
    last = detached.places[bisect_right(detached.places, end, key=lambda other: other.at) - 1].at
    return has_content(text[last:end])


def _sentence(raw: str, detached: Detached, span: tuple[int, int, int], places: list[Place]) -> Sentence:
    start, end, first = span
    body = detached.text[start:end]
    lead = len(body) - len(body.lstrip())
    claim, offsets = _plain(body.strip())
    written = [detached.origin[first], detached.origin[end - 1] + 1]
    written += [edge for place in places for edge in (place.start, place.end)]
    cited = tuple(
        (offsets[min(max(place.at - start - lead, 0), len(offsets) - 1)], number)
        for place in places
        for number in place.numbers
    )
    heading = _HEADING.match(detached.text, first) is not None
    lead_in = not places and (heading or claim.endswith((":", "：")))
    whole = raw[min(written) : max(written)]
    return Sentence(whole.strip(), claim, cited, lead_in, min(written) + len(whole) - len(whole.lstrip()))


def _plain(text: str) -> tuple[str, list[int]]:
    """The text without marks of emphasis, and where each position of the text lies in it."""
    offsets: list[int] = []
    length, at = 0, 0
    for match in _EMPHASIS.finditer(text):
        offsets += range(length, length + match.start() - at)
        length += match.start() - at
        offsets += [length] * (match.end() - match.start())
        at = match.end()
    offsets += range(length, length + len(text) - at + 1)
    return _EMPHASIS.sub("", text), offsets
