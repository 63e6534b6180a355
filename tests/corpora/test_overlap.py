"""Texts found again among those of training: by their words alone, each distinct one once."""

import pytest

from cli.errors import UserError
from corpora.copies import FOLDER, OverlapCount, keep_texts, key_of, place, write_texts
from corpora.triples import Triple


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("An apple; a pear", "  an APPLE, a pear!", True),
        ("an apple", "an apple pie", False),
        ("Straße nach Köln", "straße, nach köln", True),
        ("我们今天去公园", "我们今天去公园。", True),
        ("!?", "!?", True),
        ("!?", "!!", False),
    ],
)
def test_words_decide_and_marks_only_where_there_are_no_words(one, other, same):
    assert (key_of(one) == key_of(other)) == same


def test_distinct_texts_count_once_over_batches_and_files(tmp_path):
    write_texts(tmp_path / "a.npy", ["one two", "three", "three"])
    write_texts(tmp_path / "b.npy", ["pears"])
    counted = OverlapCount([tmp_path / "a.npy", tmp_path / "b.npy"])
    counted.see(["One, two!", "one two", "plums"])
    counted.see(["Pears.", "one"])
    assert counted.counts() == {"texts": 4, "exact": 2}
    assert OverlapCount([]).counts() == {"texts": 0, "exact": 0}


def test_a_mix_keeps_the_texts_of_each_source_with_a_share(tmp_path):
    examples = [Triple("a query", "its answer", ("another",), "pairs/p"), Triple("one", "two", (), "classes/c")]
    facts = {"pairs": {"sha256": "1" * 64, "share": 1.0}, "classes": {"sha256": "2" * 64, "share": 0.0}}
    keep_texts({"sha256": "3" * 64, "of_source": facts}, tmp_path, examples)
    file = place("1" * 64, tmp_path)
    assert list((tmp_path / FOLDER).iterdir()) == [file]
    assert OverlapCount([file]).known == set(map(key_of, ("A query?", "its answer", "another")))
    file.write_bytes(b"damaged")
    with pytest.raises(UserError, match=f"{file} cannot be read: .* Delete it"):
        OverlapCount([file])
