"""What may stand at a key of the configuration."""

import math

import pytest

from cli.errors import UserError
from cli.limits import ENCODER, ENCODER_WORDS, Limit, check_limits, real


@pytest.mark.parametrize(
    ("limit", "allowed", "refused"),
    [
        (Limit(1), [1, 10**9], [0, -1, 1.0, 1.5, "1", None, True, math.inf]),
        (Limit(1, "all"), [None, 1], [0, "null"]),
        (Limit(1, largest=99), [1, 99], [0, 100]),
        (real(0), [0, 0.0, 1e9], [-1e-9, math.nan, math.inf, "0", False, None]),
        (real(0, below=1), [0, 0.999], [1, 1.0]),
    ],
)
def test_what_a_limit_allows(limit, allowed, refused):
    assert [limit.allows(value) for value in allowed] == [True] * len(allowed)
    assert [limit.allows(value) for value in refused] == [False] * len(refused)


def test_it_says_what_may_stand_there():
    assert str(Limit(1, "all")) == "a whole number, at least 1; null: all"
    assert str(real(0, largest=1)) == "a number, at least 0 and at most 1"
    assert str(real(0, below=1)) == "a number, at least 0 and below 1"


def test_the_first_fault_is_named_and_absent_keys_are_not_missed():
    check_limits({"seed": 0, "pooler": {"name": "eos"}, "precision": "mixed"}, ENCODER, ENCODER_WORDS)
    with pytest.raises(UserError, match=r"^seed=null must be a whole number, at least 0\.$"):
        check_limits({"seed": None}, ENCODER, ENCODER_WORDS)
    with pytest.raises(UserError, match=r"^precision=fp8 must be one of auto, bf16, mixed, fp32\.$"):
        check_limits({"precision": "fp8"}, ENCODER, ENCODER_WORDS)
    with pytest.raises(UserError, match=r"^trainer.gradcache=maybe must be true or false\.$"):
        check_limits({"trainer": {"gradcache": "maybe"}}, ENCODER, ENCODER_WORDS)
    check_limits({"trainer": {"gradcache": True}, "tf32": False}, ENCODER, ENCODER_WORDS)
