"""Cost of each design, as the manifests of its runs say."""

import pandas as pd

from analysis.manifests.cost import COST_HEADER, cost_texts, has_costs
from analysis.render import Section
from analysis.tables.material import Material


def section(material: Material) -> Section | None:
    """Return the table of costs, None where no manifest states one; result.json has the numbers in full."""
    if not has_costs(material.designs):
        return None
    shown = material.highest(max(1, material.settings.rows_shown))[0]
    rows = [[material.design_text(label), *cost_texts(material.designs[label])] for label in shown]
    caption = "Trainable parameters, and operations, speed and peak memory of training."
    made = material.table("costs", "Costs", caption, pd.DataFrame(rows, columns=["Design", *COST_HEADER]))
    return Section("costs", "Costs", [made])
