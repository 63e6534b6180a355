"""All designs at once: Friedman's test on every block, then which designs differ in average rank."""

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from analysis.formats import fraction
from analysis.sections.rank_tables import friedman_grid, ranks_grid
from analysis.sections.section import Material, Section
from analysis.statistics.correction import passes
from analysis.statistics.friedman import Friedman, friedman
from analysis.statistics.posthoc import against_control, nemenyi_p
from analysis.statistics.ranks import cliques, letters, nemenyi_distance, task_ranks

if TYPE_CHECKING:
    import pandas as pd

MOST_PAIRS = 1_000  # a block; of more pairs only the critical difference is given, which says the same


def rank_section(material: Material) -> Section | None:
    """Return the tables `friedman` and `ranks`; with two designs only a note, as Friedman's is then a sign test."""
    import pandas as pd

    settings, matrix = material.settings, material.matrix
    designs = [str(name) for name in matrix.columns]
    if len(designs) < 3:
        return Section("ranks", notes=["Friedman's test and average ranks need three designs; for two see the pairs."])
    control = designs.index(material.control) if material.control else None  # none is taken that nobody named
    few = len(designs) * (len(designs) - 1) // 2 <= MOST_PAIRS
    tests, ranks, pairs = [], [], []
    for kind, tasks in material.blocks.items():
        n = len(tasks)
        if n < 2:
            continue
        test = friedman(task_ranks(matrix.loc[tasks].to_numpy(dtype=float), settings.decimals))
        cd = nemenyi_distance(len(designs), n, settings.alpha)
        tests.append(_test_row(kind, n, test, cd))
        ranks.append(_rank_table(kind, designs, n, test, cd=cd, control=control))
        if few:
            pairs.append(_pair_table(kind, designs, n, test))
    table, by_design = pd.DataFrame(tests), pd.concat(ranks, ignore_index=True)
    frames = {"friedman.csv": table, "ranks.csv": by_design}
    if pairs:
        frames["rank_pairs.csv"] = pd.concat(pairs, ignore_index=True)
    grids = [friedman_grid(table, settings), ranks_grid(by_design, material.control, settings)]
    return Section("ranks", grids, frames, list(_notes(material, table, few)))


def _test_row(kind: str, n: int, test: Friedman, cd: float) -> dict[str, object]:
    values = {name: value for name, value in vars(test).items() if name != "average_ranks"}
    return {"type": kind, "n_tasks": n, "n_designs": len(test.average_ranks), **values, "cd": cd}


def _rank_table(
    kind: str, designs: list[str], n: int, test: Friedman, *, cd: float, control: int | None
) -> "pd.DataFrame":
    import pandas as pd

    averages = test.average_ranks
    groups = cliques(averages, cd)
    columns = {"type": kind, "n_tasks": n, "design": designs, "average_rank": averages}
    columns |= {"n_groups": len(groups), "groups": letters(groups, len(designs))}
    if control is not None:
        columns |= {"control": designs[control], **vars(against_control(averages, n, control))}
    return pd.DataFrame(columns)


def _pair_table(kind: str, designs: list[str], n: int, test: Friedman) -> "pd.DataFrame":
    import pandas as pd

    first, second = np.array(list(combinations(range(len(designs)), 2))).T
    names, averages = np.array(designs, dtype=object), test.average_ranks
    differences = averages[second] - averages[first]
    columns = {"type": kind, "n_tasks": n, "first": names[first], "second": names[second]}
    return pd.DataFrame(
        columns | {"rank_difference": differences, "p_nemenyi": nemenyi_p(differences, len(designs), n)}
    )


def _notes(material: Material, table: "pd.DataFrame", listed: bool) -> Iterator[str]:
    marks = "Nemenyi's groups and Holm's marks" if material.control else "Nemenyi's groups"
    yield (
        f"Average ranks compare a design with all the others in the table, so {marks} change with which designs are"
        " compared, and keep their level only where all are alike (Benavoli, Corani, Mangili 2016). For two designs the"
        " signed-rank test of the pair has the last word."
    )
    alpha = material.settings.alpha
    p = table["p_permutation"].fillna(table["p_f"]).to_numpy()
    open_blocks = table.loc[~passes(p, alpha), "type"].tolist()
    if open_blocks:
        yield (
            f"Friedman's test does not reject at {fraction(alpha)} on {', '.join(open_blocks)}: there no difference of"
            " average ranks is to be read as one of the designs."
        )
    wide = table.loc[table["cd"] > table["n_designs"] - 1, "type"].tolist()
    if wide:
        yield f"The critical difference is larger than any difference of ranks on {', '.join(wide)}: too few tasks."
    single = [kind for kind, tasks in material.blocks.items() if len(tasks) < 2]
    if single:
        yield f"One task has no distribution of ranks: {', '.join(single)} left out of the rank tables."
    if not listed:
        yield "Nemenyi's p of each pair is left out with so many designs: the critical difference says the same."
