"""How many texts of the tasks were trained on, as manifests say: table, notes, and what nobody counted."""

import numpy as np
import pytest

from analysis.tables.overlap import overlap_table
from tests.analysis.conftest import TASKS
from tests.analysis.three_seeds import write_long

ASKED = ("means", "overlap")
COUNTED = {task: {"texts": 200, "exact": 0} for task in TASKS}
PLANTED = COUNTED | {"STS3": {"texts": 50, "exact": 5}, "STS5": {"texts": 150, "exact": 3}}


@pytest.fixture
def analysed_with(study, spread_scores, analyse_words):
    """Return a function: overlaps of the manifests of eos-causal and mean-bi, both seeds -> result."""

    def analysed(*overlaps, tables="null", **changes):
        for design, overlap in zip(("eos-causal", "mean-bi"), overlaps, strict=True):
            for seed in (0, 1):
                counts = {"_evaluation__overlap": overlap} | changes
                study.run(design, spread_scores(0.3 + 0.1 * (design == "mean-bi")), seed=seed, **counts)
        return analyse_words(f"scores={study.root}", "figures=false", f"tables={tables}")

    return analysed


def test_the_table_names_tasks_with_such_texts_worst_first(analysed_with):
    (plain,) = [one for one in analysed_with(COUNTED, PLANTED).sections if one.name == "overlap"]
    assert plain.tables == []
    assert "STS3 10.0%, STS5 2.0%" in plain.notes[0]
    (section,) = [one for one in analysed_with(COUNTED, PLANTED, tables="[overlap]").sections if one.name == "overlap"]
    shown = section.tables[0].frame.head(2)
    assert shown.to_numpy().tolist() == [["STS3", 50, 5, 0.1], ["STS5", 150, 3, 0.02]]
    frame = section.frames["overlap"]
    assert len(frame) == 32
    assert frame.groupby("design")["exact"].sum().to_dict() == {"eos-causal": 0, "mean-bi": 8}


def test_without_manifests_the_table_asked_for_is_said_to_be_unknown(tmp_path, analyse_words):
    scores, types = np.random.default_rng(0).uniform(size=(2, 9)), dict.fromkeys(list(TASKS)[:9], "STS")
    path = write_long(tmp_path / "s.csv", scores, "ab", types, 1)
    assert not [one for one in analyse_words(f"scores={path}").sections if one.name == "overlap"]
    (section,) = [one for one in analyse_words(f"scores={path}", "tables=[overlap]").sections if one.name == "overlap"]
    assert "No manifest" in section.notes[0]


def test_seeds_count_by_their_largest_share_and_one_without_counts_leaves_the_design_out(
    analysed_with, study, spread_scores
):
    study.run("eos-causal", spread_scores(0.3), seed=2, _evaluation__overlap=PLANTED)
    study.run("mean-bi", spread_scores(0.3), seed=2, _evaluation__overlap=None)
    design = analysed_with(COUNTED, COUNTED).compared.designs
    table = overlap_table({label: list(one.runs) for label, one in design.items()}, ["STS3"])
    assert table.to_dict("records") == [{"design": "eos-causal", "task": "STS3", "texts": 50, "exact": 5, "share": 0.1}]
