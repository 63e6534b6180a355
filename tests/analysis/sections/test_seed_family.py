"""The verdict's sentence on "any seed" keeps its level though it is on the pair that looks best."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, t

from analysis.questions.question import Material
from analysis.questions.seeds import answer
from analysis.settings import Settings

DESIGNS = ["control", "a", "b", "c", "d"]
TASKS = [f"t{k:02}" for k in range(40)]
STUDIES = 200


def material(scores, control="control", **changes):
    """scores [designs, tasks, seeds] as the seeds section reads them."""
    count, tasks, seeds = scores.shape
    place = pd.MultiIndex.from_product([DESIGNS[:count], TASKS[:tasks], map(str, range(seeds))])
    frame = pd.DataFrame({"score": scores.ravel()}, index=place).rename_axis(["design", "task", "seed"]).reset_index()
    own = {"STS": TASKS[:tasks]}
    designs = dict.fromkeys(DESIGNS[:count])
    return Material(Settings(scores=(), **changes), designs, control, own, own, frame, None, None)


def without_effect(rng):
    """Designs that differ by tasks and seeds alone."""
    noise = (
        0.015 * rng.normal(size=(5, 40, 1)) + 0.007 * rng.normal(size=(5, 1, 3)) + 0.007 * rng.normal(size=(5, 40, 3))
    )
    return rng.normal(0.5, 0.1, (1, 40, 1)) + noise


def test_any_of_four_is_called_shown_in_five_per_cent_of_studies_at_most():
    """Bound: what a true rate of 5 % exceeds in one of a hundred suites. The best of the four is among them."""
    rng = np.random.default_rng(3)
    shown = 0
    for _ in range(STUDIES):
        about = answer(material(without_effect(rng))).about
        shown += any("is not shown" not in about["control", name] for name in DESIGNS[1:])
    assert shown <= binom.ppf(0.99, STUDIES, 0.05)
    assert shown > 0, "a sentence that never says so would hold its level too"


@pytest.mark.parametrize(("words", "m"), [({}, 4), ({"correction": "none"}, 1)])
def test_the_interval_of_the_verdict_is_that_of_the_family(words, m):
    """By hand, where only tasks vary, so that the model is Student's interval over tasks."""
    rng = np.random.default_rng(1)
    scores = np.repeat(0.5 + 0.02 * rng.normal(size=(5, 40, 1)), 3, axis=2)
    section = answer(material(scores, **words))
    rows = section.frames["seeds"]
    d = scores[2, :, 0] - scores[0, :, 0]
    reach = t.ppf(1 - 0.05 / m / 2, 39) * d.std(ddof=1) / np.sqrt(40)
    row = rows[rows["second"] == "b"].iloc[0]
    assert row["family_size"] == m
    assert (row["low_together"], row["high_together"]) == pytest.approx((d.mean() - reach, d.mean() + reach))
    said = section.about["control", "b"]
    assert ("Bonferroni over 4 pairs" in said) == (m == 4)
    assert "mean difference (b minus control)" in said
