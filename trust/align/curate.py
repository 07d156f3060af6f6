"""Choosing seed questions: repeats found, clusters rated, seeds drawn. Source: facts.md B3 [TA-C seed_samples]; pitfalls.md B76.

What follows from the rows alone does not depend on their order or files: rows are looked at by sample_id, and lots are drawn by
a hash of it.
"""

import hashlib
import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from trust.ask import Ask
from trust.errors import RowError
from trust.text.normalize import normalize

S = TypeVar("S", bound=Hashable)

LOW, HIGH = 1, 7  # of the demand for knowledge
_BLOCK = 1024
_WORDS = {word: number for number, word in enumerate(("one", "two", "three", "four", "five", "six", "seven"), start=1)}
_TASK = (
    "The questions below were put into one group because they are alike. Say what they have in common, as one topic of a few "
    "words, and how much the answers demand of external knowledge, as one whole number from 1 (common sense will do) to 7 "
    "(nobody can answer without looking things up in documents).\n\nQuestions:\n{questions}\n\n"
    'Reply with JSON: {{"topic": "…", "demand": 1}}'
)
_SCHEMA = {
    "type": "object",
    "properties": {"topic": {"type": "string"}, "demand": {"type": "integer", "enum": [*range(LOW, HIGH + 1)]}},
    "required": ["topic", "demand"],
    "additionalProperties": False,
}
_LINE = re.compile(r"""(?im)^\W*(topic|demand)\w*(?:[ _]value)?\W*?[:=][\s*_"'`]*(.*?)[\s*_.,"'`]*$""")
_RATING = re.compile(r"([a-z]+|\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*7)?")
_FIRST_DIGIT = re.compile(r"(?is)demand\w*\D*?(\d)")


@dataclass(frozen=True)
class Curating:
    """How one mode chooses.

    Attributes:
        sampled: the questions of a cluster that a model is shown are all `different`, or drawn with `replacement`.
        rating: a rating is a whole number or its English word (`whole`), or the first digit after "demand" (`first_digit`, which
            reads 7.5 as 7).
        unread: clusters whose rating cannot be read are `failed`, or `dropped`.
        at_least: the demand from which clusters are kept, where the config gives none: the paper's 4; the released code has no
            threshold.
    """

    sampled: Literal["different", "replacement"]
    rating: Literal["whole", "first_digit"]
    unread: Literal["failed", "dropped"]
    at_least: float


CURATING = {
    "strict": Curating(sampled="different", rating="whole", unread="failed", at_least=4.0),
    "upstream": Curating(sampled="replacement", rating="first_digit", unread="dropped", at_least=float(LOW)),
}


@dataclass(frozen=True)
class RatingOptions:
    """How clusters are rated.

    Attributes:
        questions: of a cluster that the model is shown, at most.
        characters: of each question, at most.
        tries: how often the model is asked, each time with another seed, until its answer can be read.
        json_schema: whether its answer is held to a JSON schema; false for an endpoint that knows none.
    """

    questions: int = 30
    characters: int = 420
    temperature: float = 0.5
    top_p: float = 0.95
    max_tokens: int = 100
    tries: int = 3
    seed: int = 0
    json_schema: bool = True


@dataclass(frozen=True)
class Rating:
    """What a model says of a cluster; `demand` from 1 to 7."""

    topic: str
    demand: float


def question_key(question: str, language: str) -> str:
    """32 hex digits that two questions share when they differ in case, punctuation, spaces and articles at most."""
    text = normalize(question, language) or " ".join(question.split())
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def lot(seed: int, name: str) -> bytes:
    """By which rows are drawn: those with the smallest lots are."""
    return hashlib.sha256(f"{seed}:{name}".encode()).digest()


def first_like(vectors: np.ndarray, others: np.ndarray, threshold: float) -> np.ndarray:
    """For each of `vectors` the first of `others` whose cosine with it is at least `threshold`, -1 where none is.

    Args:
        vectors, others: float32, shapes (rows, width) and (others, width), of length 1.
    """
    found = np.full(len(vectors), -1, np.int64)
    for start in range(0, len(vectors), _BLOCK) if len(others) else ():
        like = vectors[start : start + _BLOCK] @ others.T >= threshold
        found[start : start + _BLOCK] = np.where(like.any(axis=1), like.argmax(axis=1), -1)
    return found


def near_repeats(vectors: np.ndarray, threshold: float) -> np.ndarray:
    """For each row the first kept row before it whose cosine with it is at least `threshold`; -1 for rows that are kept.

    A row repeats only what is kept: of a chain A, B, C in which neighbours alone are alike, A and C stay. Takes rows² products of
    the width's length, in blocks.

    Args:
        vectors: float32, shape (rows, width), of length 1, in the order in which rows are kept.
    """
    found = np.full(len(vectors), -1, np.int64)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        for before in range(0, start, _BLOCK):
            kept = before + np.flatnonzero(found[before : before + _BLOCK] < 0)
            open_ = np.flatnonzero(found[start : start + len(block)] < 0)
            like = first_like(block[open_], vectors[kept], threshold)
            found[start + open_[like >= 0]] = kept[like[like >= 0]]
        within = block @ block.T >= threshold
        for row in range(len(block)):
            if found[start + row] < 0:
                alike = [other for other in np.flatnonzero(within[row, :row]) if found[start + other] < 0]
                found[start + row] = start + alike[0] if alike else -1
    return found


def sampled(sample_ids: Iterable[str], options: RatingOptions, way: Literal["different", "replacement"]) -> list[str]:
    """The questions of a cluster that a model is shown, as sample_ids.

    Args:
        sample_ids: one or more, in any order.
    """
    ids = sorted(sample_ids)
    if way == "replacement":
        draws = (int.from_bytes(lot(options.seed, f"{ids[0]} {number}")) for number in range(options.questions))
        return [ids[draw % len(ids)] for draw in draws]
    return sorted(ids, key=lambda name: lot(options.seed, name))[: options.questions]


async def rate(questions: Sequence[str], options: RatingOptions, how: Curating, ask: Ask) -> Rating:
    """Topic and demand of a cluster.

    Args:
        questions: those that are shown.

    Raises:
        RowError: `rating_unread`: no answer could be read; or as the ask fails.
    """
    shown = "\n".join(f"- {' '.join(question.split())[: options.characters]}" for question in questions)
    messages = [{"role": "user", "content": _TASK.format(questions=shown)}]
    wrong = RowError("rating_unread", "the model was not asked")
    for number in range(options.tries):
        sampling = {
            "temperature": options.temperature,
            "top_p": options.top_p,
            "max_tokens": options.max_tokens,
            "seed": options.seed + number,
        }
        answer = await ask.complete(messages, sampling, _SCHEMA if options.json_schema else None, role="rating")
        try:
            return read_rating(answer.text, how.rating)
        except RowError as error:
            wrong = error
    raise RowError(wrong.reason, f"{wrong.detail}, and none of {options.tries} answers was better")


def read_rating(text: str, way: Literal["whole", "first_digit"]) -> Rating:
    """Topic and demand as a model wrote them: as JSON, or on lines that begin with these words.

    Raises:
        RowError: `rating_unread`: one of them is missing, or the demand is no whole number from 1 to 7. `eight` and `7.5` are
            none: they are not brought to the nearest number that is.
    """
    if way == "first_digit":
        digit = _FIRST_DIGIT.search(text)
        if digit is None:
            raise _unread("no digit after the word demand", text)
        return Rating(str(_fields(text).get("topic") or ""), float(digit.group(1)))
    fields = _fields(text)
    topic = fields.get("topic")
    if not isinstance(topic, str) or not topic.strip():
        raise _unread("no topic", text)
    return Rating(" ".join(topic.split()), _whole(fields.get("demand"), text))


def _fields(text: str) -> dict[str, Any]:
    try:
        made = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return {name.lower(): value for name, value in reversed(_LINE.findall(text))}
    return made if isinstance(made, dict) else {}


def _whole(value: Any, text: str) -> float:
    found = _RATING.fullmatch(str(value).strip().lower()) if isinstance(value, str | int | float) else None
    said = found.group(1) if found else ""
    number = float(_WORDS.get(said, -1)) if said.isalpha() or not said else float(said)
    if not (number.is_integer() and LOW <= number <= HIGH):
        raise _unread(f"the demand is no whole number from {LOW} to {HIGH}", text)
    return number


def _unread(what: str, text: str) -> RowError:
    return RowError("rating_unread", f"{what}: {text[:120]!r}")


def allocate(sizes: Mapping[S, int], total: int) -> dict[S, int]:
    """How many to draw of each stratum: in proportion to its size, by largest remainder, of equal remainders the first stratum's.

    Args:
        sizes: rows of each stratum.
        total: how many to draw; more than there are draws all.
    """
    rows = sum(sizes.values())
    total = min(total, rows)
    shares = {name: divmod(size * total, rows) if rows else (0, 0) for name, size in sizes.items()}
    left = total - sum(whole for whole, _ in shares.values())
    more = sorted(shares, key=lambda name: (-shares[name][1], str(name)))[:left]
    return {name: whole + (name in more) for name, (whole, _) in shares.items()}


def draw(strata: Mapping[S, Sequence[str]], size: int | None, seed: int) -> set[str]:
    """The sample_ids that are drawn: of each stratum its share (`allocate`), those with the smallest lots.

    Args:
        size: None draws all.
    """
    shares = allocate({name: len(ids) for name, ids in strata.items()}, size if size is not None else 2**62)
    return {
        name
        for stratum, ids in strata.items()
        for name in sorted(ids, key=lambda name: lot(seed, name))[: shares[stratum]]
    }
