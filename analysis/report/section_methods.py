"""What the methods paragraph says of each section that has a table, by the section's name. A new one is a line here."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.result import Result

RANKS = (
    "All designs together were compared by Friedman's test on the ranks within tasks [@friedman1937] with the F of Iman"
    " and Davenport [@iman1980]; average ranks that differ by less than Nemenyi's critical difference [@nemenyi1963;"
    " @demsar2006] are not told apart."
)
BORDA = "Designs are also ranked by Borda count, with a bootstrap of the tasks for the rank's interval."
EQUIVALENCE = (
    "Two designs were called equivalent within {rope:g} where two one-sided signed-rank tests [@schuirmann1987] of"
    " their differences, shifted by that margin either way, were both significant after the same correction; pairs that"
    " were neither told apart nor equivalent are not told. The posterior of a mean difference is Student's, with the"
    " prior of Jeffreys [@box1973]."
)
POWER = (
    "The power to detect the observed difference and one of {delta:g}, and the number of tasks needed, were simulated"
    " from each pair's own differences [@efron1993]."
)
VARIANCE = "The variance of scores was split into design, task, seed and their interactions [@searle1992]."
SEEDS = (
    "Intervals over tasks and seeds come from the two-way random model with Satterthwaite's degrees of freedom"
    " [@satterthwaite1946]."
)
CLUSTERS = (
    "Tasks that share a source (cluster={cluster}) were also taken as one unit, whose differences flip their signs"
    " together [@winkler2015]; intervals over such units have the error and degrees of freedom of Bell and McCaffrey"
    " [@bell2002]."
)
ITEMS = (
    "Within single tasks designs were compared over the task's items by swapping the two designs on an item"
    " [@pitman1937]."
)
SENTENCES = {
    "items": ITEMS,
    "ranks": RANKS,
    "borda": BORDA,
    "equivalence": EQUIVALENCE,
    "power": POWER,
    "variance": VARIANCE,
    "seeds": SEEDS,
    "clusters": CLUSTERS,
}


def section_methods(result: "Result") -> Iterator[str]:
    """Yield a sentence for each section that printed a table, with the settings of this run."""
    for section in result.sections:
        if section.grids and section.name in SENTENCES:
            yield SENTENCES[section.name].format(**vars(result.settings))
