"""What cleaning takes out of a docstring, and what it leaves."""

import pytest

from corpora.cleaning import split_docstring


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("Call :func:`open` now.", "Call open now."),
        ("Call :py:meth:`~a.b.Shelf.add` now.", "Call a.b.Shelf.add now."),
        ("See :ref:`the guide <guide>` now.", "See the guide now."),
        ("Set ``x`` and `y` now.", "Set x and y now."),
        ("Read [the paper](https://arxiv.org/abs/1) now.", "Read the paper now."),
        ("One line\nand the next.", "One line and the next."),
        ("Keep a < b and c_d and 2*3.", "Keep a < b and c_d and 2*3."),
    ],
)
def test_markup(raw, clean):
    assert split_docstring(raw) == (clean, "")


def test_paragraphs_of_any_script_are_text_and_a_lone_symbol_is_none():
    assert split_docstring("打开一个文件。\n\nπ\n\n返回文件对象。") == ("打开一个文件。", "返回文件对象。")


def test_code_goes_with_its_output_and_the_words_around_it_stay():
    doctest = "Add.\n\nBefore.\n\n>>> add(1,\n...     2)\n3\n\nAfter."
    assert split_docstring(doctest) == ("Add.", "Before.\nAfter.")
    blocks = "Add.\n\n```python\nadd(1, 2)\n```\n\n.. code-block:: python\n\n    add(3, 4)\n\nAfter."
    assert split_docstring(blocks) == ("Add.", "After.")


@pytest.mark.parametrize("signature", ["add(a, b)", "Shelf.add(book, *, at=None) -> int", "add(a,\n    b)"])
def test_a_signature_is_no_summary(signature):
    assert split_docstring(f"{signature}\n\nAdd two numbers.\n\nMore.") == ("Add two numbers.", "More.")


@pytest.mark.parametrize("fields", [":param a: the first", "Args:\n    a: the first", "Returns\n-------\nint"])
def test_a_summary_ends_where_fields_begin(fields):
    summary, body = split_docstring(f"Add two numbers.\n{fields}")
    assert summary == "Add two numbers."
    assert body.startswith(fields[:6])
    assert "---" not in body


@pytest.mark.parametrize("raw", ["", "   ", "----", ">>> add(1, 2)\n3", "f(x)"])
def test_nothing_is_left_of_what_has_no_words(raw):
    assert split_docstring(raw) == ("", "")
