"""A run's manifest beside its scores -> the design and the seed."""

from pathlib import Path
from typing import Any

from analysis.json_file import load_object
from analysis.rows import Design
from records.errors import UserError


def read_manifest(path: Path, model: str) -> tuple[Design, str]:
    """Return the design and the seed that `manifest.json` names. Raises UserError for a key that is not there."""
    manifest = load_object(path)
    lacking = [key for key in ("study", "pooler", "attn", "seed", "status") if key not in manifest]
    if lacking:
        raise UserError(f"{path} has no key {', '.join(lacking)}. Score the run again with evaluate.py.")
    design = Design(
        model=model,
        study=str(manifest["study"]),
        pooler=str(manifest["pooler"]),
        attn=str(manifest["attn"]),
        trained=manifest["status"] != "untrained",
        parameters=_trainable(manifest.get("parameters")),
    )
    return design, str(manifest["seed"])


def _trainable(parameters: Any) -> int | None:
    """Adapter and head together; None where the manifest does not say."""
    if not isinstance(parameters, dict):
        return None
    counts = [parameters.get(key) for key in ("adapter", "head")]
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if known else None
