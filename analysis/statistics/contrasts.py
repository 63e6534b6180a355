"""Orthonormal contrasts of a full factorial: one matrix for every main effect and every interaction.

A contrast of an effect is a Kronecker product over the factors: Helmert contrasts for a factor of the effect, the mean
for any other (Winer, Brown and Michels 1991, chapter 5). Which contrasts span an effect does not matter: its sum of
squares is the same for every orthonormal basis.
"""

from functools import reduce
from itertools import combinations

import numpy as np
import scipy.linalg

from analysis.statistics.arrays import Floats


def helmert(levels: int) -> Floats:
    """Return [levels, levels - 1] orthonormal columns: column k is level k + 1 against the mean of those before it."""
    return np.asarray(-scipy.linalg.helmert(levels).T, dtype=np.float64)


def effect_contrasts(levels: dict[str, int]) -> dict[tuple[str, ...], Floats]:
    """Return effect (names of its factors) -> contrasts [cells, df], main effects first, then by order.

    levels: factor -> number of its levels. Cells run as in `itertools.product`, the last factor fastest.
    All columns of all effects together, with the constant, are an orthonormal basis of the cells.
    """
    contrasts = {}
    for size in range(1, len(levels) + 1):
        for effect in combinations(levels, size):
            parts = [helmert(n) if name in effect else np.full((n, 1), n**-0.5) for name, n in levels.items()]
            contrasts[effect] = reduce(np.kron, parts)
    return contrasts
