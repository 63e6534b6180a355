"""The run and the design of a manifest, once it is known to be whole."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from analysis.manifests.compared_keys import factor_value
from analysis.manifests.designs import Design, Run
from cli.errors import UserError
from records.foreign_files import read_object
from records.manifest import MANIFEST_VERSION, check_seal

NEEDED = ("study", "pooler", "attn", "seed", "status", "config")


def load_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`. Raises UserError (file, line) where there is none."""
    return read_object(path, "Remove the file, or score the task again.")


def read_manifest(path: Path) -> Run:
    """Return the run that `manifest.json` describes.

    Raises UserError for a key that is not there, and for a file that was edited by hand.
    """
    manifest = load_object(path)
    lacking = [key for key in NEEDED if key not in manifest]
    if lacking:
        raise UserError(f"{path} has no key {', '.join(lacking)}. Score the run again with evaluate.py.")
    if manifest.get("manifest_version") == MANIFEST_VERSION:  # older ones have no seal; `check_versions` refuses them
        check_seal(manifest, path)
    return Run(str(manifest["seed"]), path, manifest)


def check_versions(runs: Iterable[Run]) -> None:
    """Raise UserError where runs are of several manifest versions, or of one that this program does not read."""
    first: dict[Any, Path] = {}  # version -> the first manifest of it
    for run in runs:
        first.setdefault(run.manifest.get("manifest_version"), run.path)
    if len(first) > 1:
        named = " and ".join(f"{path} is of version {version}" for version, path in list(first.items())[:2])
        raise UserError(
            f"Manifests of mixed versions: {named}. Their runs were made by different programs and do not compare;"
            f" make all of them with this one, which writes version {MANIFEST_VERSION}."
        )
    for version, path in first.items():
        if version != MANIFEST_VERSION:
            raise UserError(
                f"{path} is of version {version}; this program reads version {MANIFEST_VERSION}."
                " Train and score the run again, or use the program's version that wrote it."
            )


def design_of(runs: Sequence[Run], model: str, factors: tuple[str, ...]) -> Design:
    """Return the design of runs that differ in their seeds: what the first says, and the parameters that one states."""
    study, pooler, attn = (str(runs[0].manifest[key]) for key in ("study", "pooler", "attn"))
    stated = (_trainable(run.manifest.get("parameters")) for run in runs)
    parameters = next((number for number in stated if number is not None), None)
    values = {factor: factor_value(runs[0].manifest, factor) for factor in factors}
    return Design(model, study, pooler, attn, runs[0].trained, parameters, values, tuple(runs))


def _trainable(parameters: Any) -> int | None:
    """Return adapter and head together; None where the manifest does not say."""
    parts = [parameters.get(key) for key in ("adapter", "head")] if isinstance(parameters, dict) else []
    numbers = [number for number in parts if isinstance(number, int)]
    return sum(numbers) if numbers else None
