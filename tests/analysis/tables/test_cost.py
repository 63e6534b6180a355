"""What a design cost, as the manifests of its runs say."""

from pathlib import Path

import pytest

from analysis.formats import operations
from analysis.reading.rows import Design, Run
from analysis.tables.cost import training_flops


def design(*manifests):
    runs = tuple(Run(str(k), Path("run"), {"status": "finished", **own}) for k, own in enumerate(manifests))
    return Design("study/mean-bi", runs=runs)


def test_stages_count_with_the_run():
    stages = [{"flops": 30}, {"flops": 5}]
    assert training_flops(design({"flops": 100, "lineage": stages}, {"flops": 300, "lineage": stages})) == 235
    assert training_flops(design({"flops": 100})) == 100


@pytest.mark.parametrize("manifest", [{}, {"flops": 100, "lineage": [{"objective": "mntp"}]}])
def test_what_is_not_stated_is_unknown_and_not_zero(manifest):
    assert training_flops(design({"flops": 100}, manifest)) is None


def test_printed_with_a_letter_for_the_size():
    assert [operations(x) for x in (None, 12.0, 6.21e12, 1.5e15, 2e18)] == ["-", "12", "6.21 T", "1.5 P", "2 E"]
