"""manifest.json: its seal, how it is read, and the facts that a reviewer asks for: code, versions, machine, seeds."""

import importlib.metadata
import json
import platform
import resource
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from cli.errors import UserError
from records.files import read_object
from records.fingerprint import of_file, of_value
from records.streams import stream_seed

MANIFEST_VERSION = 2
SEAL = "manifest_sha256"
HELD_OUT = "held_out.csv"  # of a run that scores documents: domain, document, bytes, bits_per_byte
LIBRARIES = ("torch", "transformers", "peft", "pytorch-lightning", "hydra-core", "tokenizers", "numpy", "mteb", "scipy")
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cli", "records", "corpora", "poolers", "encoders", "training", "evaluation")  # what makes a number


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return `manifest` as it comes back from a file, with `manifest_sha256` over all its other keys.

    The digest shows a slip of the hand; it is no signature, since whoever edits the file can compute it again.
    """
    plain = json.loads(json.dumps({key: value for key, value in manifest.items() if key != SEAL}, default=str))
    return {**plain, SEAL: of_value(plain)}


def check_seal(manifest: Mapping[str, Any], path: Path) -> None:
    """Raise `UserError`, naming the file, where the digest is absent or does not fit what the manifest says."""
    if manifest.get(SEAL) != sealed(manifest)[SEAL]:
        raise UserError(
            f"{path} was edited by hand: its {SEAL} does not fit what it says. Restore the file, or make the run again."
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run folder. Raises `UserError` where it, or a file that it names, is not as written."""
    path, mend = folder / "manifest.json", "Delete the folder and train it again."
    if not path.exists():
        raise UserError(f"{folder} is no run folder: it has no manifest.json. Train the run first.")
    manifest = read_object(path, mend)
    if manifest.get("manifest_version") != MANIFEST_VERSION:
        raise UserError(f"{path} is not of version {MANIFEST_VERSION}, which this program reads. {mend}")
    check_seal(manifest, path)
    for name, sha256 in manifest.get("files", {}).items():  # what a finished run wrote
        if (folder / name).is_file() and of_file(folder / name) != sha256:
            raise UserError(f"{folder / name} is not what the run wrote: its sha256 is another. {mend}")
    return manifest


def check_code(folder: Path, manifest: Mapping[str, Any], trusted: bool = False) -> None:
    """Raise `UserError` where the base of a run executes code of its own, which a manifest alone does not allow."""
    if (manifest["config"].get("model") or {}).get("trust_remote_code") and not trusted:
        raise UserError(
            f"The base of {folder} brings code of its own, which its files alone would have executed. If you trust it, "
            "score the run with python evaluate.py run=... model.trust_remote_code=true."
        )


@cache
def code() -> dict[str, Any]:
    """Return the commit, whether a tracked file differs from it, and the sha256 of all sources of `PACKAGES`."""
    sources = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "sha256": of_value({str(path): of_file(ROOT / path) for path in sources}),
    }


def environment(**further: Any) -> dict[str, Any]:
    """Return versions of libraries and the machine: its processor, with `further` facts of it."""
    return {
        "versions": {"python": platform.python_version(), **{p: importlib.metadata.version(p) for p in LIBRARIES}},
        "machine": {"processor": _processor(), **further},
    }


def stream_seeds(seed: int) -> dict[str, int]:
    """Return the seed of each random stream."""
    return {name: stream_seed(seed, name) for name in ("data", "dropout", "adapter", "head")}


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _git(*words: str) -> str | None:
    if not (ROOT / ".git").exists():  # installed: a checkout around the packages is not theirs
        return None
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None  # an unpacked archive has no history
    return done.stdout.strip()


def _processor() -> str:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return platform.processor()
