"""The effect of one changed key on the score and on batch-invariance, design by design.

    python train.py sweep=divergences seed=0,1,2
    python evaluate.py run='runs/embedded*/*/seed=*'
    python -m benchmarks.sweeps.divergences runs/embedded        # the divergences: docs/reference_divergences.md
    python -m benchmarks.sweeps.divergences runs/embedded pooler. objective.head_lr        # keys that start so

The first argument is the study as it stands in conf/; studies that deviate from it in such a key stand beside it.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

from analysis.grids.formats import count, fraction, signed
from analysis.statistics.wilcoxon import signed_rank
from benchmarks.arguments import folder_first
from benchmarks.speed.work import mixed_docstrings
from benchmarks.sweeps.recipe import main_score
from cli.errors import UserError, guard
from cli.quiet import quieten
from encoders.loading import load_run

DIGEST = re.compile(r"-[0-9a-f]{8}$")  # ends the name of a folder where a value cannot stand in one
Key = tuple[int, str]  # seed, task


@dataclass(frozen=True)
class Cell:
    """One design under one divergence: its scores, and the configuration under which they were made."""

    scores: dict[Key, float]  # main score
    parameters: int
    config: dict[str, Any]
    run: Path  # of the first seed

    def mean_by(self, place: int, shared: Collection[Key]) -> dict[Any, float]:
        """Mean score by seed (place 0) or by task (place 1) over the `shared` keys."""
        groups = defaultdict(list)
        for key in sorted(shared):
            groups[key[place]].append(self.scores[key])
        return {name: mean(values) for name, values in groups.items()}


def main() -> None:
    """Print one row a divergence and design."""
    quieten()
    base, prefixes = folder_first("runs/embedded"), tuple(sys.argv[2:] or ["divergence="])
    usual = cells(base, base)
    if not usual:
        raise UserError(f"There are no scores below {base}/scores. Run evaluate.py on its runs first.")
    print("| changed | design | trainable | seeds | score | difference | p | alone or in a batch |")
    print("|---|---|---|---|---|---|---|---|")
    for name, cell in usual.items():
        print(row("nothing", name, cell, None), flush=True)
    for study in sorted(base.parent.iterdir()):
        words = DIGEST.sub("", study.name).split(",")
        changed = [part for part in words if part not in base.name.split(",")]
        same_study = study.name.partition(",")[0] == base.name.partition(",")[0]
        if same_study and changed and all(part.startswith(prefixes) for part in changed):
            for name, cell in cells(study, base).items():
                print(row(f"`{' '.join(changed)}`", name, cell, usual.get(name)), flush=True)


def cells(study: Path, base: Path) -> dict[str, Cell]:
    """Return design -> cell of a study folder, from its scores; runs that were only scored anew lie in `base`."""
    by_name: dict[str, Cell] = {}
    for folder in sorted((study / "scores" / "results").glob("*")):
        scores: dict[Key, float] = {}
        for revision in sorted(folder.glob("seed=*")):
            manifest = json.loads((revision / "run" / "manifest.json").read_text(encoding="utf-8"))
            if manifest["status"] == "finished":
                scores |= {(manifest["seed"], p.stem): main_score(p) for p in revision.glob("Docs*.json")}
                last = manifest
        if scores:
            cell = f"{last['pooler']}-{last['attn']}"
            place = Path(cell) / f"seed={min(seed for seed, _ in scores)}"
            size = last["parameters"]["adapter"] + last["parameters"]["head"]
            run = study / place if (study / place).is_dir() else base / place
            by_name[cell] = Cell(scores, size, last["config"], run)
    return by_name


def row(changed: str, name: str, cell: Cell, usual: Cell | None) -> str:
    """One line of the table; `difference` is the mean over tasks, +- the standard deviation over seeds."""
    keys = cell.scores.keys() & (usual or cell).scores.keys()
    now = cell.mean_by(0, keys)
    text = f"| {changed} | {name} | {count(cell.parameters)} | {len(now)} | {mean(now.values()):.4f} |"
    if usual is None:
        return f"{text} | | {distance(cell):.1e} |"
    before = usual.mean_by(0, keys)
    differences = [now[seed] - before[seed] for seed in now]
    spread = f" +- {stdev(differences):.4f}" if len(differences) > 1 else ""
    tasks, tasks_before = cell.mean_by(1, keys), usual.mean_by(1, keys)
    test = signed_rank(np.array([[tasks[t] - tasks_before[t] for t in tasks]]))
    return f"{text} {signed(mean(differences))}{spread} | {fraction(float(test.p[0]))} | {distance(cell):.1e} |"


@torch.inference_mode()
def distance(cell: Cell) -> float:
    """Largest difference of an entry of a unit vector between a text alone and the same text in one padded batch."""
    model = load_run(cell.run, cell.config)
    encoder = model.encoder.eval()
    rows = model.tokenizer(mixed_docstrings())
    alone = torch.cat([encoder(model.tokenizer.batch([r])) for r in rows])
    return float((encoder(model.tokenizer.batch(rows)) - alone).abs().max())


if __name__ == "__main__":
    guard(main)
