"""The tables of an analysis, in their order. A further one is a module with `section(compared)` and a place here."""

from analysis.render import Section
from analysis.tables import (
    claims,
    costs,
    design_by_type,
    effects,
    items,
    means,
    overlap,
    pairs,
    power,
    ranks,
    seeds,
    sensitivity,
)
from analysis.tables.comparison import Comparison

SHOWN = (means, pairs, claims, seeds, effects, design_by_type, sensitivity, power, ranks, costs, overlap)


def sections(compared: Comparison) -> list[Section]:
    """Return the sections that apply, in order; `layout=wilcoxon` shows the published kind of table alone."""
    if compared.settings.layout == "wilcoxon":
        return [pairs.section(compared)]
    modules = [*SHOWN, *([items] if "items" in compared.settings.tables else [])]
    return [made for module in modules if (made := module.section(compared)) is not None]
