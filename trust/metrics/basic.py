"""How many rows of which kind, how long the responses are, and how well refusals are grounded (F1_GR)."""

import numpy as np

from trust.compat import Choices
from trust.metrics import Stat
from trust.metrics.ratios import BIG, Sums
from trust.metrics.response import Reading
from trust.text.normalize import count_words

TERMS = (
    "rows",
    "answered",
    "empty",
    "words",
    "words_answered",
    "known",
    "answerable",
    "unanswerable",
    "known_answered",
    "known_refused",
    "answered_answerable",
    "refused_unanswerable",
)


def score(reading: Reading, choices: Choices) -> tuple[dict[str, float], dict[str, float]]:
    """Terms and values of one response."""
    answered, refused = reading.response == "answered", reading.response == "refused"
    words = len(reading.plain.split()) if choices.words == "spaces" else count_words(reading.plain)
    terms = {
        "rows": 1.0,
        "answered": float(answered),
        "empty": float(reading.response == "empty"),
        "words": words * BIG,
        "words_answered": words * BIG * answered,
    }
    values = {"answered": float(answered), "refused": float(refused), "empty": terms["empty"], "length": float(words)}
    if reading.answerable is not None:
        values["answerable"] = float(reading.answerable)
        terms |= {
            "known": 1.0,
            "answerable": float(reading.answerable),
            "unanswerable": float(not reading.answerable),
            "known_answered": float(answered),
            "known_refused": float(refused),
            "answered_answerable": float(answered and reading.answerable),
            "refused_unanswerable": float(refused and not reading.answerable),
        }
    return terms, values


def final(sums: Sums, choices: Choices) -> dict[str, Stat]:
    """Counts, lengths, and eqs. 1-7 of the paper: refusal and answer precision, recall, F1, and their macro mean."""
    ratio = sums.rate("answered", "rows")
    if choices.answered_ratio_digits is not None:
        ratio = ratio._replace(value=np.round(ratio.value, choices.answered_ratio_digits))
    refuse_rec = sums.rate("refused_unanswerable", "unanswerable")
    refuse_prec = sums.rate("refused_unanswerable", "known_refused")
    answer_rec = sums.rate("answered_answerable", "answerable")
    answer_prec = sums.rate("answered_answerable", "known_answered")
    refuse_f1 = sums.f1(refuse_prec.value, refuse_rec.value)
    answer_f1 = sums.f1(answer_prec.value, answer_rec.value)
    known = sums.rows("known")
    refuse_rows = sums.rows("known_refused") + sums.rows("unanswerable") - sums.rows("refused_unanswerable")
    answer_rows = sums.rows("known_answered") + sums.rows("answerable") - sums.rows("answered_answerable")
    return {
        "num_samples": sums.count("rows"),
        "answered_ratio": ratio,
        "answered_num": sums.count("answered"),
        "answerable_num": sums.count("answerable"),
        "overlapped_num": sums.count("answered_answerable"),
        "regular_length": sums.size("words", "rows"),
        "answered_length": sums.size("words_answered", "answered"),
        "refuse_rec": refuse_rec,
        "refuse_prec": refuse_prec,
        "refuse_f1": Stat(refuse_f1, refuse_rows),
        "answerable_rec": answer_rec,
        "answerable_prec": answer_prec,
        "answerable_f1": Stat(answer_f1, answer_rows),
        "macro_avg": Stat((refuse_rec.value + answer_rec.value) / 2, known),
        "macro_f1": Stat((refuse_f1 + answer_f1) / 2, known),
    }
