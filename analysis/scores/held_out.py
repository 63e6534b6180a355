"""Held-out documents of a run of `objective=next_token`: each a task of its domain, scored by the bits it saves."""

from pathlib import Path

import pandas as pd

from analysis.manifests.designs import RUNNING, design_of, read_manifest
from analysis.scores.source import Source, table
from analysis.settings import Settings
from cli.errors import UserError
from records.fingerprint import of_file
from records.manifest import HELD_OUT

BITS = 8  # of a byte


def is_run_of_documents(path: Path) -> bool:
    """Tell whether `path` is the folder of a run that scores documents, finished or not."""
    manifest = path / "manifest.json"
    return manifest.is_file() and read_manifest(manifest).manifest["config"]["objective"]["name"] == "next_token"


def read_held_out(path: Path, settings: Settings) -> Source:
    """Read a run folder. Task: `<domain>/<document>`; type: domain; score: 1 - bits per byte / 8, the space saved.

    Raises UserError where the file is not there, or not the one that the run wrote.
    """
    run, file, model = read_manifest(path / "manifest.json"), path / HELD_OUT, "/".join(path.absolute().parts[-3:-1])
    if run.manifest["status"] == RUNNING:
        return Source(path, table([]), {}, notes=(f"Left out, since the run was not finished: {path}.",))
    if not file.is_file() or of_file(file) != run.manifest.get("files", {}).get(HELD_OUT):
        raise UserError(f"{file} is not the file that the run wrote. Delete the run folder and train it again.")
    documents = pd.read_csv(file, dtype={"document": str}, float_precision="round_trip")
    frame = pd.DataFrame({"task": documents["domain"] + "/" + documents["document"], "type": documents["domain"]})
    frame = frame.assign(model=model, seed=run.seed, score=1 - documents["bits_per_byte"] / BITS, source=str(file))
    return Source(path, table(frame), {model: design_of([run], model, settings.factors)})
