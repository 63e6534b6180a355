"""Names that a user may have meant, also among hundreds."""

from collections.abc import Iterable
from difflib import get_close_matches

from cli.errors import nearest


def suggest(word: str, valid: Iterable[str], few: int = 12) -> str:
    """Return the end of an error message: names that hold `word`, else the nearest, else how many there are."""
    names = sorted(set(valid))
    bare = word.strip("*?").lower()
    holding = [name for name in names if bare and bare in name.lower()]
    if holding:
        return f"Nearest: {listed(holding, 5)}."
    if len(names) <= few or get_close_matches(word, names, n=1, cutoff=0.5):
        return nearest(word, names)
    return f"There are {len(names)}, for example {', '.join(names[:3])}."


def listed(names: Iterable[str], most: int = 6) -> str:
    """Join names with commas; beyond `most`, say how many more there are."""
    items = list(names)
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def by_number(seeds: Iterable[str]) -> list[str]:
    """Return seeds in the order of their numbers."""
    return sorted(seeds, key=lambda seed: (len(seed), seed))
