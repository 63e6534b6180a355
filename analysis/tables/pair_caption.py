"""What a table of pairs says below itself: the test, its sidedness, the zeros, the correction and its family."""

from typing import TYPE_CHECKING

from analysis.grids.formats import fraction
from analysis.settings import Settings
from analysis.statistics.correction import correction_name
from analysis.statistics.wilcoxon import EXACT_UP_TO
from analysis.tables.notes import ZEROS

if TYPE_CHECKING:
    import pandas as pd


def signed_rank_text(pairs: "pd.DataFrame", settings: Settings) -> str:
    """Return "two-sided exact Wilcoxon signed-rank test; the pairing unit is the task, ..."."""
    large = (pairs["n_pairs"] > EXACT_UP_TO).to_numpy()
    where = f"on {', '.join(pairs.loc[large, 'type'].unique())}, " if not large.all() else ""
    how = f" ({where}more than {EXACT_UP_TO:,} tasks: by the normal curve)" if large.any() else ""
    exact = "" if large.all() else "exact "
    return f"two-sided {exact}Wilcoxon signed-rank test{how}; the pairing unit is the task, {ZEROS[settings.zeros]}"


def typical_text(pairs: "pd.DataFrame", settings: Settings) -> str:
    """Return what stands under a star: "Hodges-Lehmann difference in score (...), second minus first"."""
    left_out = ", those of zero left out" if settings.zeros == "wilcox" and (pairs["n_zero"] > 0).any() else ""
    return (
        "Hodges-Lehmann difference in score (median of the averages of every two tasks' differences, which is what the"
        f" test is about{left_out}), second minus first"
    )


def mean_text(pairs: "pd.DataFrame") -> str:
    """Return what the column of means is: "Mean: mean difference over all 40 tasks, not tested."."""
    last = pairs.iloc[-1]
    what = f"all {last['n_pairs']} tasks" if last["type"] == "All" else f"the {last['n_pairs']} {last['type']} tasks"
    return f"Mean: mean difference over {what}, which this test does not test."


def correction_text(pairs: "pd.DataFrame", settings: Settings) -> str:
    """Return "Holm correction over the pairs of one task type (family of 10)", or that there is none."""
    if settings.correction == "none":
        return "no correction for many tests"
    return f"{correction_name(settings.correction)} correction over {family_text(pairs, settings)}"


def family_text(pairs: "pd.DataFrame", settings: Settings) -> str:
    """Return "the pairs of one task type (family of 10)"."""
    which = f"pairs with {settings.against}" if settings.against else "pairs"
    what = f"the {which} of one task type" if settings.family == "type" else f"all {which} and task types of the table"
    return f"{what} (family of {int(pairs['family_size'].max())})"


def unreachable_text(pairs: "pd.DataFrame", settings: Settings) -> str:
    """Return what n.a. means: "so few tasks that .05 cannot be reached after the correction, whatever the scores"."""
    after = " after the correction" if (pairs["reachable"] == "uncorrected").any() else ""
    return f"so few tasks that {fraction(settings.alpha)} cannot be reached{after}, whatever the scores"
