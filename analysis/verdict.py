"""Which design is ahead, by how much, and whether that is more than chance: in two or three sentences, and a paragraph.

Sign, size, interval and p are those of one statistic, the signed-rank test with its Hodges-Lehmann difference. The mean
only chooses the two designs that are spoken of; where it has the other sign, that is said, with the tasks that do it.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.grids.formats import equals, fraction, percent
from analysis.names import listed
from analysis.questions.compared_pairs import BETWEEN, compare_pairs, pairs_among
from analysis.questions.question import Answer, Material
from analysis.questions.tables import after_correction, opposite, tasks_text
from analysis.settings import Settings
from analysis.statistics.correction import RESAMPLED
from analysis.statistics.seeds import FEWEST_SEEDS, SAME_DESIGN

FEWEST_TASKS = 2
COPIES = "the scores of either are equal with every seed, so these are copies of one run"
TASKS_NAMED = 4  # of those that turn the mean round
DESIGNS_NAMED = 8  # of those that are told from the control
FIRST_SCREEN = ("influence",)  # the questions whose sentences on the pair belong to the first screen


def summary(material: Material, answers: Sequence[Answer] = ()) -> str:
    """Return two plain sentences: who is ahead of whom and how far; whether that is told, and by which tests, with
    `against=` beside all of its differences. Where few tasks carry the difference one says so.
    """
    settings = material.settings
    means, other, pair = _spoken_of(material.matrix, material.pairs, settings, material.control)
    score = settings.numbers.score
    best, where = str(means.index[0]), tasks_text(material.last, len(material.matrix))
    ahead, behind, ends = _sides(pair, settings)
    shared = f"{best} and {means.index[1]} share" if means.iloc[0] == means.iloc[1] else f"{best} has"
    head = f"{shared} the highest mean of {len(means)} designs over {where} ({score(means.iloc[0])})"
    if other != means.index[1] and means.iloc[0] > means.iloc[1]:
        head += f", {score(means.iloc[0] - means.iloc[1])} above {means.index[1]}, with which it was not compared"
    if pair["n_zero"] == pair["n_pairs"]:
        return f"{head}. It scores as {other} does on every task, so there is nothing to test."
    size = f"{ahead} is {score(abs(pair['hodges_lehmann']))} ahead of {behind}"
    typical, of = f"neither it nor {other} is ahead" if pair["ahead"] == 0 else size, _tested_tasks(pair, settings)
    rests = [of.about.get((pair["first"], pair["second"]), "") for of in answers if of.name in FIRST_SCREEN]
    sentences = [f"{head}; on the typical task {of}{typical} ({ends}).", _told(pair, material), *rests]
    return " ".join(filter(None, sentences))


def _claim(pair: pd.Series, material: Material) -> str:
    """Say that a difference is told or not, with a control which of its differences are; the tests follow."""
    pairs, control, of = material.pairs, material.control, _of(material)
    pairs = pairs[pairs["type"] == material.last]
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


def _of(material: Material) -> str:
    """Return of what a difference is told: nothing is said of designs where no manifest shows what they differ in."""
    return "of the designs" if material.proved else "of these models"


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
    differ = settings.correction == RESAMPLED
    over_tasks, after = (after, after_correction(settings, seeds=True)) if differ else ("", after)
    runs = "" if pair["seeds_paired"] else " or more of each, unpaired"
    over_seeds = f"p {equals(pair['p_seeds_adjusted'])} over tasks and {seeds} seeds{runs}{after}"
    tests = f"p {raw} over tasks{over_tasks} and {over_seeds}"
    return f"{_claim(pair, material)} {tests}{_opposite(pair, settings)}."


def _opposite(pair: pd.Series, settings: Settings) -> str:
    """Return why a pair is not told whose tests both pass."""
    passed = bool(opposite(pair.to_frame().T, settings)[0])
    return ", which see it on opposite sides: the ranks of tasks, and the mean over common seeds" if passed else ""


def verdict(material: Material, answers: Sequence[Answer] = ()) -> str:
    """Return the paragraph; where single scores are far off, once more without their tasks.

    What the answers have to say about the pair that it speaks of follows its own sentences.
    """
    settings, control, odd = material.settings, material.control, material.odd
    sentence = "Verdict: " + paragraph(material.matrix, material.pairs, settings, control, answers, of=_of(material))
    tasks = [] if odd is None else list(dict.fromkeys(odd["task"]))
    if not tasks:
        return sentence
    which = "1 task that holds a score far off" if len(tasks) == 1 else f"{len(tasks)} tasks that hold scores far off"
    rest = material.matrix.drop(index=tasks)
    if len(rest) < FEWEST_TASKS:
        return f"{sentence} Without the {which} {len(rest)} would be left, too few for a verdict."
    blocks = {kind: [task for task in block if task in rest.index] for kind, block in material.blocks.items()}
    kept = {kind: block for kind, block in blocks.items() if block}
    pairs = compare_pairs(rest, kept, settings, control, material.frame)
    return f"{sentence} Without the {which}: {paragraph(rest, pairs, settings, control, of=_of(material))}"


def paragraph(
    matrix: pd.DataFrame,
    pairs: pd.DataFrame,
    settings: Settings,
    control: str = "",
    answers: Sequence[Answer] = (),
    *,
    of: str = "of the designs",
) -> str:
    """Return the sentences. matrix: tasks x designs; pairs: the pairs table, whose last type is all tasks together;
    of: what a difference is told of.

    The design of the highest mean is tested against the next; with a `control`, against that, since no other pair was
    compared.
    """
    means, other, pair = _spoken_of(matrix, pairs, settings, control)
    score = settings.numbers.score
    best, second = (str(name) for name in means.index[:2])
    where, lead = tasks_text(pair["type"], len(matrix)), means.iloc[0] - means.iloc[1]
    if lead == 0:
        head = f"{best} and {second} share the highest mean over {where} ({score(means.iloc[0])})"
    else:
        head = f"{best} has the highest mean over {where} ({score(means.iloc[0])}), {score(lead)} above {second}"
    what = "The difference"
    if other != second:
        what = f"The difference from {other}"
        head += f" and {score(means[best] - means[other])} above {other}"
    if pair["n_zero"] == pair["n_pairs"]:
        return f"{head}. Their scores are equal on every task, so there is nothing to test."
    more = [answer.about.get((pair["first"], pair["second"]), "") for answer in answers]
    sentences = [f"{head}.", _typical(pair, settings), _mean_against(pair, matrix, settings)]
    return " ".join(filter(None, [*sentences, _significance(pair, settings, what, of), *more]))


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
    uncorrected = ", uncorrected" if settings.correction != "none" else ""
    low, high = (-pair["hl_high"], -pair["hl_low"]) if turned else (pair["hl_low"], pair["hl_high"])
    known, text = np.isfinite([low, high]).all(), settings.numbers.interval(low, high)
    ends = f"{level} interval {text}" if known else f"no {level} interval"
    ahead, behind = (pair["first"], pair["second"]) if turned else (pair["second"], pair["first"])
    return ahead, behind, f"{ends}{uncorrected}"


def _typical(pair: pd.Series, settings: Settings) -> str:
    """Say who is ahead by the test and how far, with the interval that leaves out 0 where the test passes."""
    (ahead, behind, ends), size = _sides(pair, settings), pair["hodges_lehmann"]
    measure, of = f"(Hodges-Lehmann, {ends})", _tested_tasks(pair, settings)
    if pair["ahead"] == 0:
        return f"On the typical task {of}neither {pair['first']} nor {pair['second']} is ahead {measure}."
    if size == 0:
        return f"The typical difference is 0 {measure}; where they differ, {ahead} is ahead of {behind} by the test."
    return f"On the typical task {of}{ahead} is {settings.numbers.score(abs(size))} ahead of {behind} {measure}."


def _tested_tasks(pair: pd.Series, settings: Settings) -> str:
    """Return of which tasks the estimate speaks where the test drops those without a difference; "" for all."""
    if not pair["n_zero"] or settings.zeros != "wilcox":
        return ""
    return f"of the {pair['n_pairs'] - pair['n_zero']} on which they differ "


def _mean_against(pair: pd.Series, matrix: pd.DataFrame, settings: Settings) -> str:
    """Say that the mean has the other sign, and which tasks cause it; "" where it has not."""
    if not pair["mean_tipped_by"]:
        return ""
    tasks = pair["mean_tipped_by"].split(BETWEEN)
    ahead, behind = (pair["first"], pair["second"]) if pair["ahead"] < 0 else (pair["second"], pair["first"])
    lead = matrix.loc[tasks, ahead] - matrix.loc[tasks, behind]
    by = [f"{task} ({settings.numbers.signed(size)})" for task, size in lead.items()]
    many = "one task" if len(tasks) == 1 else f"{len(tasks)} tasks"
    return (
        f"The means say the opposite because of {many} ({ahead} minus {behind}): {listed(by, TASKS_NAMED)}; on the"
        f" others {ahead} has the higher mean."
    )


def _significance(pair: pd.Series, settings: Settings, what: str, of: str) -> str:
    size, raw, floor = int(pair["family_size"]), "", fraction(pair["p_min"])
    after, seeds_after = after_correction(settings), after_correction(settings, seeds=True)
    if after:
        over = f" over {size:,} {'pairs' if size > 1 else 'pair'}"
        after, seeds_after = after + over, seeds_after + over
        floor += f", corrected {fraction(pair['p_min_adjusted'])}"
        raw = f" (before it p {equals(pair['p'])})"
    if pair["reachable"] != "yes":
        differ = f" ({pair['n_pairs'] - pair['n_zero']} on which they differ)" if pair["n_zero"] else ""
        return (
            f"{what} cannot be shown to be more than chance with so few tasks{differ}{after}:"
            f" the smallest p they allow is {floor}; p {equals(pair['p'])} before any correction."
        )
    over_tasks = f"p {equals(pair['p_adjusted'])}{after}{raw}"
    least, seeds = f"the smallest p that so many tasks allow is {floor}", int(pair["n_seeds"])
    if pair["copies"]:
        return f"{what} between these encoders: {over_tasks}; {least}. No claim about designs: {COPIES}."
    if seeds < FEWEST_SEEDS:
        apart, pairs = SAME_DESIGN
        return (
            f"{what} between these runs: {over_tasks}; {least}. No claim about designs: that takes {FEWEST_SEEDS}"
            f" seeds or more of each, since runs of one design differ too (in this program's own study, ten seeds of"
            f" seven designs, p at most .05 over 56 tasks in {apart} of {pairs} pairs)."
        )
    word = "is" if pair["told"] else "is not"
    runs = f"the {seeds} seeds" if pair["seeds_paired"] else f"all runs, unpaired, {seeds} or more of each,"
    return (
        f"{what} {word} told {of}: over tasks {over_tasks}; over tasks and {runs}"
        f" p {equals(pair['p_seeds_adjusted'])}{seeds_after}{_opposite(pair, settings)}; {least}."
    )
