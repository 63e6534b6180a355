"""Scores along a number: each level against the lowest, design by design and type by type, and a trade-off told."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from analysis.statistics.correction import holm
from tests.analysis.conftest import TASKS
from tests.analysis.three_seeds import run_seeds

ASKED = ("curves",)
SHARES = (0, 0.3, 1)
FACTOR = "factors=[pooler,attn,data.mix.classes]"
KINDS = np.array(list(TASKS.values()))
STEPS = {"eos-causal": {"Retrieval": -0.05, "STS": 0.04}, "mean-bi": {"Retrieval": 0.0, "STS": 0.04}}


@pytest.fixture
def along(new_study, spread_scores):
    """Write two designs at three shares; return the word that reads them and the scores."""

    def write(seeds=3):
        rng, roots, scores = np.random.default_rng(0), [], {}
        for share in SHARES:
            study = new_study()
            roots.append(str(study.root))
            for design, slopes in STEPS.items():
                base = np.array(list(spread_scores(0.4).values()))
                made = base + share * np.array([slopes[kind] for kind in KINDS]) + rng.normal(0, 0.004, len(base))
                scores[design, share] = made
                named = dict(zip(TASKS, made.tolist(), strict=True))
                run_seeds(study, design, named, seeds, data__mix={"pairs": None, "classes": share})
        return f"scores=[{','.join(roots)}]", scores

    return write


def of(result):
    return next((answer for answer in result.answers if answer.name == "curves"), None)


def test_each_level_is_tested_against_the_lowest(along, analyse_words):
    place, scores = along()
    result = analyse_words(place, FACTOR)
    tests = of(result).frames["curves"]
    assert len(tests) == 2 * 2 * 3
    for (kind, _), rows in tests.groupby(["type", "design_of_curve"]):
        kept, p = np.isin(KINDS, [kind] if kind != "All" else ["STS", "Retrieval"]), []
        for row in rows.to_dict("records"):
            low, other = (scores[row["design_of_curve"], s] for s in (0, float(row["level"])))
            p.append(wilcoxon((other - low)[kept], method="exact").pvalue)
            assert row["difference"] == pytest.approx((other - low)[kept].mean())
        np.testing.assert_allclose(rows["p_adjusted"], holm(np.array(p)))
    told = {(r.design_of_curve, r.type, r.level) for r in tests[tests["told"]].itertuples()}
    assert {("eos-causal", "Retrieval", "1"), ("eos-causal", "STS", "1"), ("mean-bi", "STS", "1")} <= told
    assert not [key for key in told if key[:2] == ("mean-bi", "Retrieval")]
    (line,) = [
        part for part in of(result).grids[0].caption.split("; ") if "told of each level against 0: eos-causal" in part
    ]
    assert "behind on Retrieval" in line
    (drawing,) = of(result).drawings
    assert len([axes for axes in drawing.figure.axes if axes.get_visible()]) == 3


def test_one_seed_claims_nothing(along, analyse_words):
    assert "no claim about designs" in of(analyse_words(along(seeds=1)[0], FACTOR)).grids[0].caption
