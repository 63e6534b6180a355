"""Values that scores and manifests are read into: a `Row` per score, a `Design` per model, a `Run` per manifest."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.manifests.compared_keys import profile

NOTHING = ("absent", "none", "null")  # values of a factor that is not there: a name leaves them out
UNTRAINED = " (untrained)"  # ends the name of a reference


@dataclass(frozen=True)
class Run:
    """The manifest of a run, from its folder or from the copy with its scores."""

    seed: str
    path: Path
    manifest: dict[str, Any] = field(repr=False)

    @property
    def trained(self) -> bool:
        """Tell whether it is more than an untrained reference."""
        return self.manifest["status"] != "untrained"

    @cached_property
    def profile(self) -> dict[str, str]:
        """The keys that the control rule compares, as text."""
        return profile(self.manifest)


@dataclass(frozen=True)
class Design:
    """The thing that is compared. `model` is its own name (folder or csv); the factors come from our manifest."""

    model: str
    study: str = ""
    pooler: str = ""
    attn: str = ""
    trained: bool = True
    parameters: int | None = None  # trainable: adapter and head
    factors: dict[str, str] = field(default_factory=dict)  # factor -> its value, pooler and attn by name
    runs: tuple[Run, ...] = ()  # one per seed; none for scores without a manifest
    also: tuple[str, ...] = ()  # models of other studies whose seeds belong to the same design
    own_name: str = ""  # its label where `rename=` gave it another

    def named(self, further: dict[str, str], usual: dict[str, str], runs: dict[str, str]) -> str:
        """Return `<pooler>-<attn>`, or the model's own name, with the values of further factors: `eos-bi tokens=mean`.

        A factor that a design lacks, such as lineage=none, is not named. further: key -> its word in the table;
        usual: key -> the value that needs no naming; runs: a value that names runs -> what tells them apart.
        """
        name = f"{self.pooler}-{self.attn}" if self.pooler else self.model
        for key, word in further.items():
            value = self.factors.get(key, "absent")
            name += "" if value in NOTHING or value == usual.get(key) else f" {word}={runs.get(value, value)}"
        return name if self.trained or name.endswith(UNTRAINED) else f"{name}{UNTRAINED}"


@dataclass(frozen=True)
class Row:
    """The score of a model, with a seed ("" where none is known), on a task."""

    model: str
    seed: str
    task: str
    score: float
    source: str  # file, or file and line, for error messages
    type: str = ""  # "" where the file does not say
    split: str = ""  # what it is a score of, "" where the source does not say; of several: validation;test
    subsets: str = ""  # of several, which are averaged: en-en;es-es
    dataset: str = ""  # revision of the data set
    problem: str = ""  # why the score, NaN then, cannot be used; an error if the row is among those compared
    lacking: bool = False  # the problem is that what counts was not scored: a hole


@dataclass
class ScoreSource:
    """The contents of one `scores=` path. `types`: task -> type, from a tasks.json."""

    path: str
    rows: list[Row] = field(default_factory=list)
    designs: dict[str, Design] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    other_seeds: set[str] = field(default_factory=set)  # those that seeds= left out
    without_seeds: list[str] = field(default_factory=list)  # names of designs that seeds= left out whole
    idle: frozenset[str] = frozenset()  # of split=, subsets=, revision= those that nothing here can be chosen by

    @property
    def name(self) -> str:
        """The last part of its path, for notes: whoever gets a report has no use for its author's folders."""
        return Path(self.path).name
