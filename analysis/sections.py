"""The questions that every analysis asks, in the order in which they are printed. A new one is a line here."""

from collections.abc import Callable

from analysis.bayes_section import bayes_section
from analysis.borda_section import borda_section
from analysis.clusters_section import clusters_section
from analysis.items_section import items_section
from analysis.pair_details import pair_details
from analysis.power_section import power_section
from analysis.rank_section import rank_section
from analysis.section import Material, Section
from analysis.seeds_section import seeds_section
from analysis.validity_section import validity_section
from analysis.variance_section import variance_section

# Each returns None where it has nothing to say, such as a question about seeds where there is one.
QUESTIONS: tuple[Callable[[Material], Section | None], ...] = (
    pair_details,
    power_section,
    rank_section,
    borda_section,
    bayes_section,
    variance_section,
    seeds_section,
    clusters_section,
    items_section,
    validity_section,
)


def answer(material: Material) -> list[Section]:
    """Return the sections that have something to say."""
    return [section for ask in QUESTIONS if (section := ask(material)) is not None]
