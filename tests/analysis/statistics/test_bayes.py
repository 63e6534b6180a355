"""The Bayesian signed-rank test against baycomp, a draw-by-draw loop and closed forms."""

import numpy as np
import pytest
from scipy.stats import beta

from analysis.statistics.bayes import DRAWS, SEED, bayes_signed_rank
from records.errors import UserError


def parts(found, pair=0):
    return np.array([found.worse[pair], found.equivalent[pair], found.better[pair]])


@pytest.mark.parametrize(
    ("n", "shift", "rope"), [(5, 0.0, 0.005), (20, 0.004, 0.005), (41, 0.006, 0.005), (8, 0.01, 0.02)]
)
def test_probabilities_are_baycomps(n, shift, rope):
    baycomp = pytest.importorskip("baycomp", reason="not a dependency: it brings a package `tests`")
    first = np.random.default_rng(n).normal(0.5, 0.1, n)
    second = first + np.random.default_rng(n + 1).normal(shift, 0.012, n)
    theirs = np.array(baycomp.SignedRankTest.probs(first, second, rope, nsamples=20_000, random_state=1))
    ours = parts(bayes_signed_rank((second - first)[None], rope))
    error = np.sqrt(theirs * (1 - theirs) * (1 / 20_000 + 1 / DRAWS)) + 1e-4
    assert (np.abs(ours - theirs) < 4 * error).all()


def test_a_loop_over_draws_and_pairs_of_tasks_says_the_same():
    z = np.array([-0.02, 0.001, 0.004, 0.008, 0.011, 0.03])
    draws, rope, own = 400, 0.005, np.r_[0.0, z]
    wins = np.zeros(3)
    for w in np.random.default_rng(SEED).dirichlet([0.5] + [1] * 6, draws):
        share = np.zeros(3)
        for i in range(7):
            for j in range(7):
                mean = (own[i] + own[j]) / 2
                share[0 if mean < -rope else 2 if mean > rope else 1] += w[i] * w[j]
        wins[np.argmax(share)] += 1
    assert parts(bayes_signed_rank(z[None], rope, draws=draws)) == pytest.approx(wins / draws)


def test_closed_forms():
    """With w of Beta(1/2, n), `better` is 1 - w^2 where all z > 2 rope, (1 - w)^2 where rope < z < 2 rope."""
    found = bayes_signed_rank(np.array([[0.3, 0.2], [0.008, 0.007]]), 0.005)
    expected = [beta.cdf(np.sqrt(0.5), 0.5, 2), beta.cdf(1 - np.sqrt(0.5), 0.5, 2)]
    assert found.better == pytest.approx(expected, abs=4 * np.sqrt(0.25 / DRAWS))
    assert found.worse.tolist() == [0, 0]


def test_later_minus_earlier():
    z = np.random.default_rng(2).normal(0.002, 0.01, (4, 15))
    found, turned = bayes_signed_rank(z, 0.004), bayes_signed_rank(-z, 0.004)
    assert found.worse == pytest.approx(turned.better)
    assert found.equivalent == pytest.approx(turned.equivalent)
    assert found.worse + found.equivalent + found.better == pytest.approx(np.ones(4))


def test_identical_designs_are_equivalent_with_any_rope():
    for rope in (0.0, 0.005):
        assert parts(bayes_signed_rank(np.zeros((1, 5)), rope)).tolist() == [0, 1, 0]


def test_the_edge_belongs_to_the_region():
    """0.35 - 0.30 is more than .05 in floating point, and .05 in the table."""
    assert 0.35 - 0.30 != 0.05
    found = bayes_signed_rank(np.full((1, 6), 0.35 - 0.30), 0.05)
    assert parts(found).tolist() == [0, 1, 0]


def test_rope_is_checked_and_used(study, analyse_words, spread_scores):
    for k, design in enumerate(("eos-causal", "mean-bi")):
        study.run(design, spread_scores(0.4 + 0.01 * k))
    for rope, expected, column in ((0.005, "better", 3), (0.02, "equivalent", 2)):
        (section,) = [s for s in analyse_words(f"scores={study.root}", f"rope={rope}").sections if s.name == "bayes"]
        table = section.frames["bayes.csv"]
        assert table["type"].tolist() == ["Retrieval", "STS", "All"]
        assert (table[expected] > 0.9).all()
        assert (table["rope"] == rope).all()
        assert "All" in section.grids[0].title
        assert section.grids[0].rows[0][column].style == "best"
    with pytest.raises(UserError, match="rope=2 is out of range"):
        analyse_words(f"scores={study.root}", "rope=2")


def test_few_tasks_that_agree_are_no_bold_probability(tmp_path, analyse_words):
    """With two tasks .96 is what any agreement gives."""
    path = tmp_path / "wide.csv"
    for tasks, bold in ((["STS12", "STS13"], False), ([f"STS{k}" for k in range(12, 17)] + ["SICK-R"], True)):
        path.write_text(f"model,{','.join(tasks)}\na{',.5' * len(tasks)}\nb{',.6' * len(tasks)}\n")
        section = next(s for s in analyse_words(f"scores={path}").sections if s.name == "bayes")
        assert section.frames["bayes.csv"]["better"][0] >= 0.95
        assert (section.grids[0].rows[0][3].style == "best") is bold
