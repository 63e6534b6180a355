"""Which design is ahead, by how much, and whether that is more than chance, in a few sentences.

Sign, size, interval and p are those of one statistic, the signed-rank test with its Hodges-Lehmann difference. The mean
only chooses the two designs that are spoken of.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.grids.formats import equals, fraction, percent
from analysis.names import listed
from analysis.questions.compared_pairs import compare_pairs, pairs_among
from analysis.questions.question import Answer, Material
from analysis.questions.tables import after_correction, opposite, tasks_text
from analysis.settings import Settings
from analysis.statistics.seeds import FEWEST_SEEDS, SAME_DESIGN

DESIGNS_NAMED, TASKS_NAMED = 8, 4
MOST_LEFT_OUT = 150  # tasks: with more, all pairs compared again without each would take minutes
COPIES = "the scores of either are equal with every seed, so these are copies of one run"


def verdict(material: Material, answers: Sequence[Answer] = ()) -> str:
    """Return who is ahead of whom and how far; whether that is told, and by which tests, with `against=` beside all of
    its differences; without which task it would not be; and what the answers say of this pair.
    """
    settings = material.settings
    means, other, pair = _spoken_of(material.matrix, material.pairs, settings, material.control)
    score = settings.numbers.score
    best, where = str(means.index[0]), tasks_text(material.last, len(material.matrix))
    *others, last = map(str, means.index[means == means.iloc[0]])
    shared = f"{', '.join(others)} and {last} share" if others else f"{best} has"
    head = f"{shared} the highest mean of {len(means)} designs over {where} ({score(means.iloc[0])})"
    if pair["n_zero"] == pair["n_pairs"]:
        return f"{head}. {best} scores as {other} does on every task, so there is nothing to test."
    ahead, behind, ends = _sides(pair, settings)
    size = f"{ahead} is {score(abs(pair['hodges_lehmann']))} ahead of {behind}"
    typical = f"neither it nor {other} is ahead" if pair["ahead"] == 0 else size
    rests = [of.about.get((pair["first"], pair["second"]), "") for of in answers]
    sentences = [f"{head}; on the typical task {typical} ({ends}).", _told(pair, material), _carried(pair, material)]
    return " ".join(filter(None, [*sentences, *rests]))


def _spoken_of(
    matrix: pd.DataFrame, pairs: pd.DataFrame, settings: Settings, control: str
) -> tuple[pd.Series, str, pd.Series]:
    """Return the means from high to low, the design that the best is tested against, and the row of their pair."""
    means = matrix.mean().round(settings.decimals).sort_values(ascending=False, kind="stable")
    best, second = (str(name) for name in means.index[:2])
    other = control if control and control not in (best, second) else second
    last = pairs[pairs["type"] == pairs["type"].iloc[-1]]
    return means, other, pairs_among(last, [best, other]).iloc[0]


def _sides(pair: pd.Series, settings: Settings) -> tuple[str, str, str]:
    """Return who is ahead by the test, who is behind, and "95 % interval [+.0010, +.0210], uncorrected"."""
    level, turned = percent(settings.alpha), pair["ahead"] < 0
    low, high = (-pair["hl_high"], -pair["hl_low"]) if turned else (pair["hl_low"], pair["hl_high"])
    known, text = np.isfinite([low, high]).all(), settings.numbers.interval(low, high)
    ends = f"{level} interval {text}" if known else f"no {level} interval"
    ahead, behind = (pair["first"], pair["second"]) if turned else (pair["second"], pair["first"])
    return ahead, behind, f"{ends}{', uncorrected' * (settings.correction != 'none')}"


def _told(pair: pd.Series, material: Material) -> str:
    """Say whether the difference is told, and by which tests."""
    settings = material.settings
    after, seeds, raw = after_correction(settings), int(pair["n_seeds"]), equals(pair["p_adjusted"])
    after += f" over {int(pair['family_size']):,} pairs" if after and pair["family_size"] > 1 else ""
    if pair["reachable"] != "yes":
        return (
            f"No result on so few tasks could show that this is more than chance: p {equals(pair['p'])}, and the"
            f" smallest possible is {fraction(pair['p_min_adjusted'])}{after}."
        )
    if pair["copies"]:
        return f"This speaks of these encoders alone (p {raw} over tasks{after}): {COPIES}."
    if seeds < FEWEST_SEEDS:
        apart, pairs = SAME_DESIGN
        return (
            f"This speaks of these runs alone (p {raw} over tasks{after}): runs of one design differ, too (in this"
            f" program's own study p at most .05 over 56 tasks in {apart} of {pairs} pairs), and a claim about designs"
            f" takes {FEWEST_SEEDS} seeds of each or more."
        )
    runs = "" if pair["seeds_paired"] else " or more of each, unpaired"
    over_seeds = f"p {equals(pair['p_seeds_adjusted'])} over tasks and {seeds} seeds{runs}{after}"
    sides = ", which see it on opposite sides" if opposite(pair.to_frame().T, settings)[0] else ""
    return f"{_claim(pair, material)} p {raw} over tasks and {over_seeds}{sides}."


def _claim(pair: pd.Series, material: Material) -> str:
    """Say that a difference is told or not, with a control which of its differences are; the tests follow.

    Nothing is said of designs where no manifest shows what they differ in.
    """
    of = "of the designs" if material.proved else "of these models"
    pairs, control = material.pairs_on(material.last), material.control
    if not control or len(pairs) < 2 or (pairs["n_seeds"] < FEWEST_SEEDS).any():
        return f"This difference is {'told' if pair['told'] else 'not told'} {of}:"
    told, side = pairs[pairs["told"]], {"ahead of it": list[str](), "behind it": list[str]()}
    if told.empty:
        return f"None of the {len(pairs)} differences from {control} is told {of}; this one has"
    for row in told.to_dict("records"):
        other = row["second"] if row["first"] == control else row["first"]
        side["ahead of it" if (row["ahead"] > 0) == (row["second"] == other) else "behind it"].append(other)
    which = "; ".join(f"{where} {listed(names, DESIGNS_NAMED)}" for where, names in side.items() if names)
    number, this = "1 is" if len(told) == 1 else f"{len(told)} are", "is told" if pair["told"] else "is not told"
    return f"Of the {len(pairs)} differences from {control} {number} told {of} ({which}); this one {this}:"


def _carried(pair: pd.Series, material: Material) -> str:
    """Name the tasks without any one of which the difference would not be told; "" where there is none.

    All pairs of the last block are compared and corrected again without each task.
    """
    tasks, many = material.blocks[material.last], len(material.pairs_on(material.last)) > material.settings.rows_shown
    if not pair["told"] or many or len(tasks) > MOST_LEFT_OUT:
        return ""
    both, carriers = [pair["first"], pair["second"]], []
    for task in tasks:
        blocks = {material.last: [other for other in tasks if other != task]}
        words = material.matrix, blocks, material.settings, material.control, material.frame
        again = pairs_among(compare_pairs(*words), both).iloc[0]
        if not again["told"] or np.sign(again["w_plus"] - again["w_minus"]) != pair["ahead"]:
            carriers.append(task)
    named = listed(carriers, TASKS_NAMED)
    return f"It rests on single tasks: without any one of {named} it is not told." if carriers else ""
