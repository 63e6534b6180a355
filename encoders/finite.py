"""Vectors with NaN or infinity are refused where they are made: a score of them would be a number all the same."""

from collections.abc import Sequence

import numpy as np

from cli.errors import UserError

NAMELESS = "The model"
REMEDY = "Train it again with a smaller learning rate, or in fp32."


class NonFiniteError(UserError):
    """A vector that is not finite. place: index of its text among those that were asked for."""

    def __init__(self, text: str, place: int, many: str, whose: str = NAMELESS, remedy: str = REMEDY) -> None:
        self.text, self.place, self.many, self.whose, self.remedy = text, place, many, whose, remedy
        super().__init__(
            f"{whose} gives NaN or infinity for {many}, the first is text {place + 1}: {text[:80]!r}. {remedy}"
        )

    def at(self, place: int, whose: str = "") -> "NonFiniteError":
        """Return the error for the same text at `place` of another list, of `whose` encoder where it had no name."""
        name = self.whose if self.whose != NAMELESS else whose or NAMELESS
        return NonFiniteError(self.text, place, self.many, name, self.remedy)


def refuse_nonfinite(
    texts: Sequence[str], indices: Sequence[int], vectors: np.ndarray, whose: str = NAMELESS, remedy: str = REMEDY
) -> None:
    """Raise `NonFiniteError` where a vector is not finite. vectors: [n, E], row i is of texts[indices[i]]."""
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        place = indices[bad[0]]
        raise NonFiniteError(texts[place], place, f"{bad.size} of {len(indices)} texts", whose, remedy)
