"""Which designs differ, by how much, and whether that is more than chance, in a few sentences: the primary test's."""

from collections.abc import Sequence

import pandas as pd

from analysis.grids.formats import equals
from analysis.names import listed
from analysis.questions.compared_pairs import BOTH, TASKS_ONLY, is_significant, without_one_task
from analysis.questions.question import Answer, Material
from analysis.questions.tables import pair_name, tasks_text
from analysis.statistics.seeds import FEWEST_SEEDS, SAME_DESIGN

NAMED = 8
MOST_LEFT_OUT = 150  # tasks: with more, all pairs tested again without each would take minutes
COPIES = "the scores of either are equal with every seed, so these are copies of one run"


def verdict(material: Material, answers: Sequence[Answer] = ()) -> str:
    """Return which differences over all tasks are significant; the closest or the largest with interval and p; what it
    rests on; and what the answers say of this pair."""
    settings, pairs = material.settings, material.pairs_on(material.last)
    means = material.matrix.mean().round(settings.decimals).sort_values(ascending=False, kind="stable")
    *others, last = map(str, means.index[means == means.iloc[0]])
    shared = f"{', '.join(others)} and {last} share" if others else f"{last} has"
    where, score = tasks_text(material.last, len(material.matrix)), settings.numbers.score
    head = f"{shared} the highest mean of {len(means)} designs over {where} ({score(means.iloc[0])})."
    pair = _spoken_of(pairs)
    if pair["n_zero"] == pair["n_tasks"]:
        return (
            f"{head} {pair['first']} and {pair['second']} have equal scores on every task, so there is nothing to test."
        )
    rests = [of.about.get((pair["first"], pair["second"]), "") for of in answers]
    return " ".join(
        filter(None, [head, _found(pairs, material), _size(pair, material), _carried(pair, material), *rests])
    )


def _spoken_of(pairs: pd.DataFrame) -> pd.Series:
    """Return the pair of the smallest p, over tasks and seeds where that is known."""
    return pairs.loc[pairs["p"].fillna(1 + pairs["p_wilcoxon"]).idxmin()]


def _found(pairs: pd.DataFrame, material: Material) -> str:
    """Name the pairs that differ significantly."""
    of, family = f" from {material.control}" if material.control else "", f"(Holm, {len(pairs)} pairs)"
    found = pairs[is_significant(pairs)]
    if found.empty:
        return f"No design differs significantly{of or ' from another'} {family}."
    names = listed(map(pair_name, found.to_dict("records")), NAMED)
    return f"Significant over tasks and seeds {family}: {names}."


def _size(pair: pd.Series, material: Material) -> str:
    """Return the difference of a pair, its interval and p, and what they speak of."""
    numbers, seeds = material.settings.numbers, int(pair["n_seeds"])
    ends = f"{numbers.signed(pair['mean_difference'])} {numbers.interval(pair['low'], pair['high'])}"
    name, wilcoxon = pair_name(pair.to_dict()), f"Wilcoxon p {equals(pair['p_wilcoxon'])} over tasks"
    if seeds >= FEWEST_SEEDS:
        which = "Largest by p" if pair["significant"] == BOTH else "Closest"
        power = f"with {seeds} seeds a difference of {numbers.score(pair['detectable'])} would be found in 80 %"
        return f"{which}: {name}, {ends}, p {equals(pair['p'])}, {wilcoxon}; {power}."
    only = " is significant over tasks only" if pair["significant"] == TASKS_ONLY else ""
    if pair["copies"]:
        return f"{name}{only}, {ends}, {wilcoxon}: it speaks of these encoders alone, {COPIES}."
    apart, runs = SAME_DESIGN
    return (
        f"{name}{only}, {ends}, {wilcoxon}. This speaks of these runs alone: runs of one design differ, too (in this"
        f" program's own study p at most .05 over 56 tasks in {apart} of {runs} pairs), and a claim about designs takes"
        f" {FEWEST_SEEDS} seeds of each or more."
    )


def _carried(pair: pd.Series, material: Material) -> str:
    """Name the task without which a significant difference would not be one; "" where there is none."""
    tasks, many = material.blocks[material.last], len(material.pairs_on(material.last)) > material.settings.rows_shown
    if pair["significant"] != BOTH or many or len(tasks) > MOST_LEFT_OUT:
        return ""
    without = without_one_task(material.matrix.loc[tasks], material.frame, material.control)
    p = without[(without["first"] == pair["first"]) & (without["second"] == pair["second"])].iloc[0]
    if p["p_holm"] <= material.settings.alpha:
        return f"Without any one task it stays so (largest p {equals(p['p_holm'])}, without {p['task']})."
    return f"It rests on {p['task']}: without it p {equals(p['p_holm'])}."
