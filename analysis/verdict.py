"""One line: which design is ahead, by how much, and whether that is more than chance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.formats import equals, fraction, score
from analysis.sections.section import Section
from analysis.settings import Settings
from analysis.statistics.correction import correction_name

if TYPE_CHECKING:
    import pandas as pd


def verdict(
    matrix: "pd.DataFrame",
    pairs: "pd.DataFrame",
    settings: Settings,
    control: str = "",
    sections: Sequence[Section] = (),
) -> str:
    """Return the line. matrix: tasks x designs; pairs: the pairs table, whose last type is all tasks together.

    The best design is tested against the next; with a `control`, against that, since no other pair was compared.
    What the sections have to say about that pair follows.
    """
    means = matrix.mean().round(settings.decimals).sort_values(ascending=False, kind="stable")
    best, second = (str(name) for name in means.index[:2])
    last = pairs[pairs["type"] == pairs["type"].iloc[-1]]
    lead = means.iloc[0] - means.iloc[1]
    where = (
        f"the {len(matrix)} tasks" if len(set(pairs["type"])) > 1 else f"the {len(matrix)} {last['type'].iloc[0]} tasks"
    )
    if lead == 0:
        head = f"{best} and {second} share the highest mean over {where} ({score(means.iloc[0])})"
    else:
        head = f"{best} has the highest mean over {where} ({score(means.iloc[0])}), {score(lead)} above {second}"
    if control and control not in (best, second):
        head += f" and {score(means[best] - means[control])} above {control}"
    pair = _row(last, best, second if control in ("", best, second) else control)
    what = "The difference" if control in ("", best, second) else f"The difference from {control}"
    equal = pair["n_zero"] == pair["n_pairs"]
    more = [] if equal else [section.about.get((pair["first"], pair["second"]), "") for section in sections]
    return " ".join(filter(None, [f"Verdict: {head}. {_significance(pair, settings, what)}", *more]))


def _row(rows: "pd.DataFrame", one: str, other: str) -> "pd.Series":
    both = rows["first"].isin([one, other]) & rows["second"].isin([one, other])
    return rows[both].iloc[0]


def _significance(pair: "pd.Series", settings: Settings, what: str) -> str:
    corrected = settings.correction != "none"
    size = int(pair["family_size"])
    after = (
        f" after {correction_name(settings.correction)} over {size:,} {'pairs' if size > 1 else 'pair'}"
        if corrected
        else ""
    )
    floor = f"{fraction(pair['p_min'])}, corrected {fraction(pair['p_min_adjusted'])}"
    if not corrected:
        floor = fraction(pair["p_min"])
    if pair["n_zero"] == pair["n_pairs"]:
        return "Their scores are equal on every task, so there is nothing to test."
    if pair["reachable"] != "yes":
        differ = f" ({pair['n_pairs'] - pair['n_zero']} on which they differ)" if pair["n_zero"] else ""
        return (
            f"{what} cannot be shown to be more than chance with so few tasks{differ}{after}:"
            f" the smallest p they allow is {floor}; p {equals(pair['p'])} before any correction."
        )
    word = "is" if pair["significant"] else "is not"
    raw = f" (before it p {equals(pair['p'])})" if corrected else ""
    return (
        f"{what} {word} significant at {fraction(settings.alpha)}{after}: p {equals(pair['p_adjusted'])}{raw};"
        f" the smallest p that so many tasks allow is {floor}."
    )
