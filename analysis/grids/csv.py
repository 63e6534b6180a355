"""A table as csv text, in a fraction of the time of `to_csv`: each distinct value of a column is written once."""

import numpy as np
import pandas as pd


def csv_text(table: pd.DataFrame, index: bool = False) -> str:
    """Return the table as csv text, floats with all their digits, as `table.to_csv(index=index)` does.

    Hundreds of thousands of pairs repeat their names, ranks and p-values, and hold each float as text but once.
    """
    flat = table.reset_index() if index else table
    columns = []
    for _, column in flat.items():
        codes, values = pd.factorize(column, use_na_sentinel=True)
        words = np.array([*map(_word, values.tolist()), ""], dtype=object)  # the last for a gap
        columns.append(words[codes])
    lines = map(",".join, zip(*columns, strict=True))
    return "\n".join([",".join(map(_word, flat.columns)), *lines]) + "\n"


def _word(value: object) -> str:
    """One cell, in quotes where csv asks for them."""
    text = str(value)
    if not isinstance(value, str) or not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'
