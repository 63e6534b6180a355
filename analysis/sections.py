"""The questions that every analysis asks, in the order in which they are printed. A new one is a line here."""

from collections.abc import Callable

from analysis.power_section import power_section
from analysis.section import Material, Section
from analysis.validity_section import validity_section

# Each returns None where it has nothing to say, such as a question about seeds where there is one.
QUESTIONS: tuple[Callable[[Material], Section | None], ...] = (power_section, validity_section)


def answer(material: Material) -> list[Section]:
    """Return the sections that have something to say."""
    return [section for ask in QUESTIONS if (section := ask(material)) is not None]
