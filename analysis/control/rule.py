"""The control rule: designs that differ not in the factors alone are refused, unless the difference is allowed."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from string import ascii_lowercase

import pandas as pd

from analysis.manifests.compared_keys import check_allowed, check_factors
from analysis.manifests.designs import Design
from analysis.manifests.differences import ABSENT, Differences, compare, values_of
from analysis.names import listed
from analysis.render import Table
from analysis.scores.tasks import parts_of
from analysis.settings import Settings
from cli.compose import flat
from cli.errors import UserError
from records.manifest import below

NO_PROOF = "No manifest stands beside these scores, so differences may come from more than the factors."
MOST_NOTES = 6


class NotControlledError(UserError):
    """The designs do not compare; `table` has the keys in which they differ."""

    def __init__(self, message: str, table: Table) -> None:
        super().__init__(message)
        self.table = table


@dataclass(frozen=True)
class Footnote:
    """`text` says what differs. `value_of`: design -> its values, by number; `marked`: the exceptions."""

    mark: str
    text: str
    keys: tuple[str, ...]
    value_of: dict[str, frozenset[int]]
    marked: frozenset[str]

    def parts(self, one: str, other: str) -> bool:
        """Tell whether the note concerns the comparison of two designs."""
        return self.value_of.get(one) != self.value_of.get(other) or len(self.value_of.get(one, ())) > 1


@dataclass(frozen=True)
class Control:
    """The finding: `refused` keys with the seed that shows each (or ""), footnotes of the allowed ones, `confounded`: a
    sentence for each pair that differs in a key below a factor that agrees, further notes."""

    refused: dict[str, str] = field(default_factory=dict)
    footnotes: list[Footnote] = field(default_factory=list)
    confounded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def said(self) -> list[str]:
        """The notes of a report, which has some of the confounded pairs alone."""
        rest = len(self.confounded) - MOST_NOTES
        more = [f"So it is between {rest} more pairs; python -m analysis.control lists them."] if rest > 0 else []
        return [*self.confounded[:MOST_NOTES], *more, *self.notes]


def controlled(shown: dict[str, Design], tasks: Iterable[str], settings: Settings) -> Control:
    """Hold the manifests of `shown` designs against the control rule.

    tasks: those whose inputs count. Raises `NotControlledError`, with keys and remedy, where anything is refused.
    """
    parts = {part for task in tasks for part in (task, *parts_of(task))}
    control = judge(shown, settings.factors, settings.allow, parts)
    if control.refused:
        table = difference_table(control.refused, shown)
        raise NotControlledError(refusal(control, shown, settings.factors, settings.allow), table)
    return control


def judge(
    designs: dict[str, Design], factors: tuple[str, ...], allow: tuple[str, ...] = (), tasks: set[str] | None = None
) -> Control:
    """Compare the manifests of all designs.

    designs: label -> design; allow: keys that cover what lies below them; tasks: those whose inputs count, None: all.
    Raises UserError for a factor or an allowed key that no run has.
    """
    manifests = [run.manifest for design in designs.values() for run in design.runs]
    if not manifests:
        idle = [f"allow=[{','.join(allow)}] let nothing through: there are no manifests."] if allow else []
        return Control(notes=[NO_PROOF, *idle])
    check_factors(factors, manifests)
    check_allowed(allow, manifests)
    differences = compare(designs, factors)
    seeds = {key: seed for key, seed in sorted(differences.refused.items()) if tasks is None or _concerns(key, tasks)}
    allowed = {key: seed for key, seed in seeds.items() if below(key, allow)}
    refused = {key: seed for key, seed in seeds.items() if key not in allowed}
    notes = [f"{a} and {b} are the same cell twice: their manifests differ in nothing." for a, b in differences.same]
    idle = [key for key in allow if not any(below(name, (key,)) for name in seeds)]
    notes += [f"allow=[{','.join(idle)}] let nothing through: no design differs there."] if idle else []
    return Control(refused, _footnotes(allowed, designs), _confounded(differences, designs, factors), notes)


def _concerns(key: str, tasks: set[str]) -> bool:
    """Tell whether a key is of no task, or of one that is compared."""
    if not key.startswith(("evaluation.inputs.", "evaluation.tasks.")):
        return True
    name = key.split(".", 2)[2]  # of inputs: "<task> <split> <subset>"
    return name in tasks or any(name.startswith(f"{task} ") for task in tasks)


def refusal(control: Control, designs: dict[str, Design], factors: tuple[str, ...], allow: tuple[str, ...]) -> str:
    """Return the one line: how many designs, which keys, and three remedies."""
    keys = list(control.refused)
    config = {key for design in designs.values() for run in design.runs for key in flat(run.manifest["config"])}
    named = _grouped([key for key in keys if key in config and key != "seed"])[:3]
    factor = f" Or make it a factor: factors=[{','.join([*factors, *named])}]." if named else ""
    return (
        f"Not controlled: the {len(designs)} designs differ not only in {', '.join(factors)}"
        f" but also in {listed(keys, 8)}."
        f" Train and score them alike.{factor}"
        f" Or let it through, as a footnote: allow=[{','.join([*allow, *_grouped(keys)])}]."
    )


def _grouped(keys: list[str]) -> list[str]:
    """Return a whole group once where several of its keys are named: versions.torch, versions.peft -> versions."""
    parents = [key.rpartition(".")[0] for key in keys]
    return list(dict.fromkeys(p if parents.count(p) > 1 and p else key for p, key in zip(parents, keys, strict=True)))


def difference_table(keys: dict[str, str], designs: dict[str, Design]) -> Table:
    """Return the table key | value | designs, for keys -> the seed that shows each (or "")."""
    groups = {f"{key} (seed {seed})" if seed else key: values_of(key, designs, seed) for key, seed in keys.items()}
    return value_table("What else differs", "Keys that differ beside the factors.", "Designs", groups, 8)


def value_table(title: str, caption: str, units: str, groups: dict[str, dict[str, list[str]]], most: int) -> Table:
    """Return a row per key and value, with at most so many designs that have it. groups: key -> value -> them."""
    rows = [(key, short(value), listed(of, most)) for key, values in groups.items() for value, of in values.items()]
    frame = pd.DataFrame(rows, columns=["Key", "Value", units])
    return Table(title.lower().replace(" ", "-"), title, caption, frame, left=3)


def _confounded(differences: Differences, designs: dict[str, Design], factors: tuple[str, ...]) -> list[str]:
    """Name keys that differ below a factor that agrees: the published multilayer heads read other tokens."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for key, pair in ((key, pair) for key, pairs_of_key in differences.confounded.items() for pair in pairs_of_key):
        if all(designs[label].trained for label in pair):  # references stand beside their own run only
            pairs.setdefault(pair, []).append(key)
    lines = []
    for (one, other), keys in pairs.items():
        a, b = designs[one], designs[other]
        varying = [f for f in factors if a.factors[f] != b.factors[f]] or ["training"]
        parts = [f"{key} ({', '.join(map(short, values_of(key, {one: a, other: b})))})" for key in sorted(keys)]
        lines.append(f"Between {one} and {other} not only {' and '.join(varying)} differs but also {listed(parts)}.")
    return lines


def _footnotes(keys: dict[str, str], designs: dict[str, Design]) -> list[Footnote]:
    """Return one footnote for all keys that part the designs alike. keys: key -> the seed that shows it, or ""."""
    alike: dict[tuple[tuple[str, frozenset[int]], ...], list[str]] = {}
    for key, seed in keys.items():
        alike.setdefault(tuple(_numbered(values_of(key, designs, seed), designs).items()), []).append(key)
    notes = []
    for k, (partition, parted) in enumerate(alike.items()):
        text = "; ".join(described(key, values_of(key, designs, keys[key]), keys[key]) for key in parted)
        mark = ascii_lowercase[k % 26] * (1 + k // 26)
        notes.append(Footnote(mark, f"{text} (allowed)", tuple(parted), dict(partition), _exceptions(dict(partition))))
    return notes


def described(key: str, values: dict[str, list[str]], seed: str = "") -> str:
    """Return `threads: 2 in eos-causal, 4 in the others`; the value that most designs have comes last."""
    if key == "manifest":
        return f"uncontrolled, since no manifest shows how it was made: {listed(values.get(ABSENT, []))}"
    groups = sorted(((units, short(value)) for value, units in values.items()), key=lambda group: len(group[0]))
    parts = [f"{value} in {listed(units)}" for units, value in groups]
    if len(groups) > 1 and len(groups[-1][0]) > max(1, len(groups[-2][0])):
        parts[-1] = f"{groups[-1][1]} in the others"
    return f"{key}{f' (seed {seed})' if seed else ''}: {', '.join(parts)}"


def short(value: str, most: int = 40) -> str:
    """Return a value as a table shows it: the first 12 digits of a digest, the first 40 letters of a long text."""
    if re.fullmatch(r"[0-9a-f]{64}", value):
        return value[:12]
    return value if len(value) <= most else f"{value[:most]}..."


def _numbered(values: dict[str, list[str]], designs: dict[str, Design]) -> dict[str, frozenset[int]]:
    """Return design -> the numbers of its values, so that two keys with the same parting are found equal."""
    numbered: dict[str, set[int]] = {label: set() for label in designs}
    for number, units in enumerate(values.values()):
        for unit in units:
            numbered[unit if unit in designs else unit.rpartition(" (seed ")[0]].add(number)
    return {label: frozenset(numbers) for label, numbers in numbered.items() if numbers}


def _exceptions(value_of: dict[str, frozenset[int]]) -> frozenset[str]:
    """Return all but the largest group of designs; all of them where no group is the largest."""
    counts = Counter(value_of.values()).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return frozenset(value_of)
    return frozenset(label for label, value in value_of.items() if value != counts[0][0] or len(value) > 1)
