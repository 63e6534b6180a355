"""A study that adds seeds until each design is told from the first or equivalent to it: what each look tells."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.control.rule import controlled
from analysis.grids.formats import fraction, signed
from analysis.grids.grid import Cell, Grid
from analysis.grids.markdown import markdown_grid
from analysis.names import listed
from analysis.questions.compared_pairs import seed_cube
from analysis.questions.equivalence import EQUIVALENT, NOT_TOLD, TOLD, within
from analysis.scores.choose import choose, rows_of
from analysis.scores.complete import complete
from analysis.scores.load import load
from analysis.settings import Settings
from analysis.statistics.arrays import Floats
from analysis.statistics.correction import holm, passes
from analysis.statistics.looks import boundary, over_looks, p_of_look, planned
from records.files import write_json, write_text

NAME = "sequential"  # of the files
KINDS = {TOLD: "p", EQUIVALENT: "within"}  # outcome -> what its columns begin with
HEADER = ["Design", "Seeds", "Difference", "p tasks", "p seeds", "p over looks", "within: p tasks", "p seeds"]
HEADER += ["p over looks", "Outcome"]
CAPTION = (
    "Designs against {first}, tested after {looks} seeds until they are told apart or {within}. Difference: mean over"
    " tasks and seeds. p tasks: signed-rank test, after Holm (pairs: {pairs}). p seeds: of the mean over tasks and"
    " seeds at this look; p over looks: the probability that it is so small at any look where there is no difference,"
    " after Holm. Told apart where p tasks and p over looks are at most {alpha}, so for one pair p seeds at most"
    " {boundary}. Within {margin}: the same of two one-sided tests. What was told is not tested again. The tables of"
    " python -m analysis know of no looks: their p over tasks and seeds are too small here."
)
DEFAULTS = Settings(scores=())


class Looks:
    """The looks of a study of `most` seeds. names: designs; the first is what all others are compared with.

    settings: `alpha` and `rope` alone count. `table`: one row per look and pair that was open then.
    """

    def __init__(self, names: Sequence[str], most: int, settings: Settings = DEFAULTS) -> None:
        self.first, *others = names
        self.looks, self.settings, self.table = planned(most), settings, pd.DataFrame()
        columns = [f"{kind}_{part}" for kind in KINDS.values() for part in ("tasks", "looks")]
        self.pairs = pd.DataFrame({"second": others, "outcome": NOT_TOLD, **dict.fromkeys(columns, 1.0)})

    @property
    def open(self) -> list[str]:
        """The designs that are neither told from the first nor equivalent to it, in their order."""
        return self.pairs.loc[self.pairs["outcome"] == NOT_TOLD, "second"].tolist()

    def look(self, cube: Floats) -> str:
        """Test the open pairs and return the line that says what is told. cube: [first and open, tasks, seeds]."""
        rows, seeds = np.flatnonzero(self.pairs["outcome"] == NOT_TOLD), cube.shape[2]
        second = np.arange(1, len(cube))
        tests = p_of_look(cube, np.zeros_like(second), second, self.settings.rope)
        shown = {"first": self.first, "second": self.open, "seeds": seeds, "difference": tests["difference"]}
        outcomes = np.full(len(rows), NOT_TOLD, dtype=object)
        for outcome, kind in reversed(KINDS.items()):  # told apart where it is both
            tasks, looks = f"{kind}_tasks", f"{kind}_looks"
            self.pairs.loc[rows, tasks] = tests[tasks]  # those of decided pairs stay what they were
            self.pairs.loc[rows, looks] = over_looks(tests[f"{kind}_seeds"], seeds, self.looks)
            both = [holm(self.pairs[name].to_numpy())[rows] for name in (tasks, looks)]
            shown |= {tasks: both[0], f"{kind}_seeds": tests[f"{kind}_seeds"], looks: both[1]}
            outcomes[passes(np.maximum(*both), self.settings.alpha)] = outcome
        self.pairs.loc[rows, "outcome"] = outcomes
        self.table = pd.concat([self.table, pd.DataFrame({**shown, "outcome": outcomes})], ignore_index=True)
        parts = []
        for outcome in (TOLD, EQUIVALENT, NOT_TOLD):
            of = np.flatnonzero(outcomes == outcome)
            texts = [f"{shown['second'][k]} ({signed(tests['difference'][k])})" for k in of]
            word = within(self.settings) if outcome == EQUIVALENT else outcome
            parts += [f"{word} {listed(texts, len(texts))}"] if texts else []
        return f"Look at {seeds} seeds, against {self.first}: {'; '.join(parts)}."

    def write(self, folder: Path) -> list[Path]:
        """Write sequential.md and sequential.json to `folder` and return their paths."""
        settings, looks = self.settings, [str(seeds) for seeds in self.looks]
        boundaries = [boundary(settings.alpha, seeds, self.looks) for seeds in self.looks]
        caption = CAPTION.format(
            **{"first": self.first, "looks": listed(looks), "within": within(settings), "pairs": len(self.pairs)},
            boundary=", ".join(f"{p:.2g} at {seeds}" for seeds, p in zip(looks, boundaries, strict=True)),
            **{"alpha": fraction(settings.alpha), "margin": fraction(settings.rope)},
        )
        names = [f"{kind}_{part}" for kind in KINDS.values() for part in ("tasks", "seeds", "looks")]
        rows = []
        for row in self.table.to_dict("records"):
            outcome = within(settings) if row["outcome"] == EQUIVALENT else row["outcome"]
            texts = [str(row["seeds"]), signed(row["difference"]), *(fraction(row[name]) for name in names), outcome]
            rows.append([Cell(text) for text in (row["second"], *texts)])
        facts = {"first": self.first, "looks": list(self.looks), "alpha": settings.alpha, "margin": settings.rope}
        facts["largest_p_seeds_of_one_pair"] = dict(zip(looks, boundaries, strict=True))
        facts["outcomes"] = dict(zip(self.pairs["second"], self.pairs["outcome"], strict=True))
        files = [folder / f"{NAME}.{ending}" for ending in ("md", "json")]
        write_text(files[0], f"## Seeds added until told\n\n{markdown_grid(Grid(NAME, caption, HEADER, rows))}")
        write_json(files[1], facts | {"tests": self.table.to_dict("records")})
        return files


def scores_of_look(settings: Settings) -> Floats:
    """Return the scores [designs, tasks, seeds] of the models and seeds that `settings` name, models in that order.

    Raises `UserError` where a score lacks, or where the designs differ in more than the factors.
    """
    scores = load(settings)
    chosen = choose(scores, settings)
    whole = complete(rows_of(scores.frame, chosen, settings), chosen, "fail")
    controlled({label: scores.designs[label] for label in chosen}, whole.tasks, settings)
    return seed_cube(whole.frame, pd.DataFrame(index=whole.tasks, columns=chosen))
