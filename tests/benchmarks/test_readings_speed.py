"""Nothing is timed whose vectors are not those of the pooler alone."""

import pytest

from benchmarks.speed.readings_speed import check
from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import load_readings, untrained

TEXTS = ["the sum of two arrays", "a new array", "type", "a new array"]


def test_readings_are_checked_before_they_are_timed(small_model):
    words = [f"model.path={small_model}", "precision=fp32", "max_length=48", "accelerator=cpu"]
    eos, mean = (plain(composed("evaluate", [*words, f"pooler={name}"])) for name in ("eos", "mean"))
    loaded = load_readings(eos, None, {"eos": eos["pooler"], "mean": mean["pooler"]})
    check(loaded, {"eos": untrained(eos), "mean": untrained(mean)}, TEXTS)
    with pytest.raises(UserError, match="Reading mean differs"):
        check(loaded, {"eos": untrained(eos), "mean": untrained(eos)}, TEXTS)
