"""`python -m analysis.control runs/...`: find runs below folders and globs, and print the audit of their manifests."""

import glob
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from analysis.manifests.designs import OURS, RUNNING, Design, Run, design_of, no_manifest, read_manifest
from cli.errors import UserError, guard, nearest

USAGE = """\
Audit of runs: which factors vary, what else differs, which streams are identical.

usage: python -m analysis.control <folder or glob> ... [factors=[pooler,attn]] [allow=[key,...]]

Folders of any height: a run, a study, all of runs/, the scores of a study. factors: what cells may differ in, seeds
pooled. allow: other keys that may differ all the same; a key covers what lies below it.

examples:
  python -m analysis.control runs/bundled
  python -m analysis.control 'runs/bundled*/*/seed*' factors=[pooler,attn,pooler.tokens]
  python -m analysis.control runs/bundled allow=[threads,versions]

exit code: 0 controlled, 2 not controlled or something that you can mend (one line says what)."""
LISTS = {"factors": ("pooler", "attn"), "allow": ()}
Named = list[tuple[str, Run]]  # (model, run)
RUN_NAME = re.compile(r"seed\d+$")
# keys that only the copy with the scores has, or that evaluate.py writes again in it
OF_THE_COPY = ("evaluation", "manifest_sha256", "study")
OF_SCORING = ("evaluation", "accelerator")  # keys of a run that evaluate.py replaces by its own


def main() -> None:
    """Print the audit; a study that is not controlled ends with one line and exit code 2."""
    words = sys.argv[1:]
    if {"-h", "--help", "help"} & set(words):
        print(USAGE)
        return
    places, factors, allow = read_words(words)

    from analysis.control.audit import audit, verdict
    from analysis.control.rule import refusal

    text, control, cells = audit(*find_runs(places, factors), factors, allow)
    print(text, flush=True)
    if control.refused:
        raise UserError(refusal(control, cells, factors, allow))
    print(verdict(cells, factors, control))


def read_words(words: list[str]) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Return (folders and globs, factors, allow). Raises UserError where there is no folder, or for another key."""
    places, lists = [], dict(LISTS)
    for word in words:
        key, equals, value = word.partition("=")
        if key in LISTS and equals:
            lists[key] = tuple(name.strip() for name in value.strip("[]").split(",") if name.strip())
        elif equals and key.isidentifier() and key != "seed" and not Path(word).exists():
            raise UserError(f"There is no key {key!r}. {nearest(key, LISTS)}")
        else:
            places.append(word)
    if not places:
        raise UserError("Which runs? Write python -m analysis.control <runs folder or glob> ...")
    if not lists["factors"]:
        raise UserError("factors= is an empty list. Leave it out to compare by pooler and attn.")
    return places, lists["factors"], lists["allow"]


def find_runs(words: Iterable[str], factors: tuple[str, ...]) -> tuple[dict[str, Design], list[str]]:
    """Read every run below the folders and globs: run folders, and the copies that stand with scores.

    Return model (`<study>__<pooler>-<attn>`) -> design with its runs, and the folders that do not count.

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
    return {model: design_of(those, model, factors) for model, those in by_model.items()}, left_out


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
    """Return the keys that run and copy share: the copy may have been scored with other keys, on another device."""
    core = {key: value for key, value in manifest.items() if key not in OF_THE_COPY}
    return core | {"config": {key: value for key, value in manifest["config"].items() if key not in OF_SCORING}}


if __name__ == "__main__":
    guard(main)
