"""Tasks that share a source: the rule by name, flips of whole clusters against enumeration, resamples, the section."""

import json
from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.scores.tasks import source_of
from analysis.statistics.clusters import cluster_interval, cluster_means, membership
from analysis.statistics.sign_flip import flip_means, sign_flip
from analysis.statistics.wilcoxon import signed_rank
from tests.analysis.three_seeds import run_seeds

ASKED = ("clusters",)
LABELS = ["a", "a", "b", "c", "b", "a", "d", "e"]


@pytest.mark.parametrize(
    "together",
    [
        ("ArXivHierarchicalClusteringP2P", "ArXivHierarchicalClusteringS2S", "ArxivClusteringP2P.v2"),
        ("StackExchangeClustering.v2", "StackExchangeClusteringP2P.v2"),
        ("MedrxivClusteringP2P.v2", "MedrxivClusteringS2S"),
        ("CQADupstackGamingRetrieval", "CQADupstackUnixRetrieval", "CQADupstack-Tex-PL"),
        ("MassiveIntentClassification", "MassiveScenarioClassification"),
        ("STS12", "STS17", "STSBenchmark"),
        ("STS22", "STS22.v2"),
        ("FEVERHardNegatives", "ClimateFEVERHardNegatives.v2", "NanoFEVERRetrieval"),
        ("ArguAna", "ArguAna-PL", "NanoArguAnaRetrieval"),
        (
            "DocsScipyRetrieval",
            "DocsScipyReranking",
            "DocsScipyPairClassification",
            "DocsScipySTS",
            "DocsScipySummarization",
        ),
    ],
)
def test_tasks_of_one_source(together):
    assert len({source_of(task) for task in together}) == 1


def test_flips_are_those_of_enumeration_and_of_the_single_test():
    d = np.random.default_rng(0).normal(0.3, 1, (4, 9))
    d[1, :3] = 0
    d[2] = np.round(d[2])  # ties
    found = flip_means(d)
    assert (found.exact, found.flips) == (True, 2**8)
    for row, p, p_min in zip(d, found.p, found.p_min, strict=True):
        sums = [abs(row @ signs) for signs in product([1, -1], repeat=9)]
        assert p == pytest.approx(np.mean(np.array(sums) >= abs(row.sum()) - 1e-12), abs=1e-15)
        assert p == pytest.approx(sign_flip(row[:, None]).p, abs=1e-15)
        assert p_min == sign_flip(row[:, None]).p_min


def test_membership_and_cluster_means_by_hand():
    members = membership(LABELS)
    np.testing.assert_array_equal(members.toarray()[0], [1, 1, 0, 0, 0, 1, 0, 0])
    d = np.array([[3.0, 1, 2, -1, 4, 2, 5, 0.5]])
    assert cluster_means(d, members).tolist() == [[2.0, 3.0, -1.0, 5.0, 0.5]]


@pytest.mark.parametrize("level", [0.95, 0.9])
def test_the_interval_over_clusters_is_cr2_of_the_regression_on_a_constant(level):
    """Seven clusters of 1 to 4 tasks; the sandwich and its degrees of freedom from matrices over the 17 tasks."""
    sizes = [1, 1, 2, 2, 3, 4, 4]
    members, d = np.repeat(np.eye(7), sizes, axis=1), np.random.default_rng(6).exponential(size=17)
    ones = np.ones(17)
    annihilator = np.eye(17) - np.outer(ones, ones) / 17
    parts = []
    for own in members.astype(bool):
        values, vectors = np.linalg.eigh(np.eye(own.sum()) - np.full((own.sum(), own.sum()), 1 / 17))
        inverse_root = vectors @ np.diag(values**-0.5) @ vectors.T  # (I - H_gg)^(-1/2)
        parts.append(annihilator[own].T @ inverse_root @ ones[own] / 17)
    parts = np.array(parts)
    error = np.sqrt(((parts @ d) ** 2).sum())
    eigenvalues = np.linalg.eigvalsh(parts @ parts.T)
    freedom = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()  # Satterthwaite's, tasks independent
    reach = stats.t.ppf((1 + level) / 2, freedom) * error
    assert cluster_interval(d[None], members, level)[0] == pytest.approx([d.mean() - reach, d.mean() + reach])


def test_clusters_without_spread_are_a_point_and_one_has_no_interval():
    members = np.repeat(np.eye(6), 2, axis=1)
    assert cluster_interval(np.tile([0.2, 0.4], (1, 6)), members)[0] == pytest.approx([0.3, 0.3], abs=1e-12)
    assert cluster_interval(np.zeros((1, 12)), members)[0].tolist() == [0.0, 0.0]
    assert np.isnan(cluster_interval(np.ones((2, 8)), membership(["one"] * 8))).all()


def test_level_with_correlated_tasks_is_kept_by_clusters_alone():
    """10 clusters of 4 tasks that share most of their difference: tasks as units reject far too often."""
    rng = np.random.default_rng(5)
    d = np.repeat(rng.normal(size=(600, 10)), 4, axis=1) + 0.3 * rng.normal(size=(600, 40))
    of_clusters = signed_rank(cluster_means(d, np.repeat(np.eye(10), 4, axis=1))).p
    noise = 4 * np.sqrt(0.05 * 0.95 / 600)
    assert (of_clusters <= 0.05).mean() < 0.05 + noise
    assert (signed_rank(d).p <= 0.05).mean() > 0.25


def docs(study, seeds=1):
    """Two designs on two tasks of each of four packages."""
    tasks = [f"Docs{p}{t}" for p in ("Numpy", "Scipy", "Sympy", "Pandas") for t in ("Retrieval", "Reranking")]
    kinds = {t: "Retrieval" if t.endswith("Retrieval") else "Reranking" for t in tasks}
    (study.root / "tasks.json").write_text(json.dumps(kinds))
    for k, design in enumerate(("eos-causal", "lastlayer-bi")):
        run_seeds(study, design, {t: 0.3 + 0.01 * n + k * (0.02 + 0.001 * n) for n, t in enumerate(tasks)}, seeds)
    return tasks


def clusters(result):
    return next(section for section in result.answers if section.name == "clusters")


def test_with_the_key_both_ways_are_shown(study, analyse_words):
    docs(study)
    section = clusters(analyse_words(f"scores={study.root}", "cluster=source"))
    rows = section.frames["clusters"]
    assert list(rows["type"]) == ["All"]  # within a type every package has one task
    row = rows.iloc[0]
    assert (row["n_tasks"], row["n_clusters"]) == (8, 4)
    assert (row["p_tasks"], row["p"]) == (2 / 2**8, 2 / 2**4)
    assert row["reachable"] == "no"
    assert row["difference_tasks"] == pytest.approx(0.02 + 0.001 * 3.5)
    text = [cell.text for cell in section.grids[0].rows[0]]
    assert text[:2] == ["lastlayer-bi - eos-causal", "+.0235"]


def test_without_the_key_a_note_says_what_is_shared(study, analyse_words):
    docs(study)
    section = clusters(analyse_words(f"scores={study.root}"))
    assert (section.grids, section.frames) == ([], {})
    assert section.notes[0].startswith("The 8 tasks come from 4 sources")
