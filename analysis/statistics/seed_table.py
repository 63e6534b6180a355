"""The long table as [designs, tasks, seeds], for the designs and seeds that make it complete."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.names import listed

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SeedTable:
    """`scores` [designs, tasks, seeds], complete; `note` says which designs or seeds are not in it, or is empty."""

    designs: list[str]
    tasks: list[str]
    seeds: list[str]
    scores: NDArray[np.float64]
    note: str = ""

    def block(self, tasks: list[str]) -> NDArray[np.float64]:
        """Return the scores of these tasks, [designs, tasks, seeds]."""
        place = {task: k for k, task in enumerate(self.tasks)}
        return self.scores[:, [place[task] for task in tasks]]


def seed_table(frame: "pd.DataFrame", designs: list[str], tasks: list[str]) -> SeedTable | None:
    """Return the table over the seeds that all designs share; None where there are fewer than two.

    frame: long, with design, seed, task, score. Designs with one seed are left out where two designs with more remain.
    """
    own = _seeds(frame, designs)
    several = [design for design in designs if len(own[design]) > 1]
    shared = [seed for seed in own[several[0]] if all(seed in own[d] for d in several)] if several else []
    if len(several) < 2 or len(shared) < 2:
        return None
    wide = frame.pivot_table(index="task", columns=["design", "seed"], values="score")
    scores = np.stack([wide[design].loc[tasks, shared].to_numpy(dtype=np.float64) for design in several])
    return SeedTable(several, tasks, shared, scores, _note(own, several, shared))


def _seeds(frame: "pd.DataFrame", designs: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {design: [] for design in designs}
    for design, seed in frame[["design", "seed"]].drop_duplicates().itertuples(index=False):
        if seed and design in found:
            found[design].append(seed)
    return {design: sorted(seeds, key=lambda seed: (len(seed), seed)) for design, seeds in found.items()}


def _note(own: dict[str, list[str]], several: list[str], shared: list[str]) -> str:
    single = [design for design in own if design not in several]
    more = [design for design in several if len(own[design]) > len(shared)]
    parts = [f"{listed(single, 4)} with fewer than two seeds left out"] if single else []
    parts += [f"further seeds of {listed(more, 4)} not used"] if more else []
    return f"only the seeds {', '.join(shared)}, which the designs share: {'; '.join(parts)}" if parts else ""
