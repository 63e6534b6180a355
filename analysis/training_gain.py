"""Before and after training: each trained design beside its untrained reference."""

from collections import defaultdict
from typing import TYPE_CHECKING

from analysis.by_type import MEAN_TASKS, seed_means, type_means
from analysis.manifests.designs import Design
from analysis.names import listed
from analysis.statistics.intervals import typical_difference
from analysis.statistics.wilcoxon import signed_rank

if TYPE_CHECKING:
    import pandas as pd

STAGES = ("before", "after", "gain", "typical gain", "p")


def training_gain(
    frame: "pd.DataFrame",
    all_designs: dict[str, Design],
    compared: list[str],
    types: dict[str, list[str]],
    *,
    zeros: str = "wilcox",
    decimals: int = 12,
) -> tuple["pd.DataFrame | None", list[str]]:
    """Return (design, stage) x types for the compared designs that have an untrained twin, and notes on the others.

    Stage `gain` is that of the means; `typical gain` is the Hodges-Lehmann difference over tasks and `p` that of its
    two-sided exact signed-rank test, uncorrected; there is neither over types.
    The twin shares study, pooler and attention. One that lacks a task is left out, with a note, since a mean over
    other tasks would be no "before". None where no design has a twin.
    """
    import pandas as pd

    tasks = [task for own in types.values() for task in own]
    have = {label: set(rows) for label, rows in frame.groupby("design")["task"]}
    parts, notes = {}, []
    other_seeds: dict[tuple[str, str], list[str]] = defaultdict(list)
    for label in compared:
        twin = twin_of(label, all_designs)
        if twin is None:
            continue
        lacking = [task for task in tasks if task not in have.get(twin, set())]
        if lacking:
            notes.append(f"No before-and-after row for {label}: {twin} lacks {listed(lacking, 4)}.")
            continue
        if _seeds(frame, twin) != _seeds(frame, label):
            other_seeds[_seeds(frame, twin), _seeds(frame, label)].append(label)
        matrix = seed_means(frame, [twin, label], tasks)
        both = type_means(matrix, types)
        before, after = both.loc[twin], both.loc[label]
        tested = _tested(matrix[label] - matrix[twin], types, zeros, decimals).reindex(before.index)
        parts[label] = pd.DataFrame([before, after, after - before, tested["typical"], tested["p"]], index=list(STAGES))
    for (before_seeds, after_seeds), names in other_seeds.items():
        notes.append(f"Before training: seeds {before_seeds}, after it: {after_seeds} ({listed(names)}).")
    if not parts:
        return None, notes
    return pd.concat(parts, names=["design", "stage"]), notes


def _tested(gains: "pd.Series", types: dict[str, list[str]], zeros: str, decimals: int) -> "pd.DataFrame":
    """Return block x (typical, p): the Hodges-Lehmann gain and its signed-rank test."""
    import pandas as pd

    rows = {}
    for kind, own in {**types, MEAN_TASKS: list(gains.index)}.items():
        values = gains.loc[own].to_numpy()[None]
        test = signed_rank(values, zeros, decimals)
        size = typical_difference(values, test, zeros=zeros, decimals=decimals).estimate[0]
        rows[kind] = {"typical": float(size), "p": float(test.p[0])}
    return pd.DataFrame.from_dict(rows, orient="index")


def _seeds(frame: "pd.DataFrame", label: str) -> str:
    return ", ".join(sorted(set(frame.loc[frame["design"] == label, "seed"]), key=lambda s: (len(s), s)))


def twin_of(label: str, designs: dict[str, Design]) -> str | None:
    """Return the label of a trained design's untrained reference, None where it has none."""
    mine = designs[label]
    if not mine.trained or not mine.pooler:
        return None
    return next((name for name, other in designs.items() if not other.trained and _same_cell(mine, other)), None)


def _same_cell(mine: Design, other: Design) -> bool:
    """Study, pooler, attention and further factors; a reference without a run has no training keys."""
    agree = (mine.study, mine.pooler, mine.attn) == (other.study, other.pooler, other.attn)
    return agree and all(other.factors.get(key) in (value, "absent", None) for key, value in mine.factors.items())
