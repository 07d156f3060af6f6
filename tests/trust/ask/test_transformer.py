from trust.ask.transformer import chunks


def test_chunks_stay_within_the_token_budget_and_lose_nothing() -> None:
    lengths = dict(enumerate([5, 100, 7, 30, 100, 1]))
    groups = chunks(lengths, 200)
    assert sorted(index for group in groups for index in group) == list(range(6))
    for group in groups:
        assert len(group) * max(lengths[i] for i in group) <= 200
    assert chunks({7: 500}, 200) == [[7]], "a single long input still runs"
