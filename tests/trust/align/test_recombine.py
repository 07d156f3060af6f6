"""Variants of questions by hand: published numbers, and each published gap mended (facts B5; pitfalls B70, B71)."""

from collections import Counter
from typing import Any

import pytest

from trust import tables
from trust.align.recombine import COUNTS, Recombined, Recombiner, doc_key, variant_id
from trust.align.variants import SUPPORTED, UNANSWERABLE, VariantOptions
from trust.errors import ConfigError, RowError


def doc(name: str, found: list[int] | None, text: str = "", score: float | None = 1.0) -> dict[str, Any]:
    return {
        "doc_id": name,
        "title": "",
        "text": text or f"text {name}",
        "score": score,
        "answers_found": found,
        "rec_score": None,
    }


def seed(*found: list[int], noise: int, name: str = "d:1", **changes: Any) -> dict[str, Any]:
    """A question with a supporting document for each of `found`, and `noise` irrelevant ones."""
    width = len(found[0]) if found else 1
    docs = [doc(f"v{n}", each, score=50.0) for n, each in enumerate(found)]
    docs += [doc(f"n{n}", [0] * width, score=40.0 - n / 10) for n in range(noise)]
    base = {"sample_id": name, "dataset": "d", "language": "en", "task": "em", "question": "Who?"}
    return base | {"answers": [[f"a{n}"] for n in range(width)], "docs": docs, "meta": {}, "context": {}} | changes


def recombine(row: dict[str, Any], compat: str = "strict", **options: Any) -> tuple[Recombined, Counter[str]]:
    counts: Counter[str] = Counter()
    made = Recombiner(VariantOptions(**options), compat).recombine(row, counts)
    assert set(counts) <= set(COUNTS)
    tables.to_table("variants", made.variants)
    sound(row, made, options.get("docs", 5))
    return made, +counts


def sound(row: dict[str, Any], made: Recombined, size: int) -> None:
    """What holds of all variants."""
    ids = [variant["sample_id"] for variant in made.variants]
    assert len(set(ids)) == len(ids)
    support = {one["doc_id"] for one in row["docs"] if any(one["answers_found"])}
    for variant in made.variants:
        names = [one["doc_id"] for one in variant["docs"]]
        assert len(set(names)) == len(names) <= size
        assert variant["parent_id"] == row["sample_id"]
        assert variant["sample_id"] == variant_id(row["sample_id"], [doc_key(one) for one in variant["docs"]])
        labels = [one["answers_found"] for one in variant["docs"]]
        assert variant["pattern"] == [int(any(column)) for column in zip(*labels, strict=True)]
        assert (variant["kind"] == SUPPORTED) == any(variant["pattern"]) == bool(support & set(names))
        assert variant["answers"] == row["answers"]


def kinds(made: Recombined) -> tuple[int, int]:
    found = Counter(variant["kind"] for variant in made.variants)
    return found[SUPPORTED], found[UNANSWERABLE]


def patterns(made: Recombined) -> set[tuple[int, ...]]:
    return {tuple(variant["pattern"]) for variant in made.variants if variant["kind"] == SUPPORTED}


def names(variant: dict[str, Any]) -> set[str]:
    return {one["doc_id"] for one in variant["docs"]}


def test_one_supporting_document_is_enough() -> None:  # B70
    row = seed([1], noise=20)
    made, counts = recombine(row, answerable=3, unanswerable=3)
    assert kinds(made) == (1, 3)
    assert counts["seeds_both"] == 1
    published, counts = recombine(row, "upstream", answerable=3, unanswerable=3)
    assert kinds(published) == (0, 3), "five slots, and four to fill them"
    assert counts["seeds_unanswerable_only"] == 1
    with_ten, _ = recombine(seed([1], noise=99), "upstream")
    assert kinds(with_ten) == (1, 9), "of fifty documents four are fillers: nine groups of five are left"


def test_without_irrelevant_documents_there_is_no_padding() -> None:  # B71
    row = seed(*([1, 0], [0, 1]) * 3, noise=0)
    for compat in ("strict", "upstream"):
        made, counts = recombine(row, compat)
        assert kinds(made) == (6, 0), "six subsets of five of six"
        assert all(name.startswith("v") for variant in made.variants for name in names(variant))
        assert counts["seeds_without_irrelevant"] == counts["seeds_answerable_only"] == 1
        assert counts["fillers"] == 0
        assert patterns(made) == {(1, 1)}


def test_every_pattern_occurs() -> None:
    row = seed([1, 0, 0], [0, 1, 0], [0, 0, 1], noise=60)
    made, counts = recombine(row)
    assert patterns(made) == {(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)} - {(0, 0, 0)}
    assert (counts["patterns"], counts["patterns_covered"]) == (7, 7)
    assert kinds(made)[0] == 7, "there are no more subsets"
    row = seed(*[[1, 0]] * 6, [0, 1], noise=95)
    made, _ = recombine(row)
    assert patterns(made) == {(1, 0), (0, 1), (1, 1)}
    assert kinds(made)[0] == 10


def test_of_more_than_ten_patterns_published_are_the_first() -> None:
    row = seed(*[[int(n == place) for n in range(4)] for place in range(4)], noise=99)
    published, counts = recombine(row, "upstream")
    assert (counts["patterns"], counts["patterns_covered"]) == (15, 10)
    every = sorted({tuple(int(bit) for bit in f"{number:04b}") for number in range(1, 16)})
    assert patterns(published) == set(every[:10])
    seen = set().union(*(patterns(recombine(row | {"sample_id": f"d:{n}"})[0]) for n in range(20)))
    assert seen == set(every)


def test_fillers_are_the_most_similar_and_serve_once() -> None:
    row = seed([1], [1], noise=0)
    row["docs"][0]["text"], row["docs"][1]["text"] = "apple pear plum", "horse cow sheep"
    fruit = [doc(f"f{n}", [0], f"apple pear fig{n}") for n in range(4)]
    farm = [doc(f"c{n}", [0], f"horse cow goat{n}") for n in range(4)]
    other = [doc(f"o{n}", [0], f"stone iron dust{n}") for n in range(12)]
    row["docs"] += [*other, *fruit, *farm]
    made, counts = recombine(row, docs=5, answerable=10)
    supported = {
        frozenset(n for n in names(v) if n[0] == "v"): names(v) for v in made.variants if v["kind"] == SUPPORTED
    }
    assert set(supported) == {frozenset({"v0"}), frozenset({"v1"}), frozenset({"v0", "v1"})}
    fillers = [name for found in supported.values() for name in found if name[0] != "v"]
    assert len(set(fillers)) == len(fillers) == counts["fillers"] == 4 + 4 + 3
    assert set(fillers) >= {"f0", "f1", "f2", "f3", "c0", "c1", "c2", "c3"}
    assert not counts["fillers_reused"]


def test_no_irrelevant_document_serves_twice_while_there_are_others() -> None:
    made, counts = recombine(seed([1, 0], [0, 1], [1, 1], noise=97))
    used = [name for variant in made.variants for name in names(variant) if name[0] == "n"]
    assert len(set(used)) == len(used)
    assert not counts["fillers_reused"]
    scarce, counts = recombine(seed([1, 0], [0, 1], noise=4))
    assert patterns(scarce) == {(1, 0), (0, 1), (1, 1)}
    assert kinds(scarce) == (3, 0)
    assert counts["fillers_reused"] == 4 + 4 + 3 - 4
    # Eleven are just enough; of ten some serve twice in any case, and a group is left for an unanswerable variant.
    for noise, reused, balance in ((11, 0, (3, 0)), (10, 11 - 5, (3, 1))):
        made, counts = recombine(seed([1, 0], [0, 1], noise=noise))
        assert kinds(made) == balance
        assert counts["fillers_reused"] == reused


def test_what_goes_beyond_the_patterns_leaves_room_for_an_unanswerable_variant() -> None:
    row = seed(*[[1, 0]] * 5, [0, 1], noise=14)
    made, counts = recombine(row)
    assert patterns(made) == {(1, 0), (0, 1), (1, 1)}
    assert kinds(made)[0] > 3
    assert kinds(made)[1] >= 1
    assert counts["seeds_both"] == 1
    assert kinds(recombine(row, unanswerable=0)[0])[1] == 0


def test_only_the_best_retrieved_of_the_irrelevant_are_looked_at() -> None:
    row = seed([1], noise=60)
    row["docs"].reverse()
    made, _ = recombine(row, irrelevant=14)
    used = {name for variant in made.variants for name in names(variant)} - {"v0"}
    assert used == {f"n{n}" for n in range(14)}
    assert kinds(made) == (1, 2)
    for one in row["docs"]:
        one["score"] = None
    made, _ = recombine(row, irrelevant=4)
    assert names(made.variants[0]) == {"v0", "n59", "n58", "n57", "n56"}, "without scores as they are listed"


def test_groups_of_irrelevant_documents_share_none() -> None:
    made, counts = recombine(seed(noise=100, name="d:9"))
    assert kinds(made) == (0, 10)
    assert len({name for variant in made.variants for name in names(variant)}) == 50
    assert counts["seeds_without_support"] == counts["seeds_unanswerable_only"] == 1
    assert kinds(recombine(seed(noise=23), unanswerable=3)[0]) == (0, 3)
    assert kinds(recombine(seed(noise=23), unanswerable=0, no_support="unanswerable")[0]) == (0, 0)


@pytest.mark.parametrize(
    ("compat", "no_support", "dropped"),
    [
        ("strict", None, None),
        ("strict", "drop", "no_support"),
        ("upstream", None, "no_support"),
        ("upstream", "unanswerable", None),
    ],
)
def test_a_question_without_support_is_dropped_or_unanswerable(
    compat: str, no_support: str | None, dropped: str | None
) -> None:
    made, counts = recombine(seed(noise=20), compat, no_support=no_support)
    assert made.dropped == dropped
    assert kinds(made) == ((0, 4) if dropped is None else (0, 0))
    assert counts["variants_unanswerable"] == len(made.variants)


def test_few_documents_make_small_variants() -> None:
    made, counts = recombine(seed([1], noise=2))
    assert [names(variant) for variant in made.variants] == [{"v0", "n0", "n1"}]
    assert counts["seeds_with_few_docs"] == 1
    published, _ = recombine(seed([1], noise=2), "upstream")
    assert published.dropped == "no_combination"
    made, _ = recombine(seed(noise=3))
    assert [names(variant) for variant in made.variants] == [{"n0", "n1", "n2"}]
    made, _ = recombine(seed(*[[1]] * 8, noise=0), docs=20, supporting=5)
    assert [len(variant["docs"]) for variant in made.variants] == [5]


def test_of_many_supporting_documents_the_rare_answer_stays() -> None:
    row = seed(*[[1, 0]] * 40, [0, 1], noise=59)
    for number in range(20):
        made, _ = recombine(row | {"sample_id": f"d:{number}"})
        assert (0, 1) in patterns(made)


def test_draws_follow_from_row_and_seed_alone() -> None:
    row = seed([1, 0], [0, 1], [1, 1], noise=40)
    first, again = recombine(row)[0], recombine(row)[0]
    assert first == again
    assert recombine(row, seed=1)[0] != first
    other = recombine(row | {"sample_id": "d:2"})[0]
    assert [names(v) for v in other.variants] != [names(v) for v in first.variants]
    orders = {tuple(one["doc_id"][0] for one in variant["docs"]).index("v") for variant in first.variants[:7]}
    assert len(orders) > 1, "the supporting document is not always at the same place"


def test_a_document_that_stands_twice_is_taken_once() -> None:
    row = seed([1], noise=5)
    row["docs"] += [row["docs"][0], row["docs"][3]]
    made, counts = recombine(row)
    assert counts["docs_repeated"] == 2
    assert kinds(made) == (1, 0)
    bare = [one | {"doc_id": None} for one in row["docs"]]
    counts = Counter()
    made = Recombiner(VariantOptions(), "strict").recombine(row | {"docs": bare}, counts)
    assert counts["docs_repeated"] == 2
    assert made.variants[0]["sample_id"].startswith("d:1#")
    assert len(made.variants[0]["sample_id"]) == len("d:1#") + 16


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"docs": []}, "no_docs"),
        ({"docs": None}, "no_docs"),
        ({"answers": []}, "no_answers"),
        ({"docs": [doc("a", None)]}, "not_labelled"),
        ({"docs": [doc("a", [1]), doc("b", None)]}, "answers_found_missing"),
        ({"docs": [doc("a", [1, 0])]}, "answers_found_length"),
        ({"docs": [doc("a", [2])]}, "answers_found_value"),
    ],
)
def test_a_row_that_cannot_be_recombined_says_why(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowError) as told:
        Recombiner(VariantOptions(), "strict").recombine(seed([1], noise=5) | changes, Counter())
    assert told.value.reason == reason


@pytest.mark.parametrize("published", ["strict", "upstream"])
def test_many_questions_of_all_kinds_hold_together(published: str) -> None:
    import random

    for number in range(150):
        draw = random.Random(number)
        answers = draw.randint(1, 6)
        found = [[int(draw.random() < 0.3) for _ in range(answers)] for _ in range(draw.randint(0, 25))]
        found = [each for each in found if any(each)]
        row = seed(*found, noise=draw.randint(0, 60), name=f"d:{number}")
        if not row["docs"]:
            continue
        made, counts = recombine(row, published, docs=draw.randint(1, 7))
        if published == "strict":
            assert made.variants
            assert bool(kinds(made)[0]) == bool(found)
            assert counts["patterns_covered"] == min(10, counts["patterns"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"docs": 0}, "variants.docs=0: must be at least 1"),
        ({"answerable": 0}, "variants.answerable=0: must be at least 1"),
        ({"unanswerable": -1}, "variants.unanswerable=-1: must be at least 0"),
        ({"supporting": 40}, "subsets a question are too many"),
        ({"no_support": "dropp"}, "did you mean drop?"),
    ],
)
def test_impossible_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as told:
        VariantOptions(**options)
    assert message in str(told.value)
