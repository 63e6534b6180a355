"""Two designs -> the keys in which they differ beside the factors, run against run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from analysis.manifests.compared_keys import SEED_BOUND, as_text, moved_by
from analysis.manifests.designs import Design, Run
from analysis.names import by_number
from records.identity import MEANT, below

ABSENT = "absent"
MODULES = "code.modules"
BY_TASK = ("evaluation.inputs", "evaluation.tasks")  # of the tasks that a run was scored on; the tables leave out gaps
Pairs = dict[str, list[tuple[str, str]]]


@dataclass
class Differences:
    """The differences among designs. Keys map to the pairs of labels between which they differ."""

    refused: Pairs = field(default_factory=dict)  # neither a factor nor below one
    confounded: Pairs = field(default_factory=dict)  # below a factor that itself agrees, as `pooler.tokens` may
    same: list[tuple[str, str]] = field(default_factory=list)  # pairs of labels that agree in everything
    seed_of: dict[str, str] = field(default_factory=dict)  # key that goes by seed -> the first at which it differs

    def refuse(self, key: str, pair: tuple[str, str], seed: str = "") -> None:
        """Record a difference that no factor covers."""
        pairs = self.refused.setdefault(key, [])
        if pair not in pairs:
            pairs.append(pair)
        if below(key, SEED_BOUND):
            self.seed_of.setdefault(key, seed)


def compare(designs: dict[str, Design], factors: tuple[str, ...]) -> Differences:
    """Compare every pair of designs that have manifests, and the seeds within each. designs: label -> design."""
    found = Differences()
    with_runs = {label: design for label, design in designs.items() if design.runs}
    for label, design in with_runs.items():
        for run in design.runs[1:]:
            for key in run_differences(design.runs[0], run):
                found.refuse(key, (label, label))
    for (one, a), (two, b) in combinations(with_runs.items(), 2):
        _compare_pair(found, (one, two), a, b, factors)
    for label in sorted(with_runs.keys() ^ designs.keys()):
        for other in with_runs:
            found.refuse("manifest", (label, other))
    return found


def _compare_pair(found: Differences, pair: tuple[str, str], a: Design, b: Design, factors: tuple[str, ...]) -> None:
    varying = {f for f in factors if a.factors[f] != b.factors[f]}
    distinct = bool(varying) or a.trained != b.trained
    keys: set[str] = set()
    for seed, differing in _by_seed(a, b, varying):
        for key in differing:
            keys.add(key)
            if distinct and below(key, factors):
                if not below(key, tuple(varying)) and pair not in found.confounded.setdefault(key, []):
                    found.confounded[key].append(pair)
            elif not below(key, tuple(fact for f in varying for fact in moved_by(f))):
                found.refuse(key, pair, seed)
    if a.trained == b.trained and _seeds(a) != _seeds(b):
        found.refuse("seed", pair)
        keys.add("seed")
    if not distinct and not keys:
        found.same.append(pair)


def _by_seed(a: Design, b: Design, varying: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield (seed, differing keys) for each seed that both have; without one, for the first of each."""
    theirs = {run.seed: run for run in b.runs}
    shared = [(run, theirs[run.seed]) for run in a.runs if run.seed in theirs]
    for mine, other in shared or [(a.runs[0], b.runs[0])]:
        yield mine.seed, run_differences(mine, other, varying)


def _seeds(design: Design) -> set[str]:
    return {run.seed for run in design.runs}


def run_differences(a: Run, b: Run, varying: Iterable[str] = ()) -> set[str]:
    """Return the keys in which two runs differ; one that a single run has is such a key.

    varying: the factors that differ, which choose modules of their own. With an untrained reference only what both
    state is compared: it has no data, no order and no optimizer. Of `head.*` only what no pooler takes over is
    compared, since `pooler.*` holds the sizes that were built.
    """
    one, two = a.profile, b.profile
    both = a.trained and b.trained
    keys = one.keys() | two.keys() if both else one.keys() & two.keys()
    differing = {key for key in keys if _meant(key, one) != _meant(key, two)}
    if a.seed != b.seed or not both:
        differing = {key for key in differing if not below(key, SEED_BOUND)}
    return {key for key in differing if not (_idle(key, one, two) or _chosen(key, a, b, varying))}


def _meant(key: str, profile: dict[str, str]) -> str | None:
    """Return the value of a key, where it is absent the one it had before there was such a key."""
    return profile.get(key, as_text(MEANT[key]) if key in MEANT else None)


def _idle(key: str, one: dict[str, str], two: dict[str, str]) -> bool:
    """Tell whether a difference says nothing: one run was not scored on `key`, or the pooler's own key tells more."""
    if below(key, ("evaluation",)) and not (key in one and key in two):
        return below(key, BY_TASK) or not (_scored(one) and _scored(two))
    built = f"pooler.{key.removeprefix('head.')}"
    return key.startswith("head.") and (built in one or built in two)


def _scored(profile: dict[str, str]) -> bool:
    """Tell whether a manifest says how its run was scored; the configuration's keys below `evaluation` are wishes."""
    return "evaluation.mteb" in profile


def _chosen(key: str, a: Run, b: Run, varying: Iterable[str]) -> bool:
    """Tell whether a module is loaded by one run alone because a factor that varies chose it: the pooler's own file.

    Manifests that do not say what chose a module list all poolers that the process had loaded; such a name alone says
    nothing.
    """
    if not below(key, (MODULES,)) or (key in a.profile and key in b.profile):
        return False
    module, code = key.removeprefix(f"{MODULES}."), (a if key in a.profile else b).manifest["code"]
    if "chosen" not in code:
        return module.startswith("poolers.")
    groups = tuple(group for group, modules in code["chosen"].items() if module in modules)
    return any(below(factor, groups) for factor in varying)


def values_of(key: str, designs: dict[str, Design], seed: str = "") -> dict[str, list[str]]:
    """Return value -> the designs that have it, in their order; `label (seed n)` where the seeds of one differ."""
    groups: dict[str, list[str]] = {}
    for label, design in designs.items():
        by_seed = {run.seed: _read(key, design, run) for run in design.runs if not seed or run.seed == seed}
        by_seed = by_seed or {"": ABSENT if key == "manifest" else ""}
        alike = len(set(by_seed.values())) == 1
        for of_seed, value in by_seed.items():
            unit = label if alike else f"{label} (seed {of_seed})"
            if value and unit not in groups.setdefault(value, []):
                groups[value].append(unit)
    return {value: units for value, units in groups.items() if units}


def _read(key: str, design: Design, run: Run) -> str:
    """Return one value; "" where a run need not have the key."""
    if key == "seed":
        return ", ".join(by_number(_seeds(design)))
    if key == "manifest":
        return "present"
    unsaid = not run.trained or (below(key, ("evaluation",)) and (below(key, BY_TASK) or not _scored(run.profile)))
    return run.profile.get(key, "" if unsaid else as_text(MEANT.get(key, ABSENT)))
