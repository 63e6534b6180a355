"""Shares of suspected false negatives by rank, and the facts of a mining in words."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Config = dict[str, Any]
ENDS = (1, 10, 30, 100, 300, 1000)  # last ranks of the rows


def shares(by_rank: dict[str, np.ndarray], first: int) -> Config:
    """Return "2-10" -> number of candidates, and the shares of them that are dropped, in all and by each rule.

    by_rank: name -> [ranks from `first` on] numbers of queries, "candidates" among them. "all": all ranks.
    """
    last = first + len(by_rank["candidates"]) - 1
    ends = [first - 1, *(end for end in ENDS if first <= end < last), last]
    bands = {f"{a + 1}-{b}" if a + 1 < b else str(b): slice(a + 1 - first, b + 1 - first) for a, b in pairwise(ends)}
    table: Config = {}
    for name, ranks in {**bands, "all": slice(None)}.items():
        sums = {key: int(numbers[ranks].sum()) for key, numbers in by_rank.items()}
        count = sums.pop("candidates")
        table[name] = {"candidates": count, **{key: round(n / max(1, count), 4) for key, n in sums.items()}}
    return table


def report(out: Path, facts: Config) -> str:
    """Return the facts of `training.mine.command` in words, the shares as a table."""
    n, table, most = facts["queries"], facts["suspected"], facts["settings"]["negatives"]
    head = (
        f"{out}: {n:,} queries with {facts['negatives'] / n:.2f} negatives on average; {facts['queries_with_fewer']:,} "
        f"have fewer than {most}, {facts['queries_without']:,} none. The positive ranks first for "
        f"{facts['positive_first'] / n:.1%}.\nSuspected false negatives, share of candidates, all rules and each:"
    )
    columns = list(table["all"])
    rows = [["rank", *columns]]
    for name, row in table.items():
        rows.append([name, *(f"{row[c]:,}" if c == "candidates" else f"{row[c]:.2%}" for c in columns)])
    return "\n".join([head, *("".join(f"{cell:>12}" for cell in row) for row in rows)])
