"""The published scores of 269 models: real gaps, real ties, real names."""

import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.cli import read_arguments
from analysis.result import analyse
from analysis.wilcoxon import signed_rank
from records.errors import UserError

PUBLISHED = Path(__file__).resolve().parents[3] / "shared/data/mteb_results/mteb_eng_v2_wide.csv.gz"
pytestmark = pytest.mark.skipif(not PUBLISHED.is_file(), reason="../shared/data/mteb_results is not there")
MODELS = "models=[BAAI__bge-small-en-v1.5,BAAI__bge-base-en-v1.5,BAAI__bge-large-en-v1.5]"


def test_named_models_agree_with_scipy_and_with_the_published_means():
    result = analyse(read_arguments([f"scores={PUBLISHED}", MODELS]))
    assert result.matrix.shape == (41, 3)
    for row in result.pairs.itertuples():
        tasks = result.types.get(row.type, list(result.matrix.index))
        d = np.round((result.matrix.loc[tasks, row.second] - result.matrix.loc[tasks, row.first]).to_numpy(), 12)
        if len(set(np.abs(d))) == len(d) and d.all():
            assert row.p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, abs=1e-12)
    line = _published_line("BAAI__bge-large-en-v1.5")
    assert result.means.loc["BAAI__bge-large-en-v1.5", "STS"] == pytest.approx(float(line["mean_STS"]) / 100, abs=1e-4)
    assert result.means.loc["BAAI__bge-large-en-v1.5"].iloc[-2] == pytest.approx(
        float(line["mean_all"]) / 100, abs=1e-4
    )


def _published_line(model):
    import pandas as pd

    return pd.read_csv(PUBLISHED).set_index("model").loc[model]


def test_gaps_are_refused_with_the_mend():
    with pytest.raises(UserError, match=r"task sets differ: .* and 10 more; .*missing=intersection"):
        analyse(read_arguments([f"scores={PUBLISHED}"]))
    with pytest.raises(UserError, match="The 269 designs share 0 of 41 tasks"):
        analyse(read_arguments([f"scores={PUBLISHED}", "missing=intersection"]))


def test_all_pairs_of_269_models_are_quick():
    values = np.round(np.random.default_rng(0).normal(0.6, 0.1, size=(269, 41)), 4)
    first, second = np.triu_indices(269, k=1)
    start = time.process_time()
    test = signed_rank(values[second] - values[first])
    assert time.process_time() - start < 10
    assert len(test.p) == 36046
    assert 0.03 < (test.p <= 0.05).mean() < 0.08  # pairs share models, so the share strays from .05
