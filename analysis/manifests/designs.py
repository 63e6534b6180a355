"""Runs and designs, as their manifests say."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.manifests.compared_keys import factor_value, profile
from cli.errors import UserError
from records.files import read_object
from records.manifest import MANIFEST_VERSION, check_seal

NOTHING = ("absent", "none", "null")  # values of a factor that is not there: a name leaves them out
UNTRAINED = " (untrained)"  # ends the name of a reference
RUNNING = "running"  # the status of a run that is not finished
OURS = re.compile(r"seed\d+@[0-9a-f]{8}(-\w+)?$")  # as evaluate.py names the folder of a run's scores


@dataclass(frozen=True)
class Run:
    """The manifest of a run, from its folder or from the copy with its scores."""

    seed: str
    path: Path
    manifest: dict[str, Any] = field(repr=False)

    @property
    def trained(self) -> bool:
        """Tell whether it is more than an untrained reference."""
        return bool(self.manifest["status"] != "untrained")

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
    factors: dict[str, str] = field(default_factory=dict)  # factor -> its value, pooler and attn by name
    runs: tuple[Run, ...] = ()  # one per seed; none for scores without a manifest

    @property
    def parameters(self) -> int | None:
        """Trainable parameters, of adapter and head together; None where no manifest says."""
        stated = (run.manifest["parameters"] for run in self.runs if "parameters" in run.manifest)
        return next((int(parts["adapter"] + parts["head"]) for parts in stated), None)


def read_manifest(path: Path) -> Run:
    """Return the run that a manifest.json describes.

    Raises `UserError` for a manifest of another version of this program, and for one that was edited by hand.
    """
    manifest = read_object(path, "Score the run again with evaluate.py.")
    version = manifest.get("manifest_version")
    if version != MANIFEST_VERSION:
        raise UserError(
            f"{path} is of version {version}; this program reads version {MANIFEST_VERSION}."
            " Train and score the run again."
        )
    check_seal(manifest, path)
    return Run(str(manifest["seed"]), path, manifest)


def no_manifest(folder: Path) -> UserError:
    """Return the error for a run, or scores of one, whose manifest is gone."""
    return UserError(f"{folder} has no manifest.json, so nothing shows what was run. Make it again, or move it away.")


def design_of(runs: Sequence[Run], model: str, factors: Sequence[str]) -> Design:
    """Return the design of runs that differ in their seeds: what the first says."""
    first = runs[0]
    study, pooler, attn = (str(first.manifest[key]) for key in ("study", "pooler", "attn"))
    values = {factor: factor_value(first.manifest, factor) for factor in factors}
    return Design(model, study, pooler, attn, first.trained, values, tuple(runs))
