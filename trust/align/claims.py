"""Claims that a language model writes where a data set has long answers alone (arXiv 2409.11242; facts B3 item 6)."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import StrictUndefined, Template

from trust.ask import Ask
from trust.errors import ConfigError, RowError
from trust.text.normalize import has_content

_MOST = 20


@dataclass
class ClaimsOptions:
    """How a language model takes a long answer apart.

    Attributes:
        count: claims of an answer; a model that writes more or fewer fails the row.
        temperature, max_tokens: of the completion. Published: 0.3 and 500.
    """

    count: int = 3
    temperature: float = 0.0
    max_tokens: int = 500

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST:
            raise ConfigError(f"claims.count={self.count}: from 1 to {_MOST}")
        if self.temperature < 0:
            raise ConfigError(f"claims.temperature={self.temperature:g}: cannot be negative")
        if self.max_tokens < 1:
            raise ConfigError(f"claims.max_tokens={self.max_tokens}: must be at least 1")


async def write_claims(question: str, long_answer: str, options: ClaimsOptions, ask: Ask) -> list[str]:
    """The claims of a long answer; one ask.

    Raises:
        RowError: `claims_unreadable`, or the model could not answer.
    """
    prompt = _prompt().render(question=question, answer=long_answer, count=options.count)
    sampling = {"temperature": options.temperature, "top_p": 1.0, "max_tokens": options.max_tokens, "seed": 0}
    messages = [{"role": "user", "content": prompt}]
    answer = await ask.complete(messages, sampling, _schema(options.count), role="claims")
    return read_claims(answer.text, options.count)


def read_claims(text: str, count: int) -> list[str]:
    """The claims that a model wrote.

    Raises:
        RowError: `claims_unreadable`: it is not the JSON that was asked for, or has not `count` claims that differ.
    """
    try:
        claims = [" ".join(claim.split()) for claim in json.loads(text)["claims"]]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RowError(
            "claims_unreadable", f"what the model wrote is not the JSON that was asked for: {text[:80]!r}", "answers"
        ) from error
    told = {claim for claim in claims if has_content(claim)}
    if len(claims) != count or len(told) != count:
        raise RowError(
            "claims_unreadable",
            f"the model wrote {len(told)} claims that differ, not {count}: {text[:80]!r}",
            "answers",
        )
    return claims


def _schema(count: int) -> dict[str, Any]:
    """What the model that writes claims is held to."""
    items = {"type": "array", "items": {"type": "string"}, "minItems": count, "maxItems": count}
    return {
        "type": "object",
        "properties": {"claims": items},
        "required": ["claims"],
        "additionalProperties": False,
    }


@cache
def _prompt() -> Template:
    text = resources.files("trust.align").joinpath("claims.j2").read_text(encoding="utf-8")
    return Template(text, undefined=StrictUndefined, keep_trailing_newline=False)
