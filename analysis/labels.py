"""What a design is called in the tables."""

from collections import Counter
from collections.abc import Iterable

from analysis.rows import Design


def labels(designs: Iterable[Design]) -> dict[str, str]:
    """Return model -> label: `<pooler>-<attn>` for our own, the model's full name where two would be called alike."""
    listed = list(designs)
    count = Counter(design.short for design in listed)
    clash = any(count[design.short] > 1 for design in listed if design.pooler)
    return {d.model: d.model if clash and d.pooler else d.short for d in listed}


def names_of(label: str, design: Design) -> set[str]:
    """Return every name by which `models=` may call a design; a bracket-free one for the untrained."""
    return {label, design.model, label.replace(" (untrained)", "-untrained")}
