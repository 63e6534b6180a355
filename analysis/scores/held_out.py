"""Held-out documents of a run of `objective=next_token`: each a task of its domain, scored by the bits it saves."""

import csv
from pathlib import Path

from analysis.manifests.designs import Row, ScoreSource, design_of, read_manifest
from analysis.settings import Settings
from cli.errors import UserError
from records.fingerprint import of_file
from records.manifest import HELD_OUT

BITS = 8  # of a byte


def is_run_of_documents(path: Path) -> bool:
    """Tell whether `path` is the folder of a run that scores documents, finished or not."""
    manifest = path / "manifest.json"
    return manifest.is_file() and read_manifest(manifest).manifest["config"]["objective"]["name"] == "next_token"


def read_held_out(path: Path, settings: Settings) -> ScoreSource:
    """Read a run folder. Task: `<domain>/<document>`; type: domain; score: 1 - bits per byte / 8, the space saved.

    Raises UserError where the file is not there, or not the one that the run wrote.
    """
    source, run, file = ScoreSource(str(path)), read_manifest(path / "manifest.json"), path / HELD_OUT
    if run.manifest["status"] != "finished":
        source.notes.append(f"Left out, since the run was not finished: {path}.")
        return source
    if settings.seeds and run.seed not in settings.seeds:
        source.other_seeds.add(run.seed)
        return source
    if not file.is_file() or of_file(file) != run.manifest.get("files", {}).get(HELD_OUT):
        state = "is not the file that the run wrote" if file.is_file() else "is not there"
        raise UserError(f"{file} {state}. Delete the run folder and train it again.")
    model = "/".join(path.absolute().parts[-3:-1])
    source.designs[model] = design_of([run], model, settings.factors)
    for number, row in enumerate(csv.DictReader(file.read_text(encoding="utf-8").splitlines()), start=2):
        task, saved = f"{row['domain']}/{row['document']}", 1 - float(row["bits_per_byte"]) / BITS
        source.rows.append(Row(model, run.seed, task, saved, f"{file}, line {number}", row["domain"]))
    return source
