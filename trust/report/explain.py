"""Why a response scored what it scored, in words, from the trace that its score carries."""

from typing import Any

from trust.compat import choices

# Whether a citation counts as right (None: not at all), and what its verdict means.
Verdicts = dict[str, tuple[bool | None, str]]
Reason = tuple[str, str]  # good, bad or neutral; the sentence
_READABLE = 60
_FEW = 5


def verdicts(compat: str) -> Verdicts:
    """What can become of a citation in a mode."""
    mode = choices(compat)
    return {
        "supports": (True, "the document entails the sentence"),
        "needed": (True, "the documents cited entail it only with this one among them"),
        "redundant": (True, "not needed, but holds the same gold answer as another"),
        "irrelevant": (False, "does not entail the sentence, and the others do without it"),
        "not_entailed": (False, "what the sentence cites does not entail it"),
        "out_of_range": (False if mode.out_of_range == "wrong" else None, "there is no such document"),
        "over_cap": (False if mode.over_cap == "wrong" else None, "one citation too many in its sentence"),
        "duplicate": (None, "the same document was cited before in its sentence"),
    }


def explain(trace: dict[str, Any], values: dict[str, float], known: Verdicts) -> list[Reason]:
    """The steps from a response to its values, one sentence each; empty without a trace. A metric that says them itself has
    them in its trace, as `reasons`.

    Args:
        known: what the verdicts on citations mean (`verdicts`).
    """
    if "reasons" in trace:
        return [(grade, text) for grade, text in trace["reasons"]]
    if not trace:
        return []
    return [
        *_language(trace),
        *_decision(trace),
        *_correctness(trace, values),
        *_grounded(trace),
        *_citations(trace, known),
    ]


def _language(trace: dict[str, Any]) -> list[Reason]:
    """A warning where the text was read without rules of its own language."""
    meaning = {"undetermined": "The row has no language", "unsupported": "There are no rules for the row's language"}
    why = meaning.get(str(trace.get("language")))
    return [("neutral", f"{why}: it is read by what holds for any language.")] if why else []


def _decision(trace: dict[str, Any]) -> list[Reason]:
    answerable, response = trace.get("answerable"), trace.get("response")
    answers = trace.get("answers") or []
    supported = sum(answer.get("supported") is True for answer in answers)
    if trace.get("judged"):
        held = ", ".join(f"[{number}]" for number in (trace.get("answering") or [])[:_FEW])
        task = (
            f"The judge finds the answer in {held}, so it should be answered"
            if answerable
            else ("The judge finds the answer in no document, so it should be refused")
        )
    elif answerable is None:
        task = "Whether the documents hold an answer is not known"
    elif answerable:
        task = f"The documents hold {supported} of {len(answers)} gold answers, so it should be answered"
    else:
        task = "No document holds a gold answer, so it should be refused"
    done = {"answered": "it was answered", "refused": "it was refused", "empty": "the response is empty"}
    ending = f"{done.get(str(response), f'it was {response}')}{_signal(trace.get('refusal') or {}, response)}."
    if answerable is None:
        return [("neutral", f"{task}; {ending}")]
    right = response == ("answered" if answerable else "refused")
    return [("good" if right else "bad", f"{task}{', and' if right else ', but'} {ending}")]


def _signal(refusal: dict[str, Any], response: str | None) -> str:
    if phrase := refusal.get("phrase"):  # a long one is a pattern with all its variants, which explains nothing
        words = f"says “{phrase}”" if len(phrase) <= _READABLE else "uses a known phrase of refusal"
        return f" (it {words})" if response == "refused" else f" (although it {words})"
    if refusal.get("ratio") is not None:
        return f" (similarity to the refusal sentence: {refusal['ratio']} of 100)"
    return ""


def _correctness(trace: dict[str, Any], values: dict[str, float]) -> list[Reason]:
    if trace.get("response") != "answered":
        return []
    reasons: list[Reason] = []
    items = trace.get("predictions")
    if items is not None:
        right = sum(bool(item.get("correct")) for item in items)
        reasons.append((_grade(right, len(items)), f"{right} of {len(items)} listed answers match a gold answer."))
    answers = [answer for answer in trace.get("answers") or [] if answer.get("found") is not None]
    held = [answer for answer in answers if answer.get("supported")]
    if "answer_correctness" in values and held:
        found = sum(answer["found"] for answer in held)
        text = f"It gives {found} of {len(held)} gold answers that the documents hold."
        reasons.append((_grade(found, len(held)), text))
    beyond = sum(bool(answer["found"]) for answer in answers if answer.get("supported") is False)
    if beyond:
        reasons.append(("bad", f"Gold answers that it gives and no document holds: {beyond}."))
    return reasons


def _grounded(trace: dict[str, Any]) -> list[Reason]:
    marks = [mark for sentence in trace.get("sentences") or [] if (mark := sentence.get("grounded")) is not None]
    if not marks:
        return []
    return [
        (_grade(sum(marks), len(marks)), f"The documents entail {sum(marks)} of {len(marks)} statements, cited or not.")
    ]


def _citations(trace: dict[str, Any], known: Verdicts) -> list[Reason]:
    judged = [sentence for sentence in trace.get("sentences") or [] if sentence.get("recall") is not None]
    if not judged:
        return []
    entailed = sum(sentence["recall"] for sentence in judged)
    text = f"The cited documents entail {entailed} of {len(judged)} statements."
    reasons: list[Reason] = [(_grade(entailed, len(judged)), text)]
    marks = [citation.get("verdict") for sentence in judged for citation in sentence.get("citations") or []]
    if not marks:
        return [*reasons, ("bad", "It cites nothing.")]
    grades = [known.get(mark, (None, ""))[0] for mark in marks]
    right, counted = sum(grade is True for grade in grades), sum(grade is not None for grade in grades)
    aside = f"; {len(marks) - counted} more do not count" if counted < len(marks) else ""
    return [*reasons, (_grade(right, counted), f"{right} of {counted} citations are right{aside}.")]


def _grade(part: float, whole: int) -> str:
    return "good" if whole and part == whole else "bad" if part == 0 else "neutral"
