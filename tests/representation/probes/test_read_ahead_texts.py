"""Quadruples (A, B, C, D): who begins, what follows, from which package."""

from corpora.docstrings import Docstring
from representation.probes.read_ahead_texts import ALIKE, prose, quadruples, shared_words

TOPICS = {
    "fruit": "apple pear plum cherry grape melon fig lime quince mango",
    "tools": "hammer saw drill plane chisel file clamp vice wrench pliers",
    "birds": "robin wren heron crane swift finch eagle raven stork owl",
    "rocks": "granite basalt marble slate flint chalk gneiss shale quartz opal",
}


def docstrings():
    found = []
    for package, words in TOPICS.items():
        listed = words.split()
        for i in range(len(listed)):
            turned = listed[i:] + listed[:i]
            summary = " ".join(turned[:7]).capitalize() + "."
            body = " ".join(["Longer", *turned, *turned]) + ".\nParameters\nx : int\nAnother word."
            found.append(Docstring(package, f"{package}.m", f"f{i}", "function", summary, body))
    return found


def package_of(text):
    word = text.lower().replace(".", "").split()[-1]
    return next(package for package, words in TOPICS.items() if word in words.split())


def test_three_packages_and_one_length():
    made = quadruples(docstrings(), 20)
    assert len(made) == 20
    for t in made:
        assert package_of(t.b) == package_of(t.c)
        assert len({package_of(x) for x in (t.a, t.b, t.d)}) == 3
        assert len({len(x.split()) for x in (t.b, t.c, t.d)}) == 1
        assert t.a in {d.summary for d in docstrings()}
        assert max(shared_words(t.d, t.b), shared_words(t.d, t.c)) <= ALIKE < shared_words(t.b, t.c)


def test_the_seed_alone_decides():
    given = docstrings()
    assert quadruples(given, 20, seed=1) == quadruples(given[::-1], 20, seed=1) != quadruples(given, 20, seed=2)
    assert quadruples(given, 20, seed=1)[:5] == quadruples(given, 5, seed=1)


def test_too_few_packages_give_none():
    assert quadruples([d for d in docstrings() if d.package in ("fruit", "tools")], 5) == []
    assert quadruples([], 5) == []


def test_prose_ends_where_fields_begin():
    assert prose("It sums\nall of them.\nParameters\nx : array") == "It sums all of them."
    assert prose("It sums.\nx, y : array\n  The data.") == "It sums."
    assert prose("Parameters\nx : array") == ""
    assert prose("Plain text of two\nlines: no field.") == "Plain text of two lines: no field."


def test_shared_words_are_those_of_both_over_those_of_either():
    assert shared_words("The sum of it", "the mean of all") == 2 / 6
    assert shared_words("a b", "A, b!") == 1
    assert shared_words("", "") == 0
