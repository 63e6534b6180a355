"""The questions that every analysis asks, in the order in which they are printed. A new one is a line here."""

from collections.abc import Callable

from analysis.sections.borda import borda_section
from analysis.sections.clusters import clusters_section
from analysis.sections.equivalence import equivalence_section
from analysis.sections.items import items_section
from analysis.sections.odd_cells import odd_section
from analysis.sections.pair_details import pair_details
from analysis.sections.power import power_section
from analysis.sections.ranks import rank_section
from analysis.sections.section import Material, Section
from analysis.sections.seeds import seeds_section
from analysis.sections.validity import validity_section
from analysis.sections.variance import variance_section

# Each returns None where it has nothing to say, such as a question about seeds where there is one.
QUESTIONS: tuple[Callable[[Material], Section | None], ...] = (
    pair_details,
    power_section,
    rank_section,
    borda_section,
    equivalence_section,
    variance_section,
    seeds_section,
    clusters_section,
    items_section,
    validity_section,
    odd_section,
)


def answer(material: Material) -> list[Section]:
    """Return the sections that have something to say."""
    return [section for ask in QUESTIONS if (section := ask(material)) is not None]
