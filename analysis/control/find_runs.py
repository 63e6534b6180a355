"""Runs below folders and globs: run folders with their manifest, and the copies that stand with scores."""

import glob
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.manifests.designs import OURS, RUNNING, Design, Run, design_of, no_manifest, read_manifest
from cli.errors import UserError

Named = list[tuple[str, Run]]  # (model, run)
RUN_NAME = re.compile(r"seed\d+$")
# keys that only the copy with the scores has, or that evaluate.py writes again in it
OF_THE_COPY = ("evaluation", "manifest_sha256", "study")


@dataclass
class Found:
    """`designs`: model (`<study>__<pooler>-<attn>`) -> design with its runs; `left_out`: folders that do not count."""

    designs: dict[str, Design]
    left_out: list[str]


def find_runs(words: Iterable[str], factors: tuple[str, ...]) -> Found:
    """Read every run below the folders and globs.

    Half-finished runs are left out by name. Raises UserError where nothing is found, and for a manifest that is
    missing or edited by hand.
    """
    named: dict[bool, Named] = {False: [], True: []}  # whether it stands with scores -> runs
    left_out: list[str] = []
    for folder in _folders(words):
        scored, parts = bool(OURS.match(folder.name)), folder.absolute().parts
        path = folder / ("run/manifest.json" if scored else "manifest.json")
        if not path.is_file():
            raise no_manifest(folder)
        run = read_manifest(path)
        if run.manifest["status"] == RUNNING:
            left_out.append(f"{path.parent} (not finished)")
        else:
            named[scored].append((parts[-2] if scored else f"{parts[-3]}__{parts[-2]}", run))
    by_model: dict[str, list[Run]] = defaultdict(list)
    for model, run in _joined(left_out, named[False], named[True]):
        by_model[model].append(run)
    if not by_model:
        left = f" Left out: {'; '.join(left_out)}." if left_out else ""
        raise UserError(f"No finished run below {' '.join(words)}.{left} Give run folders, a study, or scores.")
    return Found({model: design_of(those, model, factors) for model, those in by_model.items()}, left_out)


def _folders(words: Iterable[str]) -> list[Path]:
    """Return every folder named as a run's or as its scores', itself or at any depth, in path order."""
    places: list[Path] = []
    for word in words:
        matches = [Path(word)] if Path(word).exists() else sorted(map(Path, glob.glob(word, recursive=True)))
        if not matches:
            raise UserError(f"{word}: there is no such folder. Give run folders, a study's folder, or globs of them.")
        places += [match if match.is_dir() else match.parent for match in matches]
    inside = [p for place in places for p in (place, *sorted(place.rglob("seed*"))) if p.is_dir()]
    return [p for p in dict.fromkeys(inside) if RUN_NAME.match(p.name) or OURS.match(p.name)]


def _joined(left_out: list[str], runs: Named, copies: Named) -> Iterator[tuple[str, Run]]:
    """Yield each run once: the copy with its scores, which also says how it was scored, stands for it."""
    trained = {(model, run.seed): run for model, run in runs}
    seen: dict[tuple[str, str], Path] = {}
    for model, copy in copies:
        key, folder = (model, copy.seed), copy.path.parents[1]
        if key in trained and _core(trained[key].manifest) != _core(copy.manifest):
            left_out.append(f"{folder} (scores of another training than {trained[key].path.parent})")
        elif key in seen:
            left_out.append(f"{folder} (a second scoring of {seen[key]})")
        else:
            seen[key] = folder
            yield model, copy
    yield from ((model, run) for model, run in runs if (model, run.seed) not in seen)


def _core(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the keys that run and copy share: the copy may have been scored with other keys of `evaluation`."""
    core = {key: value for key, value in manifest.items() if key not in OF_THE_COPY}
    return core | {"config": {key: value for key, value in manifest["config"].items() if key != "evaluation"}}
