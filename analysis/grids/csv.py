"""A table as csv text, in a fraction of the time of `to_csv`: each distinct value of a column is written once."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

ROWS_AT_ONCE = 10_000


def csv_text(table: pd.DataFrame, index: bool = False) -> str:
    """Return the table as csv text, floats with all their digits, as `table.to_csv(index=index)` does."""
    return "".join(csv_blocks(table, index))


def csv_blocks(table: pd.DataFrame, index: bool = False) -> Iterator[str]:
    """Yield the text of `csv_text` in blocks of rows: all words of hundreds of thousands of pairs fill the memory.

    Pairs repeat their names, ranks and p-values; a block holds each as text but once.
    """
    flat = table.reset_index() if index else table
    columns = [_zeros_alike(column) for _, column in flat.items()]
    yield ",".join(map(_word, flat.columns)) + "\n"
    for start in range(0, len(flat), ROWS_AT_ONCE):
        words = [_words(column[start : start + ROWS_AT_ONCE]) for column in columns]
        yield "".join(f"{','.join(line)}\n" for line in zip(*words, strict=True))


def _zeros_alike(column: pd.Series) -> pd.Series:
    """Give all zeros of a column of floats the sign of the first, since -0.0 and 0.0 are one distinct value."""
    zeros = column.to_numpy() == 0 if column.dtype == np.float64 else np.zeros(1, dtype=bool)
    return column.mask(zeros, column.iloc[zeros.argmax()]) if zeros.any() else column


def _words(column: pd.Series) -> list[str]:
    codes, values = pd.factorize(column, use_na_sentinel=True)
    word = str if is_numeric_dtype(column) else _word
    words = np.array([*map(word, values.tolist()), ""], dtype=object)  # the last for a gap
    return words[codes].tolist()


def _word(value: object) -> str:
    """One cell, in quotes where csv asks for them."""
    text = str(value)
    if not isinstance(value, str) or not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'
