"""What a design cost, as the manifests of its runs say."""

from pathlib import Path

import pytest

from analysis.grids.formats import operations
from analysis.manifests.cost import cost_header, cost_texts, memory_kinds, memory_note, peak_memory, training_flops
from analysis.manifests.designs import Design, Run


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


HOST, GPU = ({"peak_memory_bytes": n * 2**20, "peak_memory_of": of} for n, of in ((900, "process"), (300, "gpu")))


def peaks(*designs):
    """The column of peak memory as a table of the designs prints it."""
    kinds = memory_kinds(designs)
    return [cost_header(kinds)[-1], *(cost_texts(d, kinds)[-1] for d in designs)], memory_note(kinds)


def test_peak_memory_of_one_kind_is_named_in_the_header():
    assert peaks(design(HOST), design({"peak_memory_bytes": 2**20})) == (["Peak MiB", "900", "1"], "")
    assert peaks(design(GPU, GPU), design({})) == (["Peak GPU MiB", "300", "-"], "")


def test_peak_memory_of_two_kinds_is_marked_and_said_to_be_incomparable():
    column, note = peaks(design(HOST), design(GPU), design(HOST, GPU))
    assert column == ["Peak MiB", "900", "300 (GPU)", "-"]
    assert "cannot be compared" in note
    assert peak_memory(design(HOST, GPU)) is None, "a maximum over both would be neither"
