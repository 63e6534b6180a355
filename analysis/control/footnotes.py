"""Differences that were let through, as footnotes of the tables."""

import re
from dataclasses import dataclass
from string import ascii_lowercase

from analysis.control.compare import values_of
from analysis.names import listed
from analysis.reading.rows import Design


@dataclass(frozen=True)
class Footnote:
    """`text` says what differs. `value_of`: design -> its values, told apart by number; `marked`: the exceptions."""

    mark: str
    text: str
    keys: tuple[str, ...]
    value_of: dict[str, frozenset[int]]
    marked: frozenset[str]

    def parts(self, one: str, other: str) -> bool:
        """Whether the comparison of two designs is touched."""
        return self.value_of.get(one) != self.value_of.get(other) or len(self.value_of.get(one, ())) > 1


def footnotes(keys: dict[str, str], designs: dict[str, Design]) -> list[Footnote]:
    """Return one footnote for all keys that part the designs alike. keys: key -> the seed that shows it, or ""."""
    alike: dict[tuple[tuple[str, frozenset[int]], ...], list[str]] = {}
    for key, seed in keys.items():
        alike.setdefault(tuple(_numbered(values_of(key, designs, seed), designs).items()), []).append(key)
    notes = []
    for k, (partition, own) in enumerate(alike.items()):
        text = "; ".join(said(key, values_of(key, designs, keys[key]), keys[key]) for key in own)
        mark = ascii_lowercase[k % 26] * (1 + k // 26)
        notes.append(Footnote(mark, f"{text} (allowed)", tuple(own), dict(partition), _exceptions(dict(partition))))
    return notes


def said(key: str, values: dict[str, list[str]], seed: str = "") -> str:
    """Return `threads: 2 in eos-causal, 4 in the others`; the value that most designs have comes last."""
    groups = sorted(values.items(), key=lambda item: len(item[1]))
    others = len(groups) > 1 and len(groups[-1][1]) > max(1, len(groups[-2][1]))
    parts = [
        f"{short(value)} in {'the others' if others and k == len(groups) - 1 else listed(units)}"
        for k, (value, units) in enumerate(groups)
    ]
    return f"{key}{f' (seed {seed})' if seed else ''}: {', '.join(parts)}"


def short(value: str, most: int = 40) -> str:
    """A value as a table shows it: the first 12 digits of a digest, the first 40 letters of a long text."""
    if re.fullmatch(r"[0-9a-f]{64}", value):
        return value[:12]
    return value if len(value) <= most else f"{value[:most]}..."


def _numbered(values: dict[str, list[str]], designs: dict[str, Design]) -> dict[str, frozenset[int]]:
    """Return design -> the numbers of its values, so that two keys with the same parting are found equal."""
    found: dict[str, set[int]] = {label: set() for label in designs}
    for number, units in enumerate(values.values()):
        for unit in units:
            found[unit if unit in designs else unit.rpartition(" (seed ")[0]].add(number)
    return {label: frozenset(numbers) for label, numbers in found.items() if numbers}


def _exceptions(value_of: dict[str, frozenset[int]]) -> frozenset[str]:
    """All but the largest group of designs; all of them where no group is the largest."""
    groups = sorted((list(value_of.values()).count(v), sorted(v)) for v in set(value_of.values()))
    if len(groups) > 1 and groups[-1][0] == groups[-2][0]:
        return frozenset(value_of)
    usual = frozenset(groups[-1][1]) if groups else frozenset()
    return frozenset(label for label, value in value_of.items() if value != usual or len(value) > 1)
