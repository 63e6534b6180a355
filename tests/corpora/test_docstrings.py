"""The docstring reader, on small packages written here; nothing is imported, and only the list decides."""

import ast
import shutil

import pytest

from cli.errors import UserError
from corpora.docstring_pairs import docstring_triples, docstrings, training_pairs, training_side, usable
from corpora.docstrings import package_version, read_docstrings

SOURCE = '''"""What the module is for."""
raise RuntimeError("a reader that imports would stop here")

class Shelf:
    """A shelf of books.

    It holds them in order.
    """
    def add(self, book):
        """Put a book on the shelf."""
        def slot():
            """Find a free slot."""

def bare():
    return "not a docstring"
'''
SIDES = {"packages": ["booksh"], "held_out": ["heldout"], "development": []}


def read(packages, tmp_path):
    return read_docstrings(packages, tmp_path / "cache")


def test_all_kinds_of_docstrings_are_read_without_importing_and_no_tests(install_package, tmp_path):
    files = {"__init__.py": SOURCE, "inner/deep.py": '"""Deep inside."""', "template.py": "def {{ name }}(): pass"}
    install_package("booksh", {**files, "tests/test_it.py": '"""A test."""', "test_more.py": '"""A test too."""'})
    found = [(d.module, d.name, d.kind, d.summary, d.body) for d in read(["booksh"], tmp_path)]
    assert found == [
        ("booksh", "", "module", "What the module is for.", ""),
        ("booksh", "Shelf", "class", "A shelf of books.", "It holds them in order."),
        ("booksh", "Shelf.add", "function", "Put a book on the shelf.", ""),
        ("booksh", "Shelf.add.slot", "function", "Find a free slot.", ""),
        ("booksh.inner.deep", "", "module", "Deep inside.", ""),
    ]


def test_a_new_version_or_an_edit_is_read_anew_and_the_same_from_the_cache(
    site, install_package, tmp_path, monkeypatch
):
    rest = "They stand on shelves of oak, in the order in which they were bought by the library over many years."
    install_package("booksh", {"__init__.py": f'"""Old words of many books.\n\n{rest}"""'})
    install_package("heldout", {"__init__.py": ""})
    assert [d.summary for d in read(["booksh"], tmp_path)] == ["Old words of many books."]
    assert [t.query for t in docstrings(SIDES, str(tmp_path / "cache"))] == ["Old words of many books."]
    with monkeypatch.context() as patch:
        patch.setattr("corpora.docstrings._write_package", None)
        assert [d.summary for d in read(["booksh"], tmp_path)] == ["Old words of many books."], "from the cache"
    (site / "booksh" / "__init__.py").write_text(f'"""New words of many books.\n\n{rest}"""')
    assert [t.query for t in docstrings(SIDES, str(tmp_path / "cache"))] == ["New words of many books."], (
        "the version stayed"
    )
    (site / "booksh-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: booksh\nVersion: 1.1\n")
    install_package("other", {"__init__.py": ""})
    assert package_version("booksh") == "1.1"
    assert [d.summary for d in read(["booksh"], tmp_path)] == ["New words of many books."]


def test_a_package_cannot_be_on_both_sides(install_package, tmp_path):
    install_package("booksh", {"__init__.py": SOURCE})
    with pytest.raises(UserError, match="both name booksh"):
        training_side({**SIDES, "held_out": ["booksh"]}, str(tmp_path))


def test_copies_of_held_out_text_are_taken_out(install_package, tmp_path):
    """A docstring goes if its text, summary or body nearly copies one held out, also a copy of a held-out copy."""
    kept = "Pour the water from the blue jug into the glass on the left side of the table."
    same = "Return the number of rows in the file."
    alike = "The number of rows in the file"
    install_package("heldout", {"a.py": f'"""{same}"""', "b.py": f'"""{alike}."""'})
    files = {
        "a.py": f'"""{kept}"""',
        "b.py": f'"""{same}"""',
        "c.py": f'"""Something of its own that no other text says.\n\n{alike}\n"""',
        "d.py": f'"""{alike}!\n\nA body of its own that no other text says in these words.\n"""',
    }
    install_package("booksh", files)
    assert [d.summary for d in training_side(SIDES, str(tmp_path))] == [kept]


NESTED = """
for i in range(3):
    def in_for(): "In for."
try:
    class InTry: "In try."
except ValueError:
    def in_except(): "In except."
finally:
    async def in_finally():
        "In finally."
        match 1:
            case 1:
                def in_case(): "In case."
"""


def test_definitions_in_all_kinds_of_statements_are_read_in_their_order(install_package, tmp_path):
    install_package("nested", {"__init__.py": NESTED})
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    nodes = sorted((n for n in ast.walk(ast.parse(NESTED)) if isinstance(n, kinds)), key=lambda n: n.lineno)
    found = [(d.name.split(".")[-1], d.summary) for d in read(["nested"], tmp_path)]
    assert found == [(n.name, ast.get_docstring(n)) for n in nodes]
    assert len(found) == 5


LESSON = (
    '"""{0} the books on all shelves of a library.\n\nReturn {1}, which is {2} than it was, as text of many words."""'
)


def test_triples_are_kept_with_the_versions_of_the_packages(install_package, site, tmp_path, monkeypatch):
    def lessons(*words):
        return {f"m{i}.py": LESSON.format(w, f"{w} {i} of {w}s", "more " * 9 + w) for i, w in enumerate(words)}

    install_package("heldout", {"a.py": '"""Held out."""'})
    install_package("booksh", lessons("Count", "Sort", "Burn"))
    kept = usable(training_side(SIDES, str(tmp_path / "other")))
    made = docstring_triples(kept)
    asked = SIDES, str(tmp_path / "cache")
    assert docstrings(*asked) == made
    assert [len(t.negatives) for t in made] == [1, 1, 1]
    with monkeypatch.context() as patch:
        for name in ("read_docstrings", "_without_copies", "usable"):
            patch.setattr(f"corpora.docstring_pairs.{name}", None)
        assert docstrings(*asked) == made, "nothing else is read"
        assert training_pairs(*asked) == kept, "no search for near-copies again"
    shutil.rmtree(site / "booksh")
    shutil.rmtree(site / "booksh-1.0.dist-info")
    install_package("booksh", lessons("Count", "Sort"), version="2.0")
    assert len(docstrings(*asked)) == 2
