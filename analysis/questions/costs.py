"""Cost of each design, as the manifests of its runs say."""

from analysis.grids.grid import Cell, Grid
from analysis.manifests.cost import COST_HEADER, cost_texts, has_costs
from analysis.questions.question import Answer, Material
from analysis.questions.tables import rest_text

PLACE = 150


def answer(material: Material) -> Answer | None:
    """Return the table of costs, None where no manifest states one; by_type.csv has the numbers in full."""
    if not has_costs(material.designs):
        return None
    shown = material.highest(material.settings.rows_shown)[0]
    rows = [[*map(Cell, [label, *cost_texts(material.designs[label])])] for label in shown]
    rest = rest_text(len(shown), len(material.designs), "designs, those of the highest means; by_type.csv has all.")
    caption = "Trainable parameters, and operations, speed and peak memory of training."
    grid = Grid("costs", caption, ["Design", *COST_HEADER], rows, rest=rest, title="Costs")
    return Answer("costs", grids=[grid], of_scores=False)
