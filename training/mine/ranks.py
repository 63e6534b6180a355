"""The documents of highest cosine for each query, block by block, the rules that drop probable positives, and the
shares that they drop."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

Config = dict[str, Any]
ENDS = (1, 10, 30, 100, 300, 1000)  # last ranks of the rows
LOW = 2**32 - 1  # mask of the lower half of a key


def keys_of(scores: Tensor, first: int) -> Tensor:
    """Return [B, K] int64 keys that sort as (score, then lower place first), all distinct in a row.

    scores: [B, K] float32 of the documents at places first, first + 1, ...; -inf ranks last. `topk` of scores alone
    breaks ties as it likes, and two attempts at one mining must not differ.
    """
    bits = scores.view(torch.int32).long()
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    places = torch.arange(first, first + scores.shape[1], device=scores.device)
    return (ordered << 32) + (LOW - places)


def scores_and_places(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return the float32 scores and int64 places that `keys_of` made keys of."""
    ordered = keys >> 32
    bits = torch.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered)
    return bits.int().view(torch.float32), LOW - (keys & LOW)


def ranked(
    queries: Tensor, blocks: Iterable[tuple[int, Tensor]], positives: Tensor, known: Tensor, last: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return each query's score of its positive [B], and scores and places of its `last` best documents [B, last].

    queries: [B, E]; blocks: (place of the first, [n, E]) of all documents, in turn, so that no more than [B, n] scores
    are held; unit vectors, float32. positives: [B] places. known: [M, 2] (query, place) without a rank: what is or may
    be a positive by its text. A score of -inf: fewer documents are left.
    """
    of_positive = queries.new_zeros(len(queries))
    best = keys_of(queries.new_full((len(queries), last), -torch.inf), LOW - last)
    for first, documents in blocks:
        scores, end = queries @ documents.T, first + len(documents)
        here = ((positives >= first) & (positives < end)).nonzero()[:, 0]
        of_positive[here] = scores[here, positives[here] - first]
        row, place = known[(known[:, 1] >= first) & (known[:, 1] < end)].T
        scores[row, place - first] = -torch.inf
        best = torch.cat([best, keys_of(scores, first)], dim=1).topk(last, dim=1).values
    return of_positive, *scores_and_places(best)


@dataclass(frozen=True)
class Rules:
    """Rules that drop a candidate as a suspected false negative; None: no such rule.

    percent: score above this share of the positive's (TopK-PercPos; where that is negative, as much below it, since the
    published product lies above). margin: above the positive's less this (TopK-MarginPos). threshold: above this
    (TopK-Abs). Moreira et al. 2024 (NV-Retriever, arXiv 2407.15831).
    """

    percent: float | None
    margin: float | None
    threshold: float | None

    def suspected(self, positives: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Return rule -> [B, K] bool for the rules that there are. positives: [B]; scores: [B, K]."""
        p, by_rule = positives[:, None].astype(np.float64), {}
        if self.percent is not None:
            by_rule["percent"] = scores > p - (1 - self.percent) * np.abs(p)
        if self.margin is not None:
            by_rule["margin"] = scores > p - self.margin
        if self.threshold is not None:
            by_rule["threshold"] = scores > np.full_like(p, self.threshold)
        return by_rule


def chosen(left: np.ndarray, count: int, seed: Sequence[int] | None) -> np.ndarray:
    """Return `count` of the ranks `left`, or as many as there are, best first. seed: draws them; None: the best."""
    if seed is None or len(left) <= count:
        return left[:count]
    return np.sort(np.random.default_rng(seed).choice(left, count, replace=False))


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
