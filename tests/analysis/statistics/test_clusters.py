"""Tasks that share a source: the rule by name, flips of whole clusters against enumeration, resamples, the section."""

import json
from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.scores.task_types import known_types, source_of
from analysis.statistics.clusters import cluster_interval, cluster_pairs, membership
from analysis.statistics.intervals import student_interval
from analysis.statistics.sign_flip import bootstrap_counts, flip_means, sign_flip
from benchmarks.calibrate.cluster_coverage import resampled_means
from cli.errors import UserError
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


def test_tasks_of_different_sources():
    apart = [
        "DocsScipyRetrieval", "DocsNumpyRetrieval", "STS12", "STS22", "SICK-R", "BIOSSES", "BiorxivClusteringP2P.v2",
        "MedrxivClusteringP2P.v2", "TwitterSemEval2015", "TwitterURLCorpus", "FEVER", "HotpotQA", "ArguAna",
        "MTOPDomainClassification", "MassiveIntentClassification", "AskUbuntuDupQuestions", "CQADupstackUnixRetrieval",
        "SCIDOCS", "StackExchangeClustering.v2", "TweetSentimentExtractionClassification",
    ]  # fmt: skip
    assert len({source_of(task) for task in apart}) == len(apart)
    names = {source_of(task) for task in known_types()}
    assert all(name.strip() for name in names)


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


def test_random_flips_come_near_the_t_test_and_count_b_plus_one():
    d = np.random.default_rng(1).normal(0.25, 1, (3, 60))
    found = flip_means(d)
    assert (found.exact, found.flips) == (False, 9999)
    np.testing.assert_allclose(found.p, stats.ttest_1samp(d, 0, axis=1).pvalue, atol=0.02)
    assert flip_means(np.ones((1, 60))).p[0] == 1e-4
    assert flip_means(np.zeros((1, 60))).p[0] == 1.0


def test_membership_and_cluster_means_by_hand():
    members = membership(LABELS)
    np.testing.assert_array_equal(members.toarray()[0], [1, 1, 0, 0, 0, 1, 0, 0])
    d = np.array([[3.0, 1, 2, -1, 4, 2, 5, 0.5]])
    found = cluster_pairs(d, members)
    means = [2.0, 3.0, -1.0, 5.0, 0.5]
    assert found.difference[0] == pytest.approx(np.mean(means))
    assert found.ranks.p[0] == pytest.approx(stats.wilcoxon(means, method="exact").pvalue, abs=1e-15)
    assert found.ranks.n_pairs[0] == 5


def test_flips_of_clusters_are_flips_of_all_their_tasks():
    d = np.random.default_rng(2).normal(0.4, 1, (2, 8))
    members = membership(LABELS)
    found = cluster_pairs(d, members)
    for row, p in zip(d, found.flips.p, strict=True):
        sums = [abs((row * (np.array(signs) @ members)).mean()) for signs in product([1, -1], repeat=5)]
        assert p == pytest.approx(np.mean(np.array(sums) >= abs(row.mean()) - 1e-12), abs=1e-15)


def test_every_task_its_own_cluster_changes_nothing():
    d = np.random.default_rng(3).normal(0.2, 1, (3, 10))
    found = cluster_pairs(d, np.eye(10))
    np.testing.assert_allclose(found.ranks.p, [stats.wilcoxon(row, method="exact").pvalue for row in d], atol=1e-15)
    np.testing.assert_allclose(found.flips.p, flip_means(d).p)


def test_resampled_clusters_are_literal():
    differences, members = np.random.default_rng(4).normal(size=(2, 8)), membership(LABELS).toarray()
    means = resampled_means(differences, members, draws=40)
    for b, counts in enumerate(next(bootstrap_counts(5, 40))):
        drawn = [t for c in np.repeat(np.arange(5), counts.astype(int)) for t in np.flatnonzero(members[c])]
        np.testing.assert_allclose(means[:, b], differences[:, drawn].mean(axis=1))


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


def test_clusters_of_one_size_are_tasks_of_their_means():
    d = np.random.default_rng(7).normal(size=(3, 24))
    members = np.repeat(np.eye(8), 3, axis=1)
    means = d @ members.T / 3
    wanted = stats.ttest_1samp(means, 0, axis=1).confidence_interval(0.99)
    np.testing.assert_allclose(cluster_interval(d, members, 0.99), np.stack([wanted.low, wanted.high], axis=1))
    np.testing.assert_allclose(student_interval(means, 0.99), [wanted.low, wanted.high])


def test_clusters_without_spread_are_a_point_and_one_has_no_interval():
    members = np.repeat(np.eye(6), 2, axis=1)
    assert cluster_interval(np.tile([0.2, 0.4], (1, 6)), members)[0] == pytest.approx([0.3, 0.3], abs=1e-12)
    assert cluster_interval(np.zeros((1, 12)), members)[0].tolist() == [0.0, 0.0]
    assert np.isnan(cluster_interval(np.ones((2, 8)), membership(["one"] * 8))).all()


def test_the_interval_over_unequal_clusters_covers():
    """Eight clusters of 1 to 12 tasks with a correlation of .3, normal: 95 % within the noise of 2,000 sets."""
    rng, members = np.random.default_rng(8), np.repeat(np.eye(8), [1, 1, 2, 3, 5, 7, 9, 12], axis=1)
    d = np.sqrt(0.3) * rng.normal(size=(2000, 8)) @ members + np.sqrt(0.7) * rng.normal(size=(2000, 40))
    low, high = cluster_interval(d, members).T
    assert ((low <= 0) & (high >= 0)).mean() == pytest.approx(0.95, abs=0.02)


def test_level_with_correlated_tasks_is_kept_by_clusters_alone():
    """10 clusters of 4 tasks that share most of their difference: tasks as units reject far too often."""
    rng = np.random.default_rng(5)
    d = np.repeat(rng.normal(size=(600, 10)), 4, axis=1) + 0.3 * rng.normal(size=(600, 40))
    found = cluster_pairs(d, np.repeat(np.eye(10), 4, axis=1))
    noise = 4 * np.sqrt(0.05 * 0.95 / 600)
    assert (found.ranks.p <= 0.05).mean() < 0.05 + noise
    assert abs((found.flips.p <= 0.05).mean() - 0.05) < noise
    assert (flip_means(d).p <= 0.05).mean() > 0.25


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


def test_without_the_key_one_note_says_what_is_shared(study, analyse_words):
    docs(study)
    section = clusters(analyse_words(f"scores={study.root}"))
    assert (section.grids, section.frames) == ([], {})
    (note,) = section.notes
    assert "The 8 tasks come from 4 sources (such as DocsNumpyReranking and DocsNumpyRetrieval)" in note
    assert "cluster=source" in note


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_verdict_says_what_the_sources_as_units_say_without_being_asked(study, analyse_words, seeds):
    docs(study, seeds)
    result = analyse_words(f"scores={study.root}")
    said = {
        1: "The difference between these runs: p = .00781 after Holm over 1 pair (before it p = .00781)",
        3: "The difference is told of the designs: over tasks p = .00781 after Holm over 1 pair",
    }
    assert said[seeds] in result.verdict
    once = "No claim about designs: that takes 3 seeds or more of each, since runs of one design differ too"
    assert (once in result.verdict) == (seeds == 1)
    assert ("over tasks and the 3 seeds p " in result.verdict) == (seeds == 3)
    assert "signific" not in result.verdict
    shown = "as units: no difference can be shown; the smallest p possible after Holm is .125."
    assert f"With the 4 sources of the tasks {shown}" in result.verdict
    asked = analyse_words(f"scores={study.root}", "cluster=source").verdict
    assert f"With the 4 clusters {shown}" in asked
    assert said[seeds] in asked


@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_a_star_beside_clusters_takes_three_seeds_too(study, analyse_words, seeds):
    """Both units, eight tasks and seven clusters, pass in these runs."""
    tasks, path = docs(study, seeds), study.root / "mine.json"
    path.write_text(json.dumps(dict.fromkeys(tasks[:2], "one")))
    section = clusters(analyse_words(f"scores={study.root}", f"cluster={path}", "types=[Reranking,Retrieval]"))
    rows = section.frames["clusters"]
    row = rows[rows["type"] == "All"].iloc[0]
    assert (row["n_clusters"], row["n_seeds"], row["significant"]) == (7, seeds, True)
    (grid,) = section.grids
    starred = [k for k, cell in enumerate(grid.rows[0]) if cell.mark]
    assert starred == ([2, 4, 6] if seeds == 3 else [])
    assert ("* = at most .05 after the correction, here and over tasks and seeds" in grid.caption) == (seeds == 3)
    assert ("No star: it would be a claim about designs" in grid.caption) == (seeds < 3)


def test_with_the_key_both_ways_are_shown(study, analyse_words):
    docs(study)
    section = clusters(analyse_words(f"scores={study.root}", "cluster=source"))
    rows = section.frames["clusters"]
    assert list(rows["type"]) == ["All"]  # within a type every package has one task
    row = rows.iloc[0]
    assert (row["n_tasks"], row["n_clusters"]) == (8, 4)
    assert (row["p_tasks"], row["p"], row["p_flip"]) == (2 / 2**8, 2 / 2**4, 2 / 2**4)
    assert row["reachable"] == "no"
    assert row["difference_tasks"] == pytest.approx(0.02 + 0.001 * 3.5)
    text = [cell.text for cell in section.grids[0].rows[0]]
    assert text[:2] == ["lastlayer-bi - eos-causal", "+.0235"]


def test_clusters_from_a_file(study, analyse_words, tmp_path):
    tasks = docs(study)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(dict.fromkeys(tasks[:3], "one")))
    section = clusters(analyse_words(f"scores={study.root}", f"cluster={path}"))
    assert set(section.frames["clusters"]["n_clusters"]) == {6, 3}  # All: 8 - 2; Retrieval: 4 - 1
    assert any("5 tasks that" in note and "clusters of their own" in note for note in section.notes)
    path.write_text(json.dumps({"Elsewhere": "one"}))
    with pytest.raises(UserError, match="names none of the 8 tasks compared"):
        analyse_words(f"scores={study.root}", f"cluster={path}")
    with pytest.raises(UserError, match="cluster=sorce: there is no such file"):
        analyse_words(f"scores={study.root}", "cluster=sorce")


@pytest.mark.parametrize("seeds", [1, 3])
def test_clusters_that_point_the_other_way_than_tasks_are_said_to(study, analyse_words, tmp_path, seeds):
    """Fourteen tasks of one source favour one design, nine of their own the other; each p has its own difference."""
    tasks = [f"STS{k}" for k in range(23)]
    (study.root / "tasks.json").write_text(json.dumps(dict.fromkeys(tasks, "STS")))
    gains = [0.02 + 0.001 * k if k < 14 else -0.01 - 0.0001 * k for k in range(23)]
    run_seeds(study, "eos-causal", dict.fromkeys(tasks, 0.4), seeds)
    run_seeds(study, "mean-bi", {task: round(0.4 + gain, 6) for task, gain in zip(tasks, gains, strict=True)}, seeds)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(dict.fromkeys(tasks[:14], "one")))
    result = analyse_words(f"scores={study.root}", f"cluster={path}")
    (row,) = clusters(result).frames["clusters"].to_dict("records")
    assert row["hodges_lehmann_tasks"] > 0 > row["hodges_lehmann_clusters"]
    assert row["hodges_lehmann_tasks"] == result.material.pairs.iloc[-1]["hodges_lehmann"]
    assert (row["hl_high_clusters"] < 0) == (row["p"] <= 0.05)
    assert "With the 10 clusters as units: eos-causal is ahead (Hodges-Lehmann ." in result.verdict
    (grid,) = clusters(result).grids
    shown = [cell.text for cell in grid.rows[0]]
    assert [shown[k][0] for k in (1, 3, 5)] == ["+", "-", "+"]
    assert [grid.header[k] for k in (1, 3, 5)] == ["HL", "HL", "Mean"]


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_no_star_stands_where_clusters_and_seeds_point_opposite_ways(study, analyse_words, tmp_path, alpha):
    """The data of the test before: over tasks and seeds mean-bi is ahead, and over clusters eos-causal."""
    tasks = [f"STS{k}" for k in range(23)]
    (study.root / "tasks.json").write_text(json.dumps(dict.fromkeys(tasks, "STS")))
    gains = [0.03 + 0.001 * k if k < 14 else -0.01 - 0.0001 * k for k in range(23)]
    run_seeds(study, "eos-causal", dict.fromkeys(tasks, 0.4), 3)
    run_seeds(study, "mean-bi", {task: round(0.4 + gain, 6) for task, gain in zip(tasks, gains, strict=True)}, 3)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(dict.fromkeys(tasks[:14], "one")))
    result = analyse_words(f"scores={study.root}", f"cluster={path}", f"alpha={alpha}")
    (row,) = clusters(result).frames["clusters"].to_dict("records")
    assert row["p_seeds_adjusted"] <= 0.05
    assert result.material.pairs.iloc[-1]["mean_seeds"] > 0 > row["hodges_lehmann_clusters"]
    marks = [cell.mark for cell in clusters(result).grids[0].rows[0]]
    assert row["significant"] == (alpha == 0.1)
    assert (marks[2], marks[4]) == ("*", "")
