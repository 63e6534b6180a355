"""Scores as a leaderboard publishes them, made and (where they are at hand) real: gaps, ties, names."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.analyse import analyse
from analysis.cli import read_arguments
from cli.errors import UserError

MODELS = "models=[BAAI__bge-small-en-v1.5,BAAI__bge-base-en-v1.5,BAAI__bge-large-en-v1.5]"


def test_named_models_agree_with_scipy_and_with_the_published_means(published):
    result = analyse(read_arguments([f"scores={published.path}", MODELS]))
    assert result.material.matrix.shape == (41, 3)
    matrix = result.material.matrix
    for row in result.material.pairs.itertuples():
        tasks = result.material.types.get(row.type, list(result.material.matrix.index))
        d = np.round(
            (matrix.loc[tasks, row.second] - matrix.loc[tasks, row.first]).to_numpy(),
            12,
        )
        if len(set(np.abs(d))) == len(d) and d.all():
            assert row.p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, abs=1e-12)
    line = pd.read_csv(published.path).set_index("model").loc["BAAI__bge-large-en-v1.5"]
    means = result.material.means
    assert means.loc["BAAI__bge-large-en-v1.5", "STS"] == pytest.approx(float(line["mean_STS"]) / 100, abs=1e-4)
    assert means.loc["BAAI__bge-large-en-v1.5"].iloc[-2] == pytest.approx(float(line["mean_all"]) / 100, abs=1e-4)


def test_gaps_are_dropped_or_refused_with_the_mend(published, read_words):
    with pytest.raises(UserError, match=r"task sets differ: .* and \d+ more; .*missing=drop_models"):
        read_words(f"scores={published.path}", "missing=fail")
    told = f"0 of 41 tasks are shared, and {published.whole} of {published.models} designs have them all"
    with pytest.raises(UserError, match=told):
        read_words(f"scores={published.path}")
    few = "models=[BAAI__bge-small*,BAAI__bge-base*,intfloat__e5-small*]"
    whole = read_words(f"scores={published.path}", "missing=drop_models", few)
    assert len(whole.material.matrix) == 41
    assert any(note.startswith("missing=drop_models") for note in whole.notes)


def test_a_crossing_of_published_models_agrees_with_statsmodels(published):
    """Twelve models are a crossing: family (e5, bge) x size x version; F of all seven effects over 27 shared tasks."""
    from statsmodels.stats.anova import AnovaRM

    from analysis.questions.tested_effects import factorial_effects
    from analysis.settings import Settings

    pattern = {"e5": ("intfloat__e5-{}", "intfloat__e5-{}-v2"), "bge": ("BAAI__bge-{}-en", "BAAI__bge-{}-en-v1.5")}
    rows = {
        names[k].format(size): {"family": family, "size": size, "version": f"v{k + 1}"}
        for family, names in pattern.items()
        for size in ("small", "base", "large")
        for k in (0, 1)
    }
    matrix = published.frame().loc[list(rows)].dropna(axis=1).T / 100
    assert len(matrix) == 27
    (found,), _ = factorial_effects(
        matrix, pd.DataFrame.from_dict(rows, orient="index"), {"All": list(matrix.index)}, Settings(scores=())
    )
    long = matrix.rename_axis("task").reset_index().melt("task", var_name="model", value_name="score")
    long = long.join(pd.DataFrame.from_dict(rows, orient="index"), on="model")
    theirs = AnovaRM(long, "score", "task", within=["family", "size", "version"]).fit().anova_table
    ours = found.tests.set_index("effect")
    assert len(ours) == 7
    for name, row in theirs.iterrows():
        assert ours.loc[name.replace(":", " x "), "F"] == pytest.approx(row["F Value"], rel=1e-8)
    assert ours.loc["size", "p_adjusted"] < 0.001
    assert ours.loc["version", "p"] > 0.5
