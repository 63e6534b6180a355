"""manifest.json: read, written and sealed; the facts that a reviewer asks for; the keys in which two may differ."""

import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from cli.compose import HOME, flat
from cli.errors import UserError
from records.files import of_file, of_value, read_object, write_json

MANIFEST_VERSION = 3
SEAL = "manifest_sha256"
HELD_OUT = "held_out.csv"  # of a run that scores documents: domain, document, bytes, bits_per_byte
LIBRARIES = ("torch", "transformers", "peft", "pytorch-lightning", "hydra-core", "tokenizers", "numpy", "mteb", "scipy")
PACKAGES = ("cli", "records", "corpora", "poolers", "encoders", "training", "evaluation")  # what makes a number
# Facts of the base that a manifest states -> how messages call them. `encoders.identity.base_fingerprints` finds them.
BASE = {
    "base_weights_sha256": "base model",
    "tokenizer_sha256": "tokenizer",
    "base_config_sha256": "configuration of the base model",
}
# Keys of a configuration that reach the layers; head, seed, data and training do not, padding moves float noise alone.
OF_STATES = ("model", "attn", "template", "max_length", "precision", "tf32", "deterministic", "evaluation")
OF_HEADS = ("attn.tokens", "attn.lastlayer_tokens_in_code")  # below `attn`, they tell a head what to read
ABSENT = "absent"
VERSIONS = ("torch", "transformers")  # of the libraries that compute states
# Keys that cannot change a number, so runs that differ in them are the same run.
BOOKKEEPING = (
    *("runs_dir", "cache_dir", "resume", "check", "seed", "study", "axes", "logging", "trainer.progress"),
    *("launcher", "backbone.state_limit"),
)


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


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a run folder in one step."""
    write_json(folder / "manifest.json", sealed({"manifest_version": MANIFEST_VERSION, **manifest}))


def check_base(runs: Mapping[Any, Mapping[str, Any]], fingerprints: Mapping[str, str]) -> None:
    """Refuse a base, or its tokenizer, on which a run was not trained. Raises `UserError`.

    runs: folder -> manifest, of all runs that are loaded on the base. fingerprints: the facts `BASE` of the base.
    """
    for folder, manifest in runs.items():
        for key, what in BASE.items():
            if manifest.get(key) != fingerprints[key]:
                raise UserError(
                    f"{folder} was trained on another {what} ({key}). Put back what "
                    f"model.path={manifest['config']['model']['path']} held, or name runs of this base."
                )


def check_code(folder: Path, manifest: Mapping[str, Any], trusted: bool = False) -> None:
    """Raise `UserError` where the base of a run executes code of its own, which a manifest alone does not allow."""
    if (manifest["config"].get("model") or {}).get("trust_remote_code") and not trusted:
        raise UserError(
            f"The base of {folder} brings code of its own, which its files alone would have executed. If you trust it, "
            "score the run with python evaluate.py run=... model.trust_remote_code=true."
        )


@cache
def code(pooler: str | None = None) -> dict[str, Any]:
    """Return the commit, whether a tracked file differs from it, and the sha256 of the sources of `PACKAGES`.

    Files of poolers that no other imports stay out, so a new design leaves runs comparable; `pooler`: the run's own.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in (HOME / "poolers").glob("*.py")}
    apart = {path for path in texts if f"from poolers.{path.stem} import" not in "".join(texts.values())}
    sources = sorted({path for package in PACKAGES for path in (HOME / package).rglob("*.py")} - apart)
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "sha256": of_value({str(path.relative_to(HOME)): of_file(path) for path in sources}),
        **({"pooler": of_file(HOME / "poolers" / f"{pooler}.py")} if pooler else {}),
    }


def environment(**further: Any) -> dict[str, Any]:
    """Return versions of libraries and the machine: its processor, with `further` facts of it."""
    return {
        "versions": {"python": platform.python_version(), **{p: importlib.metadata.version(p) for p in LIBRARIES}},
        "machine": {"processor": _processor(), **further},
    }


def _git(*words: str) -> str | None:
    if not (HOME / ".git").exists():  # installed: a checkout around the packages is not theirs
        return None
    try:
        done = subprocess.run(["git", *words], cwd=HOME, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None  # an unpacked archive has no history
    return done.stdout.strip()


def _processor() -> str:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return platform.processor()


def below(key: str, names: tuple[str, ...]) -> bool:
    """Return whether `key` is one of `names` or lies below one: `pooler.tokens` lies below `pooler`."""
    return any(key == name or key.startswith(f"{name}.") for name in names)


def of_states(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat keys of a configuration that states depend on."""
    return {k: value for k, value in flat(dict(config)).items() if below(k, OF_STATES) and k not in OF_HEADS}


def numeric_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the flat configuration without the keys that cannot change a number."""
    return {key: value for key, value in flat(config).items() if not below(key, BOOKKEEPING)}


def different_keys(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Return 'key: a -> b' for every key, other than bookkeeping, in which two configurations differ."""
    keys, one, two = {*flat(a), *flat(b)}, numeric_config(a), numeric_config(b)
    first = sorted(keys, key=lambda k: (not k.endswith(".name"), k))  # another option of a group says it best
    return [f"{k}: {x} -> {y}" for k in first if (x := one.get(k, ABSENT)) != (y := two.get(k, ABSENT))]
