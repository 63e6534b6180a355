"""Class data: whose positive and whose negative a text is, which labels docstrings have, and bad records."""

import random
from collections import Counter

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.classes import Labelled, class_triples
from corpora.docstrings import subpackages
from corpora.triples import Triple, read_triples


def labelled(counts: dict[tuple[str, str], int]) -> list[Labelled]:
    """Texts that say nothing of their label, those of a label one after another. counts: (source, label) -> texts."""
    names = [name for name, count in counts.items() for _ in range(count)]
    draw = random.Random(3)
    return [Labelled(f"text {draw.random()}", label, source) for source, label in names]


TEXTS = labelled({("a", "x"): 5, ("a", "y"): 3, ("a", "z"): 1, ("b", "x"): 4})


def test_positives_are_of_the_label_and_negatives_of_the_source_but_not_of_the_label():
    made = class_triples(TEXTS, 2)
    name = {t.text: t.name for t in TEXTS}
    assert [t.query for t in made] == [t.text for t in TEXTS if t.label != "z"], "one text has no positive"
    assert Counter(t.positive for t in made) == Counter(t.query for t in made), "each is a positive once"
    for t in made:
        assert t.positive != t.query
        assert (name[t.query], name[t.positive], *map(name.get, t.negatives)) == tuple(x for (x,) in t.labels)
        assert len({t.query, t.positive, *t.negatives}) == 4
        assert t.labels[0] == t.labels[1] not in t.labels[2:]
    assert {x.split("/")[0] for t in made if t.source == "a" for (x,) in t.labels} == {"a"}
    assert {x for t in made if t.source == "b" for (x,) in t.labels[2:]} == {"a/x", "a/y"}, "b has one label"


def test_a_text_of_two_labels_is_no_negative_of_either():
    texts = [*TEXTS, Labelled(TEXTS[0].text, "y", "a")]
    made = class_triples(texts, 9)
    names = {text: {t.name for t in texts if t.text == text} for text in {t.text for t in texts}}
    assert [set(labels) for t in made for labels in t.labels] == [
        names[text] for t in made for text in (t.query, t.positive, *t.negatives)
    ]
    assert [t.labels[0][0] for t in made if t.query == TEXTS[0].text] == ["a/x", "a/y"], "an example of each"
    assert all(names[t.query].isdisjoint(names[text]) for t in made for text in t.negatives)


def test_neither_chance_nor_the_order_of_texts_decides():
    shuffled = random.Random(1).sample(TEXTS, len(TEXTS))
    assert set(class_triples(shuffled + shuffled[:4], 1)) == set(class_triples(TEXTS, 1))
    assert {t.labels[0][0] for t in class_triples(TEXTS, 1, smallest=4)} == {"a/x", "b/x"}


def test_labels_of_docstrings_are_subpackages_or_packages(install_package, tmp_path):
    def source(module):
        texts = [" ".join(f"{module}{k}{n}" for n in range(30)) for k in range(3)]
        return "".join(
            f'def f{k}():\n    """{module} number {k}.\n\n    {text}\n    """\n' for k, text in enumerate(texts)
        )

    install_package("trained", {"one.py": source("a_first_one"), "two.py": source("a_second_one")})
    words = ["packages=[trained]", "held_out=[]", "development=[]", "smallest=2"]
    data = plain(composed("train", ["data=docstring_classes", *(f"data.{word}" for word in words)]))["data"]
    one, two = "trained/trained.one", "trained/trained.two"
    assert {t.labels for t in read_triples(data, str(tmp_path))} == {
        ((a,), (a,), (b,)) for a, b in ((one, two), (two, one))
    }
    with pytest.raises(UserError, match=r"fewer than two labels of data.smallest=2 texts"):
        read_triples({**data, "level": "package"}, str(tmp_path))
    with pytest.raises(UserError, match=r"data.level=module must be one of subpackage, package"):
        read_triples({**data, "level": "module"}, str(tmp_path))


@pytest.mark.parametrize(
    ("option", "lines", "message"),
    [
        ("classes", '{"text": "a", "lable": 1}', r"line 1 has no 'label'; nearest is 'lable'. .*columns.label=lable"),
        ("classes", '{"text": "a", "label": 1.5}', r"line 1 has '1.5' as 'label'. It must be a text or a whole number"),
        ("graded", '{"first": "a", "second": "b", "score": "high"}', r"line 1 has 'high' as 'score'. .* finite number"),
    ],
)  # fmt: skip
def test_a_bad_record_is_one_line_with_its_place(tmp_path, option, lines, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(lines + "\n")
    with pytest.raises(UserError, match=message) as error:
        read_triples(plain(composed("train", [f"data={option}", f"data.path='{path}'"]))["data"], "")
    assert "\n" not in str(error.value)


def test_records_of_classes_and_of_graded_pairs(tmp_path):
    labels = ["0", '"0"', "true"] * 2
    rows = [f'{{"text": "t{k}", "label": {label}}}' for k, label in enumerate(labels)]
    (tmp_path / "c.jsonl").write_text("\n".join(rows))
    (tmp_path / "g.csv").write_text("first,second,score\na,b,.5\n")
    found = read_triples(plain(composed("train", ["data=classes", f"data.path='{tmp_path / 'c.jsonl'}'"]))["data"], "")
    assert Counter(t.labels[0][0] for t in found) == {"c/0": 4, "c/True": 2}
    graded = plain(composed("train", ["data=graded", f"data.path='{tmp_path / 'g.csv'}'"]))["data"]
    assert read_triples(graded, "") == [Triple("a", "b", (), "g", grade=0.5)]
    assert [t.kind for t in (found[0], Triple("a", "b"), *read_triples(graded, ""))] == ["classes", "pairs", "graded"]


def test_a_subpackage_with_over_a_third_is_divided_where_it_can_be():
    modules = ["p.core.a"] * 4 + ["p.core.b"] * 3 + ["p.io.x"] * 3 + ["p.util"] * 2 + ["p.misc"] * 2
    divided = {"p.core.a": "p.core.a", "p.core.b": "p.core.b", "p.io.x": "p.io", "p.util": "p.util", "p.misc": "p.misc"}
    assert subpackages(modules) == divided
    assert subpackages(["p.core"] * 9 + ["p.io"]) == {"p.core": "p.core", "p.io": "p.io"}
