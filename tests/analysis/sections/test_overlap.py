"""How many texts of the tasks were trained on, as manifests say: table, notes, and what nobody counted."""

import pytest

from analysis.questions.overlap import overlap_table
from analysis.write import document
from tests.analysis.conftest import TASKS

ASKED = ("means", "overlap")
COUNTED = {task: {"texts": 200, "exact": 0} for task in TASKS}
PLANTED = COUNTED | {"STS3": {"texts": 50, "exact": 5}, "STS5": {"texts": 150, "exact": 3}}


@pytest.fixture
def analysed_with(study, spread_scores, analyse_words):
    """Return a function: overlaps of the manifests of eos-causal and mean-bi, both seeds -> result."""

    def analysed(*overlaps, **changes):
        for design, overlap in zip(("eos-causal", "mean-bi"), overlaps, strict=True):
            for seed in (0, 1):
                counts = {"_evaluation__overlap": overlap} | changes
                study.run(design, spread_scores(0.3 + 0.1 * (design == "mean-bi")), seed=seed, **counts)
        return analyse_words(f"scores={study.root}", "figures=false")

    return analysed


def test_the_table_names_tasks_with_such_texts_worst_first(analysed_with):
    result = analysed_with(COUNTED, PLANTED)
    (answer,) = [one for one in result.answers if one.name == "overlap"]
    (grid,) = answer.grids
    texts = [[cell.text for cell in row] for row in grid.rows]
    assert texts == [["STS3", "50", "5", "10.0%"], ["STS5", "150", "3", "2.0%"]]
    said = "Of 3,000 texts of 16 tasks, counted task by task, 8 stand in the training texts with the same words; "
    assert said in document(result).replace("\\", "")
    assert "STS3 10.0%, STS5 2.0%." in answer.notes[0]
    frame = answer.frames["overlap"]
    assert len(frame) == 32
    assert frame.groupby("design")["exact"].sum().to_dict() == {"eos-causal": 0, "mean-bi": 8}


def test_seeds_count_by_their_largest_share_and_one_without_counts_leaves_the_design_out(
    analysed_with, study, spread_scores
):
    study.run("eos-causal", spread_scores(0.3), seed=2, _evaluation__overlap=PLANTED)
    study.run("mean-bi", spread_scores(0.3), seed=2, _evaluation__overlap=None)
    design = analysed_with(COUNTED, COUNTED).material.designs
    table = overlap_table({label: list(one.runs) for label, one in design.items()}, ["STS3"])
    assert table.to_dict("records") == [{"design": "eos-causal", "task": "STS3", "texts": 50, "exact": 5, "share": 0.1}]
