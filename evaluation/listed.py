"""A data set in memory whose columns are lists, as they were before datasets 4."""

from typing import Any

from datasets import Dataset


class Listed(Dataset):
    """`data["label"]` is a list, not a view that fetches row by row whenever it is read.

    mteb gives the column of true labels to a dozen functions of scikit-learn for each experiment, and each of them
    reads it several times: most of what a classification task took beside encoding. The values are the same.
    """

    def __getitem__(self, key: Any) -> Any:
        """A column by its name, as a list; rows as ever."""
        found = super().__getitem__(key)
        return list(found) if isinstance(key, str) else found
