"""The fuzzy text ratio behind the published refusal test.

The published evaluator uses fuzzywuzzy with python-Levenshtein. Other libraries of the same purpose give other numbers
for the same texts, and some of them cross the refusal threshold, so the rule is rebuilt here on rapidfuzz's edit
operations.
"""

from rapidfuzz.distance import Indel, Levenshtein

_AS_GOOD_AS_EQUAL = 0.995


def partial_ratio(first: str, second: str) -> int:
    """How well the shorter text fits somewhere into the longer one, 0 to 100.

    The edit script between both texts gives blocks of equal characters; every block proposes one window of the longer
    text, as long as the shorter text; the best window counts. A text without characters fits nowhere (0).

    Source: facts.md A3 and A4 item 1 (fuzzywuzzy 0.18 with python-Levenshtein).
    """
    if not first or not second:
        return 0
    shorter, longer = (first, second) if len(first) <= len(second) else (second, first)
    best = 0.0
    for block in Levenshtein.opcodes(shorter, longer).as_matching_blocks():
        start = max(block.b - block.a, 0)
        ratio = Indel.normalized_similarity(shorter, longer[start : start + len(shorter)])
        if ratio > _AS_GOOD_AS_EQUAL:
            return 100
        best = max(best, ratio)
    return round(100 * best)
