"""The factors of a comparison: their values in a run, and the keys that they move by themselves."""

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.control.facts import as_text
from records.config import flat
from records.errors import UserError, nearest
from records.fingerprint import of_value
from records.identity import BASE, MEANT, below

NAMED = ("pooler", "attn")
# configuration key -> facts that cannot stay the same when it is changed
MOVES = {
    "model": tuple(BASE),
    "pooler": ("dtypes.head",),  # of a pooler without parameters there is none
    "data": ("data.sha256", "batch_order_sha256", "steps"),
    "trainer.max_steps": ("batch_order_sha256", "steps"),
    "trainer.global_batch_size": ("batch_order_sha256",),
    "trainer.threads": ("threads",),
    "evaluation.autocast": ("evaluation.encoder",),
    "evaluation.max_length_share": ("evaluation.max_length",),
    "evaluation.instructions": ("evaluation.instructions", "evaluation.inputs"),
    "precision": ("precision", "dtypes", "evaluation.encoder"),
    "accelerator": ("device", "kernel", "precision", "dtypes", "evaluation.encoder"),
    "max_length": ("evaluation.max_length",),
}


def factor_values(manifest: Mapping[str, Any], factors: tuple[str, ...]) -> dict[str, str]:
    """Return factor -> its value in this run: a group's name (`pooler`: "eos"), a key's value (`lora.r`: "16")."""
    return {factor: _value(manifest, factor) for factor in factors}


def _value(manifest: Mapping[str, Any], factor: str) -> str:
    if factor in NAMED:
        return str(manifest[factor])
    if factor == "lineage":  # what was done before, not where it lies
        return "+".join(stage["objective"] for stage in manifest.get("lineage") or ()) or "none"
    found: Any = manifest["config"]
    for part in factor.split("."):
        if not isinstance(found, dict) or part not in found:
            return as_text(MEANT.get(factor, MEANT.get(f"{factor}.name", "absent")))
        found = found[part]
    if isinstance(found, dict):
        return str(found.get("name") or of_value(found)[:8])
    return as_text(found)


def moved_by(factor: str) -> tuple[str, ...]:
    """Return the facts that a change of this factor moves by itself: other data have another sha256."""
    related = (facts for key, facts in MOVES.items() if below(key, (factor,)) or below(factor, (key,)))
    return tuple(fact for facts in related for fact in facts)


def check_factors(factors: tuple[str, ...], manifests: Iterable[Mapping[str, Any]]) -> None:
    """Raise `UserError` for a factor that no run's configuration has, with the nearest keys."""
    if "seed" in factors:
        raise UserError("seed cannot be a factor: the scores of one cell are the mean over its seeds. Leave it out.")
    known: set[str] = set()
    for manifest in manifests:
        keys = flat(manifest["config"])
        known |= {*NAMED, *keys, *(key[:end] for key in keys for end, dot in enumerate(key) if dot == ".")}
    unknown = [factor for factor in factors if factor not in known]
    if known and unknown:
        raise UserError(f"factors= names {unknown[0]!r}, a key that no run has. {nearest(unknown[0], known)}")
