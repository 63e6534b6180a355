"""Which designs differ significantly, by how much, and what could have been found: a few sentences."""

import numpy as np
import pandas as pd

from analysis.formats import count_of, p_is, p_text
from analysis.statistics.seeds import FEWEST_SEEDS, FEWEST_TASKS, SAME_DESIGN
from analysis.tables.compared_pairs import BOTH, TASKS_ONLY
from analysis.tables.comparison import Comparison
from analysis.tables.marks import seeds_text

NAMED = 4


def verdict(compared: Comparison) -> str:
    """Return which pairs differ over tasks and seeds (Holm), else the closest, and what 80 % of studies find.

    Where no pair has the seeds and tasks of that test, it is what Wilcoxon says over tasks, and what that speaks of.
    """
    pairs = compared.main_pairs
    if (pairs["n_zero"] == pairs["n_tasks"]).all():
        return "The designs have equal mean scores on every task, so there is nothing to test."
    if pairs["p"].isna().all():
        return _over_tasks(pairs, compared)
    found = pairs[pairs["significant"] == BOTH].sort_values("p")
    power = compared.unit.points(float(pairs["detectable"].median()))
    could = f"ith {seeds_text(pairs[pairs['p'].notna()])} 80 % of studies find a difference of {power} (median pair)."
    if few := int(pairs["p"].isna().sum()):
        could += f" {count_of(few, 'pair')} with fewer than {FEWEST_SEEDS} seeds: not tested over seeds."
    if found.empty:
        closest = pairs.loc[pairs["p"].idxmin()]
        head = _differ(pairs, compared, 0) + (":" if len(pairs) == 1 else ". Closest:")
        return f"{head} {_size(closest, compared, 'p')}; w{could}"
    return f"{_differ(pairs, compared, len(found))}: {_sizes(found, compared, 'p')}. W{could}"


def _differ(pairs: pd.DataFrame, compared: Comparison, count: int) -> str:
    """Return "2 of 6 designs differ significantly from eos-causal (Holm, 6 pairs)"; for 0 "No design differs ..."."""
    if len(pairs) == 1:
        return f"The two designs {'differ' if count else 'do not differ'} significantly"
    one, several = ("design", "designs") if compared.control else ("pair of designs", "pairs of designs")
    who = f"{count} of {len(pairs):,} {several} differ{'s' * (count == 1)}" if count else f"No {one} differs"
    whom = f" from {compared.control}" if compared.control else ""
    over = " over tasks and seeds" * (compared.settings.layout == "wilcoxon" and bool(pairs["p"].notna().any()))
    return f"{who} significantly{whom}{over} (Holm, {count_of(len(pairs), 'pair')})"


def _sizes(pairs: pd.DataFrame, compared: Comparison, p: str) -> str:
    """Return `_size` of the first pairs, and how many more there are."""
    sizes = "; ".join(_size(row, compared, p) for _, row in pairs.head(NAMED).iterrows())
    return sizes + (f"; and {len(pairs) - NAMED} more" if len(pairs) > NAMED else "")


def _size(pair: "pd.Series[object]", compared: Comparison, p: str) -> str:
    """Return "multilayer-bi, +0.7 points [-0.2, +1.6], p = 0.13 (Holm 0.39)"; without a control both designs."""
    unit, row = compared.unit, pair.to_dict()
    name = row["second"] if compared.control and len(compared.main_pairs) > 1 else f"{row['second']} - {row['first']}"
    difference = unit.points(row["mean_difference"], sign=True)
    ends, one, both = unit.interval(row["low"], row["high"]), p_is(row[p]), p_text(row[f"{p}_holm"])
    return f"{name}, {difference} {ends}, {one}{f' (Holm {both})' if both != p_text(row[p]) else ''}"


def _over_tasks(pairs: pd.DataFrame, compared: Comparison) -> str:
    """Return what Wilcoxon's test says of these checkpoints."""
    found = pairs[pairs["significant"] == TASKS_ONLY].sort_values("p_wilcoxon")
    shown = found if len(found) else pairs.loc[[pairs["p_wilcoxon"].idxmin()]]
    sizes = "closest " * (found.empty and len(pairs) > 1) + _sizes(shown, compared, "p_wilcoxon")
    apart, runs = SAME_DESIGN
    why = f"p <= 0.05 also for {apart} of {runs} pairs of runs of one design in this program's study"
    if shown["copies"].all():
        why = "their scores are equal with every seed, so these are copies of one run"
    few = int(np.max(pairs["n_seeds"]))
    return (
        f"{_differ(pairs, compared, len(found))} by Wilcoxon over tasks:"
        f" {sizes}. It speaks of these checkpoints only: {why}, and a statement"
        f" about designs takes {FEWEST_SEEDS} seeds of each ({few or 'none'} here) and {FEWEST_TASKS} tasks"
        f" ({pairs['n_tasks'].max()})."
    )
