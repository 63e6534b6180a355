"""The check of values: limits, words, and the kind of a default."""

import pytest

from cli.compose import composed, options, plain
from cli.errors import UserError
from cli.limits import Limit, check_limits, real
from encoders.limits import ENCODER, ENCODER_WORDS
from training.checks import check_sizes

CELLS = [[], ["pooler=multilayer", "attn=bi_last"], ["data=jsonl"], ["objective=mixed", "data=families"]]
SIZED = [["reference_fault=all", "design=model5"], ["pooler=linear", "pooler.match_params=5000"], ["design=nv_embed"]]


@pytest.mark.parametrize(
    ("limit", "good", "bad"),
    [
        (Limit(1), [1, 5], [0, 1.5, True, None, "1", float("nan")]),
        (Limit(1, "none", largest=3), [None, 3], [4]),
        (real(0, below=1), [0, 0.5], [1, -0.1]),
        (Limit(1, each=True), [[1, 2]], [[], 1, [0], ["a"]]),
    ],
)
def test_limits(limit, good, bad):
    assert all(map(limit.allows, good))
    assert not any(map(limit.allows, bad))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("lora.r=abc", "lora.r=abc must be a number."),
        ("lora.r=0", "lora.r=0 must be a whole number, at least 1."),
        ("pooler.tokens=most", "pooler.tokens=most must be one of all, last, mean."),
        ("head.num_heads=0", "pooler.num_heads=0 must be a whole number, at least 1."),
        ("resume=maybe", "resume=maybe must be true or false."),
        ("trainer=5", "trainer=5 must be left out: it has keys of its own."),
        ("study=5", "study=5 must be a text: with digits alone, \"'5'\"."),
    ],
)
def test_what_may_stand_is_said(word, message):
    with pytest.raises(UserError) as refused:
        check_sizes(plain(composed("train", ["pooler=multilayer", word])))
    assert str(refused.value).startswith(message)


def test_what_conf_has_is_allowed():
    for cell in [*CELLS, *SIZED]:
        check_sizes(plain(composed("train", cell)))
    for group in ("attn", "data", "pooler", "template", "model"):
        for option in options(group):
            check_limits(plain(composed("train", [f"{group}={option}"])), ENCODER, ENCODER_WORDS)
