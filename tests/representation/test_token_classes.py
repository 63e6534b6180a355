"""Classes of tokens on the bundled base's own tokenizer."""

import pytest

from cli.compose import CONF
from encoders.backbone import load_tokenizer
from encoders.tokens import TextTokenizer
from representation.token_classes import CLASSES, CONTENT, FUNCTION, PUNCTUATION, Piece, TokenClasses, kind_of


@pytest.fixture(scope="module")
def tokenizer():
    model = {"path": str(CONF.parent / "assets" / "tiny"), "trust_remote_code": False, "sliding_window": False}
    return TextTokenizer(load_tokenizer(model), 64)


def classes_of(tokenizer, text, instruction=None):
    """[(token, class)] of a text."""
    rows = tokenizer([text], instruction)
    batch = tokenizer.batch([*rows, *tokenizer(["a much longer text than any other that pads the row " * 2])])
    found = TokenClasses(tokenizer.tokenizer)(batch)[0]
    words = [tokenizer.tokenizer.decode([i]).strip() for i in batch.input_ids[0].tolist()]
    return [(word, CLASSES[k]) for word, k in zip(words, found.tolist(), strict=True)]


def test_each_token_has_its_class(tokenizer):
    found = classes_of(tokenizer, "Return the sum of (two) arrays, in place.")
    real = [pair for pair in found if pair[1] != "padding"]
    assert dict(real[:-1])["the"] == dict(real[:-1])["of"] == dict(real[:-1])["in"] == "function word"
    assert dict(real[:-1])["sum"] == dict(real[:-1])["arrays"] == "content word"
    assert {kind for word, kind in real[:-1] if word in ("(", ")", ",", ".", "),")} == {"punctuation"}
    assert real[-1][1] == "EOS"
    assert len(found) > len(real)


@pytest.mark.parametrize(
    ("before", "piece", "after", "kind"),
    [
        (None, Piece(True, False, "the"), None, FUNCTION),
        (None, Piece(True, True, "the"), Piece(True, True, "sum"), FUNCTION),
        (None, Piece(True, True, "the"), Piece(True, False, "re"), CONTENT),
        (Piece(True, True, "ba"), Piece(True, False, "the"), None, CONTENT),
        (Piece(False, True, "("), Piece(True, False, "the"), Piece(False, False, ")"), FUNCTION),
        (None, Piece(True, True, "sum"), None, CONTENT),
        (None, Piece(False, True, "..."), None, PUNCTUATION),
    ],
)
def test_words_begin_and_end(before, piece, after, kind):
    assert kind_of(piece, before, after) == kind
