"""Texts found again in an index on disk: against Jaccard similarity by sets, and against the search in memory."""

import random

import numpy as np
import pytest

from cli.errors import UserError
from corpora import overlap
from corpora.near_copies import NearCopies
from corpora.overlap import EXACT, NEAR, OverlapCount, TextIndex, keep_texts, place, sketch_of, write_index
from corpora.triples import Triple

WORDS = [f"word{k}" for k in range(400)]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """200 random texts of 1 to 60 words."""
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 60))) for _ in range(200)]


@pytest.fixture(scope="module")
def asked(texts) -> list[str]:
    """Copies in other letters, with 1 to 12 words changed, cut or lengthened, and texts that are new."""
    draw, made = random.Random(1), []
    for k, text in enumerate(texts):
        words = text.split()
        if k % 4 == 0:
            made.append(f"  {text.upper().replace(' ', ', ')}!")
        elif k % 4 == 1:
            for _ in range(draw.randint(1, 12)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            made.append(" ".join(words))
        elif k % 4 == 2:
            made.append(" ".join(words[draw.randrange(len(words)) :] + draw.choices(WORDS, k=draw.randint(0, 9))))
        else:
            made.append(" ".join(draw.choices(WORDS, k=draw.randint(1, 60))))
    return made


@pytest.fixture(scope="module")
def index(texts, tmp_path_factory) -> TextIndex:
    folder = tmp_path_factory.mktemp("indexed") / "index"
    write_index(folder, [*texts, *texts[:50]])
    return TextIndex(folder)


def grams(text: str) -> set[tuple[str, ...]]:
    words = text.lower().replace(",", "").replace("!", "").split()
    return {tuple(words[k : k + 5]) for k in range(max(1, len(words) - 4))}


def by_sets(text: str, texts: list[str]) -> int:
    own = grams(text)
    if any(" ".join(text.lower().replace(",", "").replace("!", "").split()) == other for other in texts):
        return EXACT
    return NEAR if any(len(own & grams(o)) >= 0.5 * len(own | grams(o)) for o in texts) else 0


def test_what_is_found_is_what_sets_say(index, texts, asked):
    found = index.find([sketch_of(text) for text in asked])
    assert found.tolist() == [by_sets(text, texts) for text in asked]
    assert {0, NEAR, EXACT} == set(found.tolist())


def test_candidates_looked_at_in_parts_are_the_same(index, texts, asked, monkeypatch):
    usual = index.find([sketch_of(text) for text in asked])
    monkeypatch.setattr(overlap, "BLOCK", 1)
    assert index.find([sketch_of(text) for text in asked]).tolist() == usual.tolist()
    known = NearCopies()
    for text in texts:
        known.keep(text)
    assert [text in known for text in asked] == (usual > 0).tolist()


def test_a_text_of_many_copies_beside_its_like_is_found(tmp_path):
    """A boilerplate that five hundred texts begin with: all are candidates, one is a near-copy."""
    draw, start = random.Random(2), " ".join(WORDS[:20])
    many = [f"{start} {' '.join(draw.choices(WORDS, k=60))}" for _ in range(500)]
    write_index(tmp_path / "index", many)
    near, new = many[250].rsplit(" ", 3)[0], f"{start} {' '.join(draw.choices(WORDS, k=60))}"
    assert TextIndex(tmp_path / "index").find([sketch_of(near), sketch_of(new)]).tolist() == [NEAR, 0]


def test_distinct_texts_count_once_over_batches_and_indexes(index, texts, tmp_path):
    write_index(tmp_path / "other", ["an apple a day keeps the doctor away", "pears"])
    counted = OverlapCount([index, TextIndex(tmp_path / "other")])
    counted.see([texts[0], texts[0].title(), "an apple a day keeps the doctor at bay", "plums"])
    counted.see([texts[0], "Pears."])
    assert counted.counts() == {"texts": 4, "exact": 2, "near": 1}
    assert OverlapCount([index]).counts() == {"texts": 0, "exact": 0, "near": 0}


def test_scripts_without_spaces_and_texts_without_words(tmp_path):
    kept = ["我们今天去公园散步看花", "Straße nach Köln", "!?", "หนังสือเล่มนี้สนุกมาก"]
    write_index(tmp_path / "index", kept)
    others = ["他昨天在家里读完了一本书", "我们今天去公园散步看树", "straße, nach köln", "!!", "!?", "เขาไปตลาดเมื่อวานนี้"]
    found = TextIndex(tmp_path / "index").find([sketch_of(text) for text in others])
    assert found.tolist() == [0, NEAR, EXACT, 0, EXACT, 0]


def test_an_index_of_texts_without_words_and_one_of_none(tmp_path):
    for name, kept in (("marks", ["!", "?"]), ("none", [])):
        write_index(tmp_path / name, kept)
        found = TextIndex(tmp_path / name).find([sketch_of(text) for text in ("!", "a word")])
        assert found.tolist() == [EXACT if kept else 0, 0]


@pytest.mark.parametrize("name", ["exact", "starts"])
def test_a_damaged_index_is_refused(tmp_path, name):
    write_index(tmp_path / "index", ["one two three"])
    file = tmp_path / "index" / name
    file.write_bytes(file.read_bytes()[:-8] + bytes(8))
    with pytest.raises(UserError, match=r"The training texts in .*index are damaged.*Delete that folder"):
        TextIndex(tmp_path / "index")
    file.unlink()
    with pytest.raises(UserError, match=f"lacks the file {name}"):
        TextIndex(tmp_path / "index")


def test_a_mix_keeps_an_index_of_each_source_with_a_share(tmp_path):
    examples = [Triple("a query", "its answer", ("another",), "pairs/p"), Triple("one", "two", (), "classes/c")]
    facts = {"pairs": {"sha256": "1" * 64, "share": 1.0}, "classes": {"sha256": "2" * 64, "share": 0.0}}
    read = []
    for _ in range(2):
        keep_texts({"sha256": "3" * 64, "of_source": facts}, tmp_path, lambda: read.append(1) or examples)
    assert len(read) == 1
    assert [path.name for path in (tmp_path / overlap.FOLDER).iterdir()] == [place("1" * 64, "").name]
    found = TextIndex(place("1" * 64, tmp_path)).find([sketch_of(t) for t in ("A query?", "another", "one")])
    assert found.tolist() == [EXACT, EXACT, 0]
    assert np.all(np.diff(TextIndex(place("1" * 64, tmp_path)).exact.astype(object)) > 0)
