"""The order of batches is a function of (seed, epoch), and of nothing else."""

import pytest

from cli.errors import UserError
from training.batches import BatchOrder, roll

SOURCES = ["a"] * 10 + ["b"] * 7 + ["c"] * 3


def test_an_epoch_holds_each_example_at_most_once():
    order = BatchOrder(SOURCES, 4, seed=0, one_source=False)
    seen = [i for s in range(5) for i in order.batch(s)]
    assert sorted(seen) == list(range(20))


def test_epochs_differ_and_repeat_exactly():
    order, again = (BatchOrder(SOURCES, 4, seed=0, one_source=False) for _ in range(2))
    assert [order.batch(s) for s in range(12)] == [again.batch(s) for s in range(12)]
    assert [order.batch(s) for s in range(5)] != [order.batch(s) for s in range(5, 10)]
    assert order.batch(11) == again.batch(11), "any step can be asked for first: resuming needs no replay"


def test_one_source_never_mixes():
    order = BatchOrder(SOURCES, 3, seed=0, one_source=True)
    batches = [order.batch(s) for s in range(len(order.epoch(0)))]
    assert all(len({SOURCES[i] for i in b}) == 1 for b in batches)
    assert {SOURCES[b[0]] for b in batches} == {"a", "b", "c"}
    assert len(batches) == 3 + 2 + 1
    assert order.never == []
    larger = BatchOrder(SOURCES, 4, seed=0, one_source=True)
    assert [SOURCES[i] for i in larger.never] == ["c"] * 3
    assert {i for s in range(20) for i in larger.batch(s)} == set(range(20)) - set(larger.never)


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(UserError, match="global_batch_size=21"):
        BatchOrder(SOURCES, 21, 0, False)


def test_rolling_hash_tells_order_and_step():
    one = roll(roll("", 0, [1, 2]), 1, [3, 4])
    assert one == roll(roll("", 0, [1, 2]), 1, [3, 4])
    assert one != roll(roll("", 0, [3, 4]), 1, [1, 2])
    assert one != roll(roll("", 0, [2, 1]), 1, [3, 4])


def test_one_source_is_refused_where_nothing_tells_sources_apart():
    """All batches would be mixed as without it, in silence."""
    with pytest.raises(UserError, match=r"data.one_source=true, but all 30 examples say the same source \(pairs\)"):
        BatchOrder(["pairs"] * 30, 3, seed=0, one_source=True)
    BatchOrder(["pairs"] * 30, 3, seed=0, one_source=False)
