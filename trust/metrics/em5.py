"""Answer correctness of answer lists (task em5, QAMPARI): precision of the items, recall of the answers capped at 5."""

from collections.abc import Iterator
from dataclasses import dataclass

from trust.compat import Choices
from trust.metrics import Stat, correctness
from trust.metrics.ratios import BIG, Sums, harmonic
from trust.metrics.response import Reading, Rules
from trust.text.citations import remove_upstream
from trust.text.languages import base_language
from trust.text.sentences import Sentence, split_list

TOP = 5
_SCORES = ("prec", "rec", "rec_top5", "f1", "f1_top5")
_VIEWS = {  # published prefix -> (rows, term prefix)
    "regular": ("ac_rows", "all"),
    "answered": ("ac_answered_rows", "answered"),
    "calib_answered": ("ac_known_answered_rows", "calib_answered"),
    "calib_answerable": ("ac_answerable_rows", "calib_answerable"),
}
TERMS = (
    *(f"em5_{prefix}_{name}" for _, prefix in _VIEWS.values() for name in ("preds", *_SCORES)),
    "em5_given",
    "em5_given_supported",
    "em5_wrong_rows",
    "em5_presence",
)
_CONJUNCTIONS = {
    **{"en": "and", "de": "und", "fr": "et", "es": "y", "id": "dan", "fi": "ja", "sw": "na", "ru": "и", "yo": "àti"},
    **{"ar": "و", "fa": "و", "bn": "এবং", "hi": "और", "te": "మరియు", "th": "และ", "ja": "と", "ko": "및", "zh": "和"},
}
_WRITTEN_ON = frozenset({"ar", "ja", "th", "zh"})  # no space behind the conjunction


@dataclass(frozen=True)
class Listed:
    """What a list answer was read to.

    Attributes:
        texts: the items as written.
        forms: their normalised forms.
        found: per gold answer, whether an item is one of its aliases.
    """

    texts: list[str]
    forms: list[str]
    found: list[bool]


def read_items(reading: Reading, rules: Rules) -> list[Sentence]:
    """Items of the response with their citations, as written; remarks that something cannot be answered left out."""
    if rules.choices.lists == "commas":
        return [Sentence(part, remove_upstream(part)) for part in _parts(reading.output)]
    items = split_list(reading.output, rules.styles)
    refusing = rules.detector.classify(items, reading.language).refusing
    return [item for index, item in enumerate(items) if index not in refusing]


def read_list(reading: Reading, items: list[Sentence], choices: Choices) -> Listed:
    """Predictions out of the items. Upstream cuts the text without citations, and so does the compat mode.

    In strict mode neighbours are joined where together they are a gold answer that has a comma ("Washington, D.C.").
    """
    gold = [{reading.normal(alias, choices) for alias in aliases} for aliases in reading.answers]
    if choices.matching == "tokens":
        gold = [aliases - {""} for aliases in gold]
    texts = _parts(reading.plain) if choices.lists == "commas" else list(_joined(reading, items, gold, choices))
    forms = [reading.normal(text, choices) for text in texts]
    pairs = [(text, form) for text, form in zip(texts, forms, strict=True) if form]
    if choices.repeated_predictions == "merged":
        pairs = [pair for i, pair in enumerate(pairs) if pair[1] not in {form for _, form in pairs[:i]}]
    kept = [form for _, form in pairs]
    return Listed([text for text, _ in pairs], kept, [any(form in aliases for form in kept) for aliases in gold])


def score(reading: Reading, listed: Listed, choices: Choices) -> tuple[dict[str, float], dict[str, float]]:
    """Terms and values of one response (facts.md A4 items 13-18)."""
    view = correctness.views(reading)
    if not view.rows:
        return {}, {}
    everything = [True] * len(reading.answers)
    supported = reading.supported if view.earns and reading.supported is not None else [False] * len(everything)
    plain = _scores(reading, listed, everything, len(everything), choices)
    calibrated = _scores(reading, listed, supported, sum(supported), choices)
    of_all = _scores(reading, listed, supported, len(everything), choices)
    terms = dict(view.terms)
    values = {}
    for prefix, scores, weight in (
        ("all", plain, view.rows),
        ("answered", plain, view.answered),
        ("calib_answered", calibrated, view.calibrated),
        ("calib_answerable", calibrated, view.answerable),
    ):
        terms[f"em5_{prefix}_preds"] = len(listed.forms) * BIG * weight
        terms |= {f"em5_{prefix}_{name}": scores[name] * weight for name in _SCORES}
    terms["em5_given"] = plain["rec_top5"] * view.calibrated
    terms["em5_given_supported"] = of_all["rec_top5"] * view.calibrated
    if view.calibrated:
        terms |= _presence(reading, listed, supported, choices)
    if view.answerable:
        values["answer_correctness"] = calibrated["f1_top5"]
    return terms, values


def final(sums: Sums, choices: Choices) -> dict[str, Stat]:
    """The published statistics of task em5; F1_AC is the harmonic mean of both calibrated F1-top-5 means."""
    presence = sums.mean_or_na("em5_presence", "em5_wrong_rows")
    stats = {"qampari_presence": presence, "qampari_absence": presence._replace(value=100.0 - presence.value)}
    for published, (rows, prefix) in _VIEWS.items():
        stats[f"{published}_num_preds"] = sums.size(f"em5_{prefix}_preds", rows)
        for name in _SCORES:
            stats[f"{published}_qampari_{name}"] = sums.mean(f"em5_{prefix}_{name}", rows)
    precision, recall = stats["calib_answered_qampari_f1_top5"].value, stats["calib_answerable_qampari_f1_top5"].value
    stats["calib_qampari_em_f1"] = Stat(sums.f1(precision, recall), correctness.union_rows(sums))
    given = sums.percent(sums["em5_given"] - sums["em5_given_supported"], sums["ac_known_answered_rows"])
    stats["parametric_qampari_rec_top5"] = Stat(given, sums.rows("ac_known_answered_rows"))
    return stats


def _parts(text: str) -> list[str]:
    parts = text.rstrip().rstrip(".").rstrip(",").split(",")
    return [part.strip() for part in parts]


def _joined(reading: Reading, items: list[Sentence], gold: list[set[str]], choices: Choices) -> Iterator[str]:
    aliases = set().union(*gold) if gold else set()
    language = base_language(reading.language)
    word = _CONJUNCTIONS.get(language)
    texts = [item.claim for item in items]
    at = 0
    while at < len(texts):
        width, text = 1, texts[at]
        for wide in (3, 2):
            joined = ", ".join(texts[at : at + wide])
            match = next((t for t in (joined, _bare(joined, word)) if reading.normal(t, choices) in aliases), None)
            if match is not None and at + wide <= len(texts):
                width, text = wide, match
                break
        if at > 0 and at + width == len(texts) and reading.normal(text, choices) not in aliases:
            text = _bare(text, word)
            glued = text.removeprefix(word) if word and language in _WRITTEN_ON else text
            text = glued if reading.normal(glued, choices) in aliases else text
        yield text
        at += width


def _bare(text: str, word: str | None) -> str:
    """The text without the conjunction before the last item of a list."""
    return text[len(word) + 1 :] if word and text.casefold().startswith(f"{word} ") else text


def _scores(reading: Reading, listed: Listed, valid: list[bool], answers: int, choices: Choices) -> dict[str, float]:
    pool = {
        reading.normal(alias, choices)
        for aliases, counts in zip(reading.answers, valid, strict=True)
        if counts
        for alias in aliases
    }
    hits = sum(found and counts for found, counts in zip(listed.found, valid, strict=True))
    precision = sum(form in pool for form in listed.forms) / len(listed.forms) if listed.forms else 0.0
    recall = hits / answers if answers else 0.0
    top = min(TOP, hits) / min(TOP, answers) if answers else 0.0
    return {
        "prec": precision,
        "rec": recall,
        "rec_top5": top,
        "f1": harmonic(precision, recall),
        "f1_top5": harmonic(precision, top),
    }


def _presence(reading: Reading, listed: Listed, supported: list[bool], choices: Choices) -> dict[str, float]:
    """Where wrong items come from: the share that stands in the documents."""
    pool = {
        reading.normal(alias, choices)
        for aliases, counts in zip(reading.answers, supported, strict=True)
        if counts
        for alias in aliases
    }
    forms = listed.forms
    if choices.lists == "commas":  # upstream drops empty items before it normalises here, and afterwards elsewhere
        forms = [reading.normal(part, choices) for part in _parts(reading.plain) if part]
    wrong = [form for form in forms if form not in pool]
    if not wrong:
        return {}
    texts = [reading.normal(doc.get("text") or "", choices) for doc in reading.docs]
    present = sum(any(reading.holds(text, form, choices) for text in texts) for form in wrong)
    return {"em5_wrong_rows": 1.0, "em5_presence": present / len(wrong)}
