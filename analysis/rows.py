"""What the readers hand over: one row a score, one `Design` a model."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Design:
    """One thing to compare. `model` is its own name (folder or csv); the factors come from our manifest."""

    model: str
    study: str = ""
    pooler: str = ""
    attn: str = ""
    trained: bool = True
    parameters: int | None = None  # trainable: adapter and head
    factors: dict[str, str] = field(default_factory=dict, hash=False, compare=False)  # factor -> value, in conf order

    @property
    def short(self) -> str:
        """`<pooler>-<attn>` where a manifest named them, else the model's own name."""
        name = f"{self.pooler}-{self.attn}" if self.pooler else self.model
        return name if self.trained else f"{name} (untrained)"


@dataclass(frozen=True)
class Row:
    """One score: of a model, with a seed ("" where none is known), on a task."""

    model: str
    seed: str
    task: str
    score: float
    source: str  # file, or file and line, for error messages
    type: str = ""  # "" where the file does not say
    scored_on: str = ""  # split and subsets, for example "test: default"
    dataset: str = ""  # revision of the data set


@dataclass
class Reading:
    """All that one `scores=` path holds. `types`: task -> type, from a tasks.json."""

    source: str
    rows: list[Row] = field(default_factory=list)
    designs: dict[str, Design] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
