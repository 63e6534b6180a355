"""After how many seeds `study.py seeds=auto` would have decided, replayed on runs that are there.

    python -m benchmarks.calibrate.looks_replayed runs/embedded/scores orders=200    # or a file of scores

Of the designs with the most seeds each takes its turn as the first, with which the others are compared, in so many
random orders of the seeds. Printed, per pair: in how many orders it is told apart or equivalent, after how many seeds
on average, and what all seeds tell in one test. docs/decisions/seeds-auto.md quotes it.
"""

import sys

import numpy as np
import pandas as pd

from analysis.questions.compared_pairs import seed_cube
from analysis.scores.read import scores_of_each
from analysis.settings import Settings
from analysis.statistics.looks import planned
from benchmarks.arguments import folder_first, taken_out
from benchmarks.calibrate.looks_level import decided
from benchmarks.calibrate.tables import print_head, print_row
from cli.errors import UserError, guard


def main() -> None:
    """Print the table."""
    folder = folder_first("runs/embedded/scores", or_file=True)
    orders, rest = taken_out(sys.argv[2:], "orders", 200)
    if rest:
        raise UserError(f"There is no argument {rest[0]!r}. Write orders=200.")
    frame, designs, tasks, _ = scores_of_each(Settings(scores=(folder,)))
    seeds = frame.groupby("design")["seed"].unique()
    most = max(map(len, seeds))
    names = [name for name in designs if len(seeds[name]) == most]
    cube = seed_cube(frame[frame["design"].isin(names)], pd.DataFrame(index=tasks, columns=names))
    if len(names) < 2 or np.isnan(cube).any():
        raise UserError(f"{folder} has no two designs with the same {most} seeds, so there are no pairs to replay.")
    rng, looks = np.random.default_rng(0), planned(most)
    print(f"{len(tasks)} tasks, {most} seeds, looks at {', '.join(map(str, looks))}; {orders} orders.\n")
    columns = ("difference", "told", "equivalent", "mean seeds", f"{most} seeds in one test")
    print_head("first", "second", *columns, texts=2)
    for k, first in enumerate(names):
        turned = np.roll(cube, -k, axis=0)
        shuffled = np.stack([turned[..., rng.permutation(most)] for _ in range(orders)])
        told, same, used = decided(shuffled, looks)
        at_once = [of[0] for of in decided(turned[None], (most,))[:2]]
        for place, second in enumerate(np.roll(names, -k)[1:]):
            difference = turned[place + 1].mean() - turned[0].mean()
            shares = [f"{100 * of[:, place].mean():.0f}" for of in (told, same)]
            once = "told" if at_once[0][place] else "equivalent" if at_once[1][place] else "not told"
            print_row(first, second, f"{difference:+.4f}", *shares, f"{used[:, place].mean():.1f}", once)


if __name__ == "__main__":
    guard(main)
