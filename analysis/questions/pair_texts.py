"""Sentences on a table of pairs: the test, the zeros, the correction and its family, what the tasks allow, methods."""

import math
from collections import defaultdict
from collections.abc import Iterator

import pandas as pd

from analysis.grids.formats import fraction, percent
from analysis.names import by_number, listed
from analysis.questions.compared_pairs import BETWEEN
from analysis.questions.question import Material
from analysis.questions.tables import after_correction, claims, pair_name, tasks_text
from analysis.settings import Settings
from analysis.statistics.correction import FIRST_STEP, correction_name
from analysis.statistics.seed_errors import OTHERS
from analysis.statistics.seeds import FEWEST_SEEDS
from analysis.statistics.wilcoxon import EXACT_UP_TO

ZEROS = {
    "wilcox": "differences of zero dropped before ranking",
    "pratt": "differences of zero ranked, then dropped",
    "zsplit": "differences of zero ranked, half of their ranks to either side",
}
ZEROS_DONE = {
    "wilcox": "Differences of zero were dropped before ranking",
    "pratt": "Differences of zero were ranked and then dropped [@pratt1959]",
    "zsplit": "Differences of zero were ranked, and half of their ranks given to either side",
}
CORRECTIONS_DONE = {
    "holm": "P-values were corrected by Holm's step-down procedure [@holm1979]",
    "bh": "P-values were corrected by the procedure of Benjamini and Hochberg, which bounds the rate of false"
    " discoveries [@benjamini1995]",
    "shaffer": "P-values were corrected by Shaffer's static step-down procedure, which counts how many pairs can be"
    " equal together [@shaffer1986],",
    "westfall_young": "P-values were corrected by the step-down minimum of p under flips of the signs of whole tasks"
    " in all pairs at once [@westfall1993] (p over tasks and seeds by Holm's procedure [@holm1979])",
}
CHECKS = {
    "p_permutation": "the paired permutation test of the mean [@pitman1937]",
    "p_sign": "the sign test [@dixon1946]",
    "p_t": "the paired t test",
}
OPPOSED_SHOWN = 3  # rows in which mean and test disagree that a note spells out


def signed_rank_text(pairs: pd.DataFrame, settings: Settings) -> str:
    """Return "two-sided exact Wilcoxon signed-rank test; the pairing unit is the task, ..."."""
    large = (pairs["n_pairs"] > EXACT_UP_TO).to_numpy()
    where = f"on {', '.join(pairs.loc[large, 'type'].unique())}, " if not large.all() else ""
    how = f" ({where}more than {EXACT_UP_TO:,} tasks: by the normal curve)" if large.any() else ""
    exact = "" if large.all() else "exact "
    return f"two-sided {exact}Wilcoxon signed-rank test{how}; the pairing unit is the task, {ZEROS[settings.zeros]}"


def typical_text(pairs: pd.DataFrame, settings: Settings) -> str:
    """Return what stands under a star: "Hodges-Lehmann difference in score (...), second minus first"."""
    left_out = ", those of zero left out" if settings.zeros == "wilcox" and (pairs["n_zero"] > 0).any() else ""
    return (
        "Hodges-Lehmann difference in score (median of the averages of every two tasks' differences, which is what the"
        f" test is about{left_out}), second minus first"
    )


def mean_text(pairs: pd.DataFrame) -> str:
    """Return what the column of means is: "Mean: mean difference over all 40 tasks, not tested."."""
    over = tasks_text(pairs["type"].iloc[-1], pairs["n_pairs"].iloc[-1], every="all ")
    return f"Mean: mean difference over {over}, which this test does not test."


def correction_text(tests: pd.DataFrame, settings: Settings, which: str = "") -> str:
    """Return "Holm correction over the pairs of one task type (family of 10)", or that there is none."""
    if settings.correction == "none":
        return "no correction for many tests"
    return f"{correction_name(settings.correction)} correction over {family_text(tests, settings, which)}"


def family_text(tests: pd.DataFrame, settings: Settings, which: str = "") -> str:
    """Return "the pairs of one task type (family of 10)". which: what is tested, where it is not the pairs."""
    which = which or (f"pairs with {settings.against}" if settings.against else "pairs")
    what = f"the {which} of one task type" if settings.family == "type" else f"all {which} and task types of the table"
    return f"{what} (family of {int(tests['family_size'].max())})"


def unreachable_text(pairs: pd.DataFrame, settings: Settings) -> str:
    """Return what n.a. means: "so few tasks that .05 cannot be reached after the correction, whatever the scores"."""
    after = " after the correction" if (pairs["reachable"] == "uncorrected").any() else ""
    return f"so few tasks that {fraction(settings.alpha)} cannot be reached{after}, whatever the scores"


def pair_notes(material: Material) -> list[str]:
    """Return what a reader must know beside the tables: seeds, rounding, and what the number of tasks allows."""
    pairs, settings = material.pairs, material.settings
    rounding = f"Differences were rounded to {settings.decimals} decimals before ranking, so float noise makes no rank."
    seeds = seed_notes(material.frame, list(material.designs))
    return [*seeds, *_unpaired(pairs), rounding, *attainable(pairs, settings), *opposed(pairs, settings)]


def _unpaired(pairs: pd.DataFrame) -> list[str]:
    """Name the pairs that share too few seeds to be paired by them."""
    apart = pairs[~pairs["seeds_paired"]].drop_duplicates(["first", "second"])
    names = listed(map(pair_name, apart.to_dict("records")), 4)
    note = (
        f"Fewer than {FEWEST_SEEDS} seeds are common to the two designs of {names}: over tasks and seeds all runs of"
        " the one were compared with all of the other, unpaired."
    )
    return [note] if len(apart) else []


def seed_notes(frame: pd.DataFrame, designs: list[str]) -> list[str]:
    """Say which seeds each score is a mean of; designs with other seeds are named."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for design in designs:
        seeds = set(frame.loc[frame["design"] == design, "seed"]) - {""}
        groups[tuple(by_number(seeds))].append(design)
    if set(groups) == {()}:
        return []
    if len(groups) == 1:
        shared = next(iter(groups))
        what = "one seed" if len(shared) == 1 else f"{len(shared)} seeds, of which each score is the mean"
        return [f"Every design has {what}: {', '.join(shared)}."]
    parts = [f"{listed(names, 4)}: {', '.join(seeds) or 'none known'}" for seeds, names in groups.items()]
    return [f"The designs have different seeds ({'; '.join(parts)}); each score is the mean over a design's own seeds."]


def attainable(pairs: pd.DataFrame, settings: Settings) -> list[str]:
    """Say, for each type, the smallest p that its number of tasks allows, and whether alpha can be reached."""
    notes, after = [smallest_p(pairs, settings, "two-sided p", "n_pairs")], []
    closed: dict[str, list[str]] = {}  # what is said -> the types of which it is true
    for kind, rows in pairs.groupby("type", sort=False):
        if (rows["reachable"] == "no").all():
            lowest = _lowest(rows)
            closed.setdefault(_closed(lowest, settings), []).append(f"{kind} n = {lowest['n_pairs']}")
        elif (rows["reachable"] != "yes").all():
            after.append(str(kind))
    notes += [sentence.format(types="; ".join(kinds)) for sentence, kinds in closed.items()]
    if after:
        alpha = fraction(settings.alpha)
        none = f"No difference on {', '.join(after)} can reach {alpha} after the correction, only before it."
        notes.append(f"{none} {mend(pairs, settings)}")
    return notes


def smallest_p(tests: pd.DataFrame, settings: Settings, what: str, size: str = "") -> str:
    """Return "Smallest <what> that the number of tasks allows (in brackets after Holm): STS n = 8: .0078 (.078)."

    size: the column of the number of tasks, "" to leave that out.
    """
    bracketed, parts = settings.correction != "none", []
    for kind, rows in tests.groupby("type", sort=False):
        lowest = _lowest(rows)
        head = f"{kind} n = {lowest[size]}:" if size else kind
        corrected = f" ({fraction(lowest['p_min_adjusted'])})" if bracketed else ""
        parts.append(f"{head} {fraction(lowest['p_min'])}{corrected}")
    name = f" (in brackets{after_correction(settings)})" if bracketed else ""
    return f"Smallest {what} that the number of tasks allows{name}: {'; '.join(parts)}."


def _lowest(rows: pd.DataFrame) -> pd.Series:
    return rows.iloc[int(rows["p_min_adjusted"].to_numpy().argmin())]


def opposed(pairs: pd.DataFrame, settings: Settings) -> list[str]:
    """Name the rows in which the mean has the sign against which the test speaks, those with a star first."""
    rows, signed = pairs[pairs["mean_tipped_by"] != ""], settings.numbers.signed
    if rows.empty:
        return []
    starred = int(rows["told"].sum())
    count = f"{len(rows):,} of {len(pairs):,} rows" + (f", {starred:,} of them with a star" if starred else "")
    few = rows.sort_values(["told", "p"], ascending=[False, True], kind="stable").head(OPPOSED_SHOWN)
    parts = [
        f"{row['type']}, {pair_name(row)}: mean {signed(row['difference'])}, Hodges-Lehmann"
        f" {signed(row['hodges_lehmann'])}; the mean's sign is due to {listed(row['mean_tipped_by'].split(BETWEEN), 3)}"
        for row in few.to_dict("records")
    ]
    rest = " pairs.csv names the tasks of all (mean_tipped_by)." if len(rows) > len(few) else ""
    return [
        f"The mean and the test point opposite ways in {count}; sign and interval are the test's."
        f" {'. '.join(parts)}.{rest}"
    ]


def _closed(lowest: pd.Series, settings: Settings) -> str:
    """Say that no result on {types} can reach alpha, and how many tasks could."""
    if lowest["n_zero"] == lowest["n_pairs"]:
        return "{types}: no two designs compared differ on any task, so there is nothing to test."
    differ = f", of which at most {lowest['n_pairs'] - lowest['n_zero']} differ" if lowest["n_zero"] else ""
    alpha, needed = fraction(settings.alpha), tasks_that_allow(settings.alpha)
    family = tasks_that_allow(settings.alpha, int(lowest["family_size"]))
    after = "" if settings.correction not in FIRST_STEP or family == needed else f" ({family} after the correction)"
    return (
        f"Too few tasks: {{types}}{differ}: the smallest two-sided p is"
        f" {fraction(lowest['p_min'])}, so {alpha} cannot be reached whatever the scores; at least {needed} tasks"
        f" are needed{after}."
    )


def tasks_that_allow(alpha: float, family: int = 1) -> int:
    """Return the fewest tasks at which any result can pass: Holm's first step asks for family x 2 / 2^n <= alpha."""
    return math.ceil(1 + math.log2(family / alpha) - 1e-9)


def mend(tests: pd.DataFrame, settings: Settings, effects: bool = False) -> str:
    """Say how many tasks a type the family of pairs, or of effects, would need."""
    if settings.correction not in FIRST_STEP:
        return f"More tasks a type, or {'fewer effects' if effects else 'a smaller family'}, would mend it."
    family = int(tests["family_size"].max())
    needs = f"needs {tasks_that_allow(settings.alpha, family)} tasks a type"
    if effects:
        return f"A family of {family} effects {needs} to reach {fraction(settings.alpha)}."
    return f"A family of {family} {needs}{'' if settings.against else ', or fewer pairs: against=<design>'}."


def pair_methods(material: Material) -> list[str]:
    """Return the sentences of the methods paragraph on the tests of the pairs, their correction and their sizes."""
    return [*_tests(material), _claim(material), *_sizes(material)]


def _claim(material: Material) -> str:
    """Say what a star takes beside the signed-rank test, or why there is none."""
    if not claims(material.pairs):
        return (
            f"No claim about designs is made: that takes {FEWEST_SEEDS} seeds or more of each of two, and tests"
            " over tasks alone, of single runs, also tell runs of one design apart."
        )
    paired = "paired by seed"
    if not material.pairs["seeds_paired"].all():
        paired += f" where two designs share {FEWEST_SEEDS} seeds or more, else all runs of either"
    moderated = (
        f" The same was tested with the variance of seeds moderated [@smyth2004], towards its mean over all pairs with"
        f" {OTHERS} prior degrees of freedom, and the larger p taken."
    )
    return (
        "A difference was told of the designs where, after the same correction, its mean over tasks and seeds differs"
        f" from zero too, in a model with random tasks and seeds, {paired}, with each pair's own variances and"
        " Satterthwaite's degrees of freedom [@satterthwaite1946]." + moderated * (len(material.designs) > 2)
    )


def _tests(material: Material) -> Iterator[str]:
    settings, pairs, control = material.settings, material.pairs, material.control
    which = f"Each design was compared with {control}" if control else "Every two designs were compared"
    yield (
        f"{which} by the two-sided Wilcoxon signed-rank test [@wilcoxon1945] with the task as the pairing unit; the"
        " direction of each difference was fixed beforehand. p is exact, with ties too: the distribution of the rank"
        " sum over all signs, given the ranks [@hollander1973]."
    )
    dropped, alpha = int(pairs["n_zero"].sum()), fraction(settings.alpha)
    count = f"; there were {dropped:,} such differences in {len(pairs):,} tests" if dropped else "; there were none"
    yield (
        f"{ZEROS_DONE[settings.zeros]}{count}. Differences were rounded to {settings.decimals} decimals, so that"
        " rounding makes no rank."
    )
    if settings.correction == "none":
        yield f"No correction for the {len(pairs):,} tests was made; the level of significance is {alpha}."
    else:
        what = "of one task type" if settings.family == "type" else "of all task types together"
        how = CORRECTIONS_DONE.get(settings.correction, f"P-values were corrected by {settings.correction}")
        size = int(pairs["family_size"].max())
        pairs_of = f"over the {size:,} pairs" if size > 1 else "over the single pair"
        yield f"{how} {pairs_of} {what}; the level of significance is {alpha}."
    for word, after in (("no", ""), ("uncorrected", after_correction(settings))):
        kinds = [str(k) for k, rows in pairs.groupby("type", sort=False) if (rows["reachable"] == word).all()]
        if kinds:
            yield f"The number of tasks is too small for any data to reach {alpha}{after} on {', '.join(kinds)}."


def _sizes(material: Material) -> Iterator[str]:
    """Effect sizes, and the further columns of the table of pairs that hold a number in this run."""
    pairs, level = material.pairs, percent(material.settings.alpha)
    left_out = material.settings.zeros == "wilcox" and (pairs["n_zero"] > 0).any()
    zeros = ", differences of zero left out as there" if left_out else ""
    yield (
        "The effect size is the matched-pairs rank-biserial correlation, (W+ - W-) / (W+ + W-) [@kerby2014], with"
        f" Wilson's {level} interval for three quarters of the tasks [@wilson1927]; that of the mean is d_z, with the"
        " interval of the noncentral t distribution [@cumming2001]."
    )
    yield (
        f"The size of a difference is its Hodges-Lehmann estimate with the exact {level} interval that inverts the"
        f" same test{zeros} [@hodges1963]; signs in tables and figures are theirs."
        " Mean differences stand beside them without a mark."
    )
    if pairs["mean_low"].notna().any():
        yield f"The {level} interval of a mean difference is Student's over tasks [@student1908]."
    checks = [text for column, text in CHECKS.items() if pairs[column].notna().any()]
    if checks:
        *most, last = checks
        yield f"As cross-checks the table of pairs also holds {', '.join(most)}{' and ' if most else ''}{last}."
