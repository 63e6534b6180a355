"""The questions that every analysis asks, in the order in which they are printed. A new one is a line here."""

from collections.abc import Callable

from analysis.questions.borda import borda_section
from analysis.questions.clusters import clusters_section
from analysis.questions.equivalence import equivalence_section
from analysis.questions.items import items_section
from analysis.questions.odd_cells import odd_section
from analysis.questions.pair_details import pair_details
from analysis.questions.power import power_section
from analysis.questions.question import Material, Section
from analysis.questions.ranks import rank_section
from analysis.questions.seeds import seeds_section
from analysis.questions.validity import validity_section
from analysis.questions.variance import variance_section

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
