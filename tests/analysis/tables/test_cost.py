"""What a design cost, as the manifests of its runs say."""

from pathlib import Path

import pytest

from analysis.manifests.designs import Design, Run
from analysis.tables.costs import costs, training_flops


def design(*manifests):
    runs = tuple(Run(str(k), Path("run"), {"status": "finished", **own}) for k, own in enumerate(manifests))
    return Design("study/mean-bi", runs=runs)


def test_stages_count_with_the_run():
    stages = [{"flops": 30}, {"flops": 5}]
    assert training_flops(design({"flops": 100, "merged": stages}, {"flops": 300, "merged": stages})) == 235
    assert training_flops(design({"flops": 100})) == 100


@pytest.mark.parametrize("manifest", [{}, {"flops": 100, "merged": [{"objective": "mntp"}]}])
def test_what_is_not_stated_is_unknown_and_not_zero(manifest):
    assert training_flops(design({"flops": 100}, manifest)) is None


def test_speed_is_a_mean_and_memory_a_maximum_over_seeds():
    of_seeds = [{"tokens_per_second": speed, "peak_memory_bytes": peak} for speed, peak in ((9000, 500), (10000, 501))]
    assert costs(design(*of_seeds)) == (None, None, 9500, 501)
    assert costs(design({"parameters": {"adapter": 3, "head": 2, "base": 9}}))[0] == 5
