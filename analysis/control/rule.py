"""The rule itself: designs that differ beside the factors are refused, unless the difference is allowed."""

from dataclasses import dataclass, field

from analysis.control.compare import Differences, compare, values_of
from analysis.control.footnotes import Footnote, footnotes, short
from analysis.names import listed
from analysis.reading.rows import Design
from analysis.tables.grid import Cell, Grid
from records.errors import UserError
from records.identity import below

NO_PROOF = (
    "No manifest stands beside these scores, so nothing shows that the designs differ in the factors alone:"
    " the tests compare models, not designs."
)
MOST_NOTES = 6


class NotControlledError(UserError):
    """The designs do not compare; `grid` is the table of the keys in which they differ."""

    def __init__(self, message: str, grid: Grid) -> None:
        super().__init__(message)
        self.grid = grid


@dataclass(frozen=True)
class Control:
    """What the rule found: `refused` keys with the seed that shows each (or ""), footnotes of the allowed, notes."""

    refused: dict[str, str] = field(default_factory=dict)
    footnotes: list[Footnote] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def judge(
    designs: dict[str, Design], factors: tuple[str, ...], allow: tuple[str, ...] = (), tasks: set[str] | None = None
) -> Control:
    """Compare the manifests of all designs.

    designs: label -> design; allow: keys that cover what lies below them; tasks: those whose inputs count, None: all.
    """
    if not any(design.runs for design in designs.values()):
        idle = [f"allow=[{','.join(allow)}] let nothing through: there are no manifests."] if allow else []
        return Control(notes=[NO_PROOF, *idle])
    found = compare(designs, factors)
    keys = [key for key in sorted(found.refused) if tasks is None or _concerns(key, tasks)]
    seeds = {key: found.seed_of.get(key, "") for key in keys}
    allowed = {key: seed for key, seed in seeds.items() if below(key, allow)}
    refused = {key: seed for key, seed in seeds.items() if key not in allowed}
    notes = [*confounds(found, designs, factors), *_twice(found)]
    idle_keys = [key for key in allow if not any(below(name, (key,)) for name in seeds)]
    if idle_keys:
        notes.append(f"allow=[{','.join(idle_keys)}] let nothing through: no design differs there.")
    return Control(refused, footnotes(allowed, designs), notes)


def require(
    designs: dict[str, Design], factors: tuple[str, ...], allow: tuple[str, ...] = (), tasks: set[str] | None = None
) -> Control:
    """Return what `judge` found. Raises `NotControlledError`, which names keys and mend, where anything is refused."""
    control = judge(designs, factors, allow, tasks)
    if control.refused:
        grid = difference_grid(control.refused, designs)
        raise NotControlledError(refusal(control, designs, factors, allow), grid)
    return control


def refusal(control: Control, designs: dict[str, Design], factors: tuple[str, ...], allow: tuple[str, ...]) -> str:
    """Return the one line: how many designs, which keys, and the three ways to mend it."""
    keys = list(control.refused)
    config = {key for design in designs.values() for run in design.runs for key in _configured(run.manifest, keys)}
    named = [key for key in keys if key in config][:3]
    factor = f" Or make it a factor: factors=[{','.join([*factors, *named])}]." if named else ""
    return (
        f"Not controlled: the {len(designs)} designs differ not only in {', '.join(factors)}"
        f" but also in {listed(keys, 8)}."
        f" Train and score them alike.{factor}"
        f" Or let it through, as a footnote: allow=[{','.join([*allow, *_shortest(keys)])}]."
    )


def difference_grid(keys: dict[str, str], designs: dict[str, Design]) -> Grid:
    """Return the table key | value | designs, for keys -> the seed that shows each (or "")."""
    rows = []
    for key, seed in keys.items():
        name = f"{key} (seed {seed})" if seed else key
        for value, units in values_of(key, designs, seed).items():
            rows.append([Cell(name), Cell(short(value)), Cell(listed(units, 8))])
            name = ""
    return Grid("differences", "Keys that differ beside the factors.", ["Key", "Value", "Designs"], rows, left=3)


def confounds(
    found: Differences, designs: dict[str, Design], factors: tuple[str, ...], most: int = MOST_NOTES
) -> list[str]:
    """Say where a factor agrees and a key below it does not: the published multilayer heads read other tokens."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for key, labels in found.confounded.items():
        for pair in labels:
            if all(designs[label].trained for label in pair):  # references stand beside their own run only
                pairs.setdefault(pair, []).append(key)
    lines = []
    for (one, other), keys in pairs.items():
        a, b = designs[one], designs[other]
        varying = [f for f in factors if a.factors[f] != b.factors[f]] or ["training"]
        parts = [f"{key} ({', '.join(map(short, values_of(key, {one: a, other: b})))})" for key in sorted(keys)]
        only = " and ".join(varying)
        lines.append(f"Between {one} and {other} not only {only} differs but also {listed(parts)}.")
    rest = len(lines) - most
    more = [f"So it is between {rest} more pairs; python -m analysis.control lists them."] if rest > 0 else []
    return [*lines[:most], *more]


def _concerns(key: str, tasks: set[str]) -> bool:
    """Whether a key is of no task, or of one that is compared."""
    part = next((part for part in ("evaluation.inputs.", "evaluation.tasks.") if key.startswith(part)), "")
    return not part or key.removeprefix(part).split(" ")[0] in tasks  # inputs: "<task> <split> <subset>"


def _twice(found: Differences) -> list[str]:
    return [
        f"{one} and {other} are the same cell twice: their manifests differ in nothing." for one, other in found.same
    ]


def _configured(manifest: dict, keys: list[str]) -> list[str]:
    from records.config import flat

    config = flat(manifest["config"])
    return [key for key in keys if key in config and key != "seed"]


def _shortest(keys: list[str]) -> list[str]:
    """Name a whole group once where several of its keys differ: versions.torch, versions.peft -> versions."""
    parents = [key.rpartition(".")[0] for key in keys]
    named = (p if p and parents.count(p) > 1 else key for p, key in zip(parents, keys, strict=True))
    return list(dict.fromkeys(named))
