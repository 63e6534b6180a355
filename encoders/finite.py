"""Vectors with NaN or infinity are refused where they are made: a score of them would be a number all the same."""

from collections.abc import Sequence

import numpy as np

from cli.errors import UserError

REMEDY = "Train it again with a smaller learning rate, or in fp32."


def refuse_nonfinite(texts: Sequence[str], vectors: np.ndarray, whose: str = "The model", remedy: str = REMEDY) -> None:
    """Raise `UserError`, naming the first text, where a vector is not finite. vectors: [N, E] of `texts`."""
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        many = f"{bad.size} of {len(texts)} texts"
        raise UserError(f"{whose} gives NaN or infinity for {many}, the first is {texts[bad[0]][:80]!r}. {remedy}")
