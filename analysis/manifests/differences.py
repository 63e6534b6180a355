"""Two designs -> the keys in which they differ beside the factors, run against run."""

from dataclasses import dataclass, field
from itertools import combinations

from analysis.manifests.compared_keys import SEED_BOUND, moved_by
from analysis.manifests.designs import Design, Run
from analysis.names import by_number
from records.manifest import below

ABSENT = "absent"
BY_TASK = ("evaluation.inputs", "evaluation.tasks")  # of the tasks that a run was scored on; the tables leave out gaps
Pairs = list[tuple[str, str]]


@dataclass
class Differences:
    """The differences among designs. A pair is of labels."""

    refused: dict[str, str] = field(default_factory=dict)  # key no factor covers -> its first seed, if it goes by seed
    confounded: dict[str, Pairs] = field(default_factory=dict)  # key below a factor that itself agrees -> its pairs
    same: Pairs = field(default_factory=list)  # those that agree in everything

    def refuse(self, key: str, seed: str = "") -> None:
        """Record a difference that no factor covers."""
        self.refused.setdefault(key, seed if below(key, SEED_BOUND) else "")


def compare(designs: dict[str, Design], factors: tuple[str, ...]) -> Differences:
    """Compare every pair of designs that have manifests, and the seeds within each. designs: label -> design."""
    differences = Differences()
    with_runs = {label: design for label, design in designs.items() if design.runs}
    for design in with_runs.values():
        for run in design.runs[1:]:
            for key in run_differences(design.runs[0], run):
                differences.refuse(key)
    for (one, a), (two, b) in combinations(with_runs.items(), 2):
        _compare_pair(differences, (one, two), a, b, factors)
    if with_runs and len(with_runs) < len(designs):
        differences.refuse("manifest")
    return differences


def _compare_pair(
    differences: Differences, pair: tuple[str, str], a: Design, b: Design, factors: tuple[str, ...]
) -> None:
    varying = {f for f in factors if a.factors[f] != b.factors[f]}
    moved = tuple(fact for f in varying for fact in moved_by(f))
    distinct = bool(varying) or a.trained != b.trained
    theirs = {run.seed: run for run in b.runs}
    shared = [(run, theirs[run.seed]) for run in a.runs if run.seed in theirs]
    keys: set[str] = set()
    for one, other in shared or [(a.runs[0], b.runs[0])]:  # seed by seed, or else the first of each
        differing = run_differences(one, other)
        keys |= differing
        for key in sorted(differing):
            if distinct and below(key, factors):
                if not below(key, tuple(varying)) and pair not in differences.confounded.setdefault(key, []):
                    differences.confounded[key].append(pair)
            elif not below(key, moved):
                differences.refuse(key, one.seed)
    if a.trained == b.trained and _seeds(a) != _seeds(b):
        differences.refuse("seed")
        keys.add("seed")
    if not distinct and not keys:
        differences.same.append(pair)


def _seeds(design: Design) -> set[str]:
    return {run.seed for run in design.runs}


def run_differences(a: Run, b: Run) -> set[str]:
    """Return the keys in which two runs differ; one that a single run has is such a key.

    With an untrained reference only what both state is compared: it has no data, no order and no optimizer. Of
    `head.*` only what no pooler takes over is compared, since `pooler.*` holds the sizes that were built.
    """
    one, two = a.profile, b.profile
    both = a.trained and b.trained
    keys = one.keys() | two.keys() if both else one.keys() & two.keys()
    differing = {key for key in keys if one.get(key) != two.get(key)}
    if a.seed != b.seed or not both:
        differing = {key for key in differing if not below(key, SEED_BOUND)}
    return {key for key in differing if not _idle(key, one, two)}


def _idle(key: str, one: dict[str, str], two: dict[str, str]) -> bool:
    """Tell whether a difference says nothing: one run was not scored on `key`, or the pooler's own key tells more."""
    if below(key, ("evaluation",)) and not (key in one and key in two):
        return below(key, BY_TASK) or not (_scored(one) and _scored(two))
    built = f"pooler.{key.removeprefix('head.')}"
    return key.startswith("head.") and (built in one or built in two)


def _scored(profile: dict[str, str]) -> bool:
    """Tell whether a manifest says how its run was scored; the configuration's keys below `evaluation` are wishes."""
    return "evaluation.mteb" in profile


def values_of(key: str, designs: dict[str, Design], seed: str = "") -> dict[str, list[str]]:
    """Return value -> the designs that have it, in their order; `label (seed n)` where the seeds of one differ."""
    groups: dict[str, list[str]] = {}
    for label, design in designs.items():
        by_seed = {run.seed: _read(key, design, run) for run in design.runs if not seed or run.seed == seed}
        by_seed = by_seed or {"": ABSENT if key == "manifest" else ""}
        alike = len(set(by_seed.values())) == 1
        units = {label if alike else f"{label} (seed {of_seed})": value for of_seed, value in by_seed.items()}
        for unit, value in units.items():
            if value:
                groups.setdefault(value, []).append(unit)
    return groups


def _read(key: str, design: Design, run: Run) -> str:
    """Return one value; "" where a run need not have the key."""
    if key == "seed":
        return ", ".join(by_number(_seeds(design)))
    if key == "manifest":
        return "present"
    unsaid = not run.trained or (below(key, ("evaluation",)) and (below(key, BY_TASK) or not _scored(run.profile)))
    return run.profile.get(key, "" if unsaid else ABSENT)
