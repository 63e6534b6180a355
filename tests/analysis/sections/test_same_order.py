"""The same designs on two bases: which pairs are told alike, which opposite, and whether designs x base is told."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from analysis.questions import same_order
from analysis.statistics.correction import holm
from analysis.write import write_files
from tests.analysis.three_seeds import run_seeds

ASKED = ("same_order",)
SHIFTS = {"tiny": (0.0, 0.05, 0.2), "big": (0.05, 0.0, 0.2)}
DESIGNS = ("eos-causal", "mean-causal", "mean-bi")
ALL, BY_PATH = "factors=[pooler,attn,model]", "factors=[pooler,attn,model.path]"


@pytest.fixture
def two_bases(new_study, spread_scores):
    """Write three designs on each base, under one study's name in two folders; return their words and scores."""

    def write(seeds=3, shifts=SHIFTS):
        rng, roots, scores = np.random.default_rng(0), [], {}
        for name, shift in shifts.items():
            study = new_study()
            roots.append(study.root)
            for design, by in zip(DESIGNS, shift, strict=True):
                own = {task: score + rng.normal(0, 0.01) for task, score in spread_scores(0.3 + by).items()}
                scores[name, design] = np.array(list(own.values()))
                run_seeds(study, design, own, seeds, model__name=name, _base_weights_sha256=name.ljust(64, "0"))
        return f"scores=[{','.join(map(str, roots))}]", scores

    return write


def of(result):
    return next(answer for answer in result.answers if answer.name == "same_order")


@pytest.mark.parametrize("words", [(), ("against=eos-causal model=tiny",)])
def test_pairs_are_told_alike_and_opposite(two_bases, analyse_words, words, tmp_path):
    place, scores = two_bases()
    result = analyse_words(place, ALL, *words)
    assert len(result.material.designs) == 6
    pairs = of(result).frames["same_order"]
    assert pairs.groupby("pair")["outcome"].first().to_dict() == {
        "mean-causal - eos-causal": "told opposite",
        "mean-bi - eos-causal": "told alike",
        "mean-bi - mean-causal": "told alike",
    }
    p = []
    for row in pairs.to_dict("records"):
        one, two = (scores[row["level"], name] for name in reversed(row["pair"].split(" - ")))
        assert row["difference"] == pytest.approx((two - one).mean())
        p.append(wilcoxon(two - one, method="exact").pvalue)
    np.testing.assert_allclose(pairs["p_adjusted"], holm(np.array(p)))
    sentence = "Differences between designs are told to depend on model (tiny, big; p"
    assert sentence in result.verdict.replace("(big, tiny;", "(tiny, big;")
    assert "told opposite mean-causal - eos-causal; not told on all 0 of 3 pairs." in result.verdict
    (grid,) = of(result).grids
    assert [len(row) for row in grid.rows] == [4] * 3
    assert "same_order.csv" in {path.name for path in write_files(result, tmp_path / "out")}
    assert result.material.settings.factors == ("pooler", "attn", "model")


def test_the_same_order_with_noise_is_not_told_to_differ(two_bases, analyse_words):
    place, _ = two_bases(shifts={"tiny": (0.0, 0.0, 0.2), "big": (0.1, 0.1, 0.3)})
    result = analyse_words(place, ALL)
    assert "are not told to depend on model" in of(result).about["eos-causal model=big", "eos-causal model=tiny"]
    assert "told opposite none; not told on all 1 of 3 pairs." in result.verdict


def test_one_seed_makes_no_claim(two_bases, analyse_words):
    result = analyse_words(two_bases(seeds=1)[0], ALL)
    assert set(of(result).frames["same_order"]["outcome"]) == {"not told on all"}
    assert "Design x model: p < .0001 over tasks; no claim about designs." in result.verdict


def test_bases_of_other_seeds_are_told_pair_by_pair_alone(new_study, spread_scores, analyse_words):
    """Control wants the same seeds; where that is allowed, design x base has no test over seeds, and it is said."""
    study, rng = new_study(), np.random.default_rng(0)
    for base, first in (("tiny", 0), ("big", 3)):
        for k, design in enumerate(DESIGNS[:2]):
            for seed in range(first, first + 3):
                own = {task: score + rng.normal(0, 0.002) for task, score in spread_scores(0.3 + 0.1 * k).items()}
                changes = {"model__name": base, "_base_weights_sha256": base.ljust(64, "0")}
                study.run(design, own, seed=seed, study=base, **changes)
    result = analyse_words(f"scores={study.root}", ALL, "allow=[seed]")
    assert "are not told to depend on model (" in result.verdict
    assert "too few common seeds). Their order: told alike mean - eos; told opposite none" in result.verdict


def test_a_design_that_one_base_lacks_is_left_out_and_one_base_has_no_table(study, spread_scores, analyse_words):
    for base, designs in (("tiny", DESIGNS), ("big", DESIGNS[:2])):
        for k, design in enumerate(designs):
            changes = {"model__path": base, "_base_weights_sha256": base.ljust(64, "0")}
            study.run(design, spread_scores(0.3 + 0.1 * k), study=base, **changes)
    crossing = same_order.crossing_of(analyse_words(f"scores={study.root}", BY_PATH).material)
    assert crossing.levels["design"] == ["eos-causal", "mean-causal"]
    assert len(crossing.designs) == 4
    result = analyse_words(f"scores={study.root}", BY_PATH, "models=[tiny__*]")
    assert "same_order" not in {answer.name for answer in result.answers}
