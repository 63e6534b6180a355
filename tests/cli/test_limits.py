"""The one check of values, on every key that conf/ has."""

import pytest

from cli.compose import FREE, composed, flat, options, plain
from cli.errors import UserError
from cli.limits import ENCODER, ENCODER_WORDS, Limit, check_limits, real
from training.checks import check_sizes

# What no key takes, whatever its kind: a list of lists where a number, word or switch belongs, a number beside a list.
ODD = [[1, [2]], {"no such": {"key": 1}}]
CELLS = [[], ["pooler=multilayer", "attn=bi_last"], ["data=jsonl"], ["objective=mixed", "data=families"]]
SIZED = [["divergence=all", "design=model5"], ["pooler=linear", "pooler.match_params=5000"], ["design=nv_embed"]]
OPEN = ("data.columns.", "data.packages", "data.held_out", "data.development", "model.lora_targets", "lora.targets")


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
        ("lora.r=abc", "lora.r=abc must be a whole number, at least 1."),
        ("seed=-1", "seed=-1 must be a whole number, at least 0."),
        ("precision=fp8", "precision=fp8 must be one of auto, bf16, mixed, fp32."),
        ("resume=maybe", "resume=maybe must be true or false."),
        ("data.instruction=5", "data.instruction=5 must be a text, one of digits in quotes of its own"),
        ("runs_dir=[a]", "runs_dir=['a'] must be a text"),
        ("trainer=5", "trainer=5 must be left out: it has keys of its own, such as trainer.max_steps."),
        ("study=' '", "study= names no folder below runs_dir"),
    ],
)
def test_what_may_stand_is_said(word, message):
    with pytest.raises(UserError) as refused:
        check_sizes(plain(composed("train", [word])))
    assert str(refused.value).startswith(message)


def test_every_key_of_the_defaults_is_allowed():
    for cell in [*CELLS, *SIZED]:
        check_sizes(plain(composed("train", cell)))


@pytest.mark.parametrize("cell", CELLS, ids=" ".join)
def test_no_key_takes_what_is_of_no_kind(cell):
    cfg = plain(composed("train", cell))
    for key in flat(cfg):
        if key.startswith((*FREE, *OPEN)) or flat(cfg)[key] is None:
            continue
        for odd in ODD if not isinstance(flat(cfg)[key], list) else ODD[1:]:
            changed = plain(composed("train", cell))
            *above, last = key.split(".")
            place = changed
            for name in above:
                place = place[name]
            place[last] = odd
            with pytest.raises(UserError, match=f"{key.rpartition('.')[2]}|{key.partition('.')[0]}"):
                check_sizes(changed)


def test_each_option_of_a_group_passes_the_check():
    for group in ("attn", "data", "pooler", "template", "model"):
        for option in options(group):
            check_limits(plain(composed("train", [f"{group}={option}"])), ENCODER, ENCODER_WORDS)
