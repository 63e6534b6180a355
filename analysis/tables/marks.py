"""The marks of significance, decided and drawn here alone: * over tasks and seeds, a dagger over tasks only."""

from typing import Any

import pandas as pd

from analysis.drawings.style import BLACK, BLUE, VERMILLION
from analysis.formats import count_of
from analysis.statistics.seeds import FEWEST_SEEDS, FEWEST_TASKS
from analysis.tables.compared_pairs import BOTH, NO, TASKS_ONLY

STAR, DAGGER = "*", "†"
MARKS = {BOTH: STAR, TASKS_ONLY: DAGGER, NO: ""}
# how a figure draws each: shape and filling differ as well as colour
LOOKS: dict[str, dict[str, Any]] = {
    BOTH: {"marker": "o", "color": BLUE, "markerfacecolor": BLUE},
    TASKS_ONLY: {"marker": "D", "color": VERMILLION, "markerfacecolor": "white"},
    NO: {"marker": "s", "color": BLACK, "markerfacecolor": "white"},
}
LEGEND = {
    BOTH: "significant over tasks and seeds (Holm)",
    TASKS_ONLY: "Wilcoxon over tasks only (Holm): these checkpoints",
    NO: "no significant difference",
}


def marked(text: str, significant: str) -> str:
    """Return a difference with its mark. significant: the value of the column of that name."""
    return text + MARKS[significant]


def marks_text(tests: pd.DataFrame, dagger: str = "Wilcoxon") -> str:
    """Return what the marks mean; of tests none of which is over seeds what such a test takes."""
    text = f"{DAGGER}: {dagger} over tasks only (these checkpoints)"
    if tests["p"].notna().any():
        return f"{STAR}: significant over tasks and seeds, {text}"
    return f"{text}; a test over seeds takes {FEWEST_SEEDS} of each design and {FEWEST_TASKS} tasks"


def family_text(tests: pd.DataFrame, what: str = "pair") -> str:
    """Return "Holm over one family of 6 pairs"."""
    return f"Holm over one family of {count_of(int(tests['family_size'].max()), what)}"


def seeds_text(tests: pd.DataFrame) -> str:
    """Return "3 seeds", or "3 to 10 seeds" of the pairs."""
    low, high = int(tests["n_seeds"].min()), int(tests["n_seeds"].max())
    return count_of(high, "seed") if low == high else f"{low} to {high} seeds"
