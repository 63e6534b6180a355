"""Stored scores of three seeds: what pairs.csv says of them, anew by numpy, scipy and statsmodels."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.write import write_files
from tests.analysis.statistics.test_seeds import by_loops

STORED = Path(__file__).parents[2] / "results/ten_seeds/scores.csv.gz"


def test_the_numbers_of_each_pair_are_those_of_the_page(read_words):
    stored = pd.read_csv(STORED).query("seed < 3")
    table = {name: of.pivot(index="task", columns="seed", values="score") for name, of in stored.groupby("design")}
    compared = read_words(f"scores={STORED}", "seeds=[0,1,2]", "against=eos-causal").compared
    pairs, main = compared.pairs, compared.pairs["type"] == "All"
    assert main.sum() == len(table) - 1
    for row in pairs[pairs["n_tasks"] > 1].to_dict("records"):
        cubes = {name: rows.loc[compared.blocks[row["type"]]].to_numpy() for name, rows in table.items()}
        places = [list(cubes).index(row[name]) for name in ("first", "second")]
        mean, p, half, beyond = by_loops([of.tolist() for of in cubes.values()], *places, margin=0.01)
        found = [row[name] for name in ("mean_difference", "low", "high", "p", "p_equivalent")]
        np.testing.assert_allclose(found, [mean, mean - half, mean + half, p, beyond], rtol=1e-6)
        d = cubes[row["second"]].mean(axis=1) - cubes[row["first"]].mean(axis=1)
        if len({0, *abs(d).round(9)}) > len(d):  # scipy's exact p is of differences without ties
            assert np.isclose(row["p_wilcoxon"], stats.wilcoxon(d, method="exact").pvalue, rtol=1e-9)
    for family in (pairs[main], pairs[~main]):
        for name in ("p", "p_wilcoxon", "p_equivalent"):
            np.testing.assert_allclose(family[f"{name}_holm"], multipletests(family[name], method="holm")[1])
        assert (family["equivalent"] == (family["p_equivalent_holm"] <= 0.05)).all()
        by_wilcoxon = np.where(family["p_wilcoxon_holm"] <= 0.05, "over tasks only", "no")
        assert (family["significant"] == np.where(family["p_holm"] <= 0.05, "over tasks and seeds", by_wilcoxon)).all()


def test_the_sha256_of_each_manifest_is_carried_on(planted, read_words, tmp_path):
    study = planted(seeds=(0, 1))
    stated = {json.loads(path.read_text())["manifest_sha256"] for path in study.root.rglob("manifest.json")}
    result = read_words(f"scores={study.root}")
    write_files(result, tmp_path)
    for frame in (result.compared.frame, read_words(f"scores={tmp_path / 'scores.csv'}").compared.frame):
        assert frame.groupby(["design", "seed"])["manifest"].nunique().tolist() == [1] * 6
        assert set(frame["manifest"]) == stated
