"""Tests within a task: every statistic against scipy or enumeration; the files and the section."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.items import compare_items
from cli.errors import UserError
from tests.analysis.item_files import item_files

ASKED = ()
WANTED = "tables=[items]"
ONE, TWO = np.array([0]), np.array([1])


def rng(seed=0):
    return np.random.default_rng(seed)


def ranked(n, seeds=1, seed=0):
    """[2 designs, seeds, n] predictions with ties, grades [n] and labels [n]; the second design is better."""
    g = rng(seed)
    grades = np.round(g.uniform(0, 5, n))
    noise = np.array([1.5, 0.8])[:, None, None] * g.normal(size=(2, seeds, n))
    return np.round((grades + noise) / 5, 1), grades, (grades > 2.5).astype(float)


def test_a_mean_is_scipys_paired_permutation_test_and_bootstrap():
    x, y = rng(2).beta(2, 2, (2, 12))
    found = compare_items("mean", np.array([[x], [y]]), np.zeros(0), ONE, TWO)
    theirs = stats.permutation_test((y - x,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert found.flips == 2**11
    assert found.p[0] == pytest.approx(theirs.pvalue, abs=1e-15)
    assert found.difference[0] == pytest.approx((y - x).mean())
    many = rng(3).normal(0.1, 1, 400)
    found = compare_items("mean", np.array([[many * 0], [many]]), np.zeros(0), ONE, TWO)
    assert (found.flips, found.p_min[0]) == (9999, 1e-4)
    assert found.p[0] == pytest.approx(stats.ttest_1samp(many, 0).pvalue, abs=0.01)
    low, high = stats.bootstrap((many,), np.mean, method="percentile", rng=0).confidence_interval
    assert found.interval[0] == pytest.approx([low, high], abs=0.01)


@pytest.mark.parametrize("seeds", [1, 2])
def test_swapped_correlations_are_those_of_enumeration(seeds):
    predicted, grades, _ = ranked(8, seeds, seed=5)
    found = compare_items("spearman", predicted, grades, ONE, TWO)
    ranks = np.array([[stats.rankdata(seed) for seed in design] for design in predicted])

    def change(keep):
        one = np.where(keep, ranks[0], ranks[1])
        other = np.where(keep, ranks[1], ranks[0])
        target = stats.rankdata(grades)
        pairs = zip(one, other, strict=True)
        return np.mean([np.corrcoef(b, target)[0, 1] - np.corrcoef(a, target)[0, 1] for a, b in pairs])

    observed = change(np.ones(8, dtype=bool))
    spearman = [np.mean([stats.spearmanr(seed, grades).statistic for seed in design]) for design in predicted]
    assert found.value == pytest.approx(spearman, abs=1e-12)
    assert found.difference[0] == pytest.approx(observed, abs=1e-12)
    every = [abs(change(np.array(keep))) for keep in product([True, False], repeat=8)]
    assert found.flips == 2**7
    assert found.p[0] == pytest.approx(np.mean(np.array(every) >= abs(observed) - 1e-9), abs=1e-15)


def test_a_scale_of_its_own_is_no_difference():
    """The second design says the same as the first in other numbers."""
    predicted, grades, _ = ranked(50, seed=7)
    same = np.stack([predicted[0], 0.1 * predicted[0] ** 3 + 7])
    found = compare_items("spearman", same, grades, ONE, TWO)
    assert (found.difference[0], found.p[0]) == (pytest.approx(0, abs=1e-12), 1.0)
    assert found.interval[0] == pytest.approx([0, 0], abs=1e-9)


@pytest.mark.parametrize("kind", ["mean", "spearman"])
def test_level_and_coverage_without_a_difference(kind):
    g = rng(8)
    sets = 60
    rejected = covered = 0
    for _ in range(sets):
        grades = np.round(g.uniform(0, 5, 60))
        items = grades + 1.5 * g.normal(size=(2, 1, 60))
        found = compare_items(kind, items, grades, ONE, TWO)
        rejected += found.p[0] <= 0.05
        covered += found.interval[0, 0] <= 0 <= found.interval[0, 1]
    noise = 4 * np.sqrt(sets * 0.05 * 0.95)
    assert rejected <= 0.05 * sets + noise
    assert covered >= 0.95 * sets - noise


@pytest.fixture
def with_items(planted, spread_scores):
    """The three designs of `planted`, whose means on Retrieval0 are .3, .4 and .5, and their queries."""
    study = planted()
    noise = rng(9).normal(0, 0.1, (3, 40))
    noise -= noise.mean(axis=1, keepdims=True)
    designs = ("eos-causal", "lastlayer-bi", "multilayer-causal")
    values = {design: 0.3 + 0.1 * k + noise[k] for k, design in enumerate(designs)}
    item_files(study, values)
    return study, values


def section(result):
    return next((s for s in result.sections if s.name == "items"), None)


def test_the_section_reads_the_files_beside_the_scores(with_items, analyse_words):
    study, values = with_items
    found = section(analyse_words(f"scores={study.root}", WANTED))
    rows = found.frames["items"]
    assert len(rows) == 3
    row = rows.iloc[1]
    one, other = values["eos-causal"], values["multilayer-causal"]
    assert (row["task"], row["first"], row["second"], row["n_items"]) == (
        "Retrieval0", "eos-causal", "multilayer-causal", 40
    )  # fmt: skip
    assert row["difference"] == pytest.approx((other - one).mean())
    assert row["p_holm"] == pytest.approx(min(3 * row["p"], 1), abs=1e-3)
    assert found.notes == []
    next(study.root.glob("predictions/s__multilayer-causal/*/*_items.json")).unlink()
    (note,) = section(analyse_words(f"scores={study.root}", WANTED)).notes
    assert note == "Tested with what has items, of 3 designs and 1 seed: Retrieval0 (2 designs, 1 seed)."


def test_items_elsewhere_and_only_on_request(with_items, analyse_words, tmp_path):
    study, _ = with_items
    assert section(analyse_words(f"scores={study.root}")) is None
    (study.root / "predictions").rename(tmp_path / "kept")
    assert section(analyse_words(f"scores={study.root}", WANTED)).tables == []
    words = (f"scores={study.root}", WANTED, f"items={tmp_path / 'kept'}")
    assert len(section(analyse_words(*words)).frames["items"]) == 3
    with pytest.raises(UserError, match="items=nowhere: there is no such folder"):
        analyse_words(f"scores={study.root}", "items=nowhere")
    with pytest.raises(UserError, match=r"tables= names 'itmes'\. Nearest: items"):
        analyse_words(f"scores={study.root}", "tables=[itmes]")


def test_items_that_cannot_be_paired_are_refused(with_items, analyse_words):
    study, values = with_items
    item_files(study, {"eos-causal": values["eos-causal"][:39]})
    with pytest.raises(UserError, match=r"The items of Retrieval0 differ between .* tables="):
        analyse_words(f"scores={study.root}", WANTED)
    next(study.root.glob("predictions/s__eos-causal/*/*_items.json")).write_text(
        '{"splits": {"test": {"default": {}}}}'
    )
    with pytest.raises(UserError, match=r"_items\.json cannot be read"):
        analyse_words(f"scores={study.root}", WANTED)


def test_pairs_of_texts_make_a_row_of_their_own_kind(with_items, analyse_words):
    study, _ = with_items
    predicted, grades, _ = ranked(60, seed=10)
    item_files(study, dict(zip(("eos-causal", "lastlayer-bi"), predicted[:, 0], strict=True)),
               "cosine_spearman", grades, task="STS3")  # fmt: skip
    found = section(analyse_words(f"scores={study.root}", WANTED))
    row = found.frames["items"].set_index("task").loc["STS3"]
    assert row["score_second"] == pytest.approx(stats.spearmanr(predicted[1, 0], grades).statistic)
    assert (row["first"], row["second"], row["p_holm"]) == ("eos-causal", "lastlayer-bi", row["p"])
    assert any("STS3" in note and "do not give the score" in note for note in found.notes)
