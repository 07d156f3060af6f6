"""Claims taken from long answers: what the model is asked, and what is no answer to it."""

import asyncio
import json
from typing import Any

import pytest

from tests.trust.metrics.writers import Writer
from trust.align.claims import ClaimsOptions, read_claims, write_claims
from trust.errors import ConfigError, RowError

THREE = json.dumps({"claims": ["Ann  is old.", "Bob is young.", "They are kin."]})


def test_the_model_sees_question_and_answer_and_is_held_to_the_count() -> None:
    writer = Writer(lambda *_: THREE)
    options = ClaimsOptions(temperature=0.3)
    found = asyncio.run(write_claims("Who is old?", "Ann {{ is }} old, Bob is not.", options, writer))
    assert found == ["Ann is old.", "Bob is young.", "They are kin."]
    ((text, sampling, schema),) = writer.asked
    assert "\nWho is old?\n" in text
    assert text.endswith("Ann {{ is }} old, Bob is not.")
    assert '{"claims": ["claim 1", "claim 2", "claim 3"]}' in text
    assert sampling == {"temperature": 0.3, "top_p": 1.0, "max_tokens": 500, "seed": 0}
    assert schema["properties"]["claims"] | {"type": ""} == {
        "type": "",
        "items": {"type": "string"},
        "minItems": 3,
        "maxItems": 3,
    }


@pytest.mark.parametrize(
    "written",
    [
        "Claim 1: Ann is old.",
        '```json\n{"claims": ["a", "b", "c"]}\n```',
        '{"claims": ["a", "b"]}',
        '{"claims": ["a", "b", "c", "d"]}',
        '{"claims": ["a", "b", "b"]}',
        '{"claims": ["a", "b", "."]}',
        '{"claims": ["a", "b", 3]}',
        '{"claims": null}',
        '["a", "b", "c"]',
        "",
    ],
)
def test_what_is_not_three_claims_is_refused(written: str) -> None:
    with pytest.raises(RowError) as told:
        read_claims(written, 3)
    assert told.value.reason == "claims_unreadable"
    assert told.value.field == "answers"


@pytest.mark.parametrize("options", [{"count": 0}, {"count": 21}, {"temperature": -0.1}, {"max_tokens": 0}])
def test_impossible_options_are_named(options: dict[str, Any]) -> None:
    (key,) = options
    with pytest.raises(ConfigError, match=f"claims.{key}="):
        ClaimsOptions(**options)
