"""What each fault of the published code does to the score and to batch-invariance: docs/reference_divergences.md.

    python train.py sweep=divergences seed=0,1,2
    python evaluate.py run='runs/embedded*/*/seed=*'
    python -m benchmarks.divergences runs/embedded

The argument is the study without any divergence; studies of the same name with `divergence=<name>` stand beside it.
"""

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

from analysis.formats import fraction, signed
from analysis.wilcoxon import signed_rank
from corpora.docstrings import read_docstrings
from encoders.loading import load_run
from records.errors import UserError, guard
from records.quiet import quieten

TEXTS = 48
Scores = dict[tuple[int, str], float]  # (seed, task) -> main score


@dataclass(frozen=True)
class Cell:
    """One design under one divergence: its scores, and the configuration under which they were made."""

    scores: Scores
    config: dict[str, Any]
    run: Path  # of the first seed

    @property
    def per_task(self) -> dict[str, float]:
        """Task -> mean over seeds."""
        tasks = defaultdict(list)
        for (_, task), score in self.scores.items():
            tasks[task].append(score)
        return {task: mean(values) for task, values in tasks.items()}

    def per_seed(self) -> dict[int, float]:
        """Seed -> mean over tasks."""
        seeds = defaultdict(list)
        for (seed, _), score in self.scores.items():
            seeds[seed].append(score)
        return {seed: mean(values) for seed, values in seeds.items()}


def main() -> None:
    """Print one row a divergence and design."""
    quieten()
    base = Path(sys.argv[1])
    paper = cells(base, base)
    if not paper:
        raise UserError(f"There are no scores below {base}/scores. Run evaluate.py on its runs first.")
    print("| divergence | design | seeds | score | difference | p | alone or in a batch |")
    print("|---|---|---|---|---|---|---|")
    for name, cell in paper.items():
        print(row("none (`profile=paper`)", name, cell, None), flush=True)
    for study in sorted(base.parent.iterdir()):
        parts = study.name.split(",")
        named = [part for part in parts if part.startswith("divergence=")]
        if not named or [part for part in parts if part not in named] != base.name.split(","):
            continue
        for name, cell in cells(study, base).items():
            if name in paper:
                print(row(f"`{named[0].partition('=')[2]}`", name, cell, paper[name]), flush=True)


def cells(study: Path, base: Path) -> dict[str, Cell]:
    """Return design -> cell of a study folder, from its scores; runs that were only scored anew lie in `base`."""
    found: dict[str, Cell] = {}
    for folder in sorted((study / "scores" / "results").glob("*")):
        scores: Scores = {}
        for revision in sorted(folder.glob("seed=*")):
            manifest = json.loads((revision / "run" / "manifest.json").read_text(encoding="utf-8"))
            if manifest["status"] == "finished":
                scores |= {(manifest["seed"], p.stem): main_score(p) for p in revision.glob("Docs*.json")}
                last = manifest
        if scores:
            cell = f"{last['pooler']}-{last['attn']}"
            place = Path(cell) / f"seed={min(seed for seed, _ in scores)}"
            found[cell] = Cell(scores, last["config"], study / place if (study / place).is_dir() else base / place)
    return found


def row(divergence: str, name: str, cell: Cell, paper: Cell | None) -> str:
    """One line of the table; `difference` is the mean over tasks, +- the standard deviation over seeds."""
    seeds = cell.per_seed()
    text = f"| {divergence} | {name} | {len(seeds)} | {mean(seeds.values()):.4f} |"
    if paper is None:
        return f"{text} | | {distance(cell):.1e} |"
    shared = sorted(seeds.keys() & paper.per_seed().keys())
    differences = [seeds[s] - paper.per_seed()[s] for s in shared]
    spread = f" +- {stdev(differences):.4f}" if len(shared) > 1 else ""
    tasks = sorted(cell.per_task.keys() & paper.per_task.keys())
    test = signed_rank(np.array([[cell.per_task[t] - paper.per_task[t] for t in tasks]]))
    return f"{text} {signed(mean(differences))}{spread} | {fraction(float(test.p[0]))} | {distance(cell):.1e} |"


@torch.inference_mode()
def distance(cell: Cell) -> float:
    """Largest difference of an entry of a unit vector between a text alone and the same text in one padded batch."""
    model = load_run(cell.run, cell.config)
    docstrings = read_docstrings(["polars"])
    texts = [d.text for d in docstrings if len(d.body) > 40][:: max(1, len(docstrings) // TEXTS)][:TEXTS]
    encoder = model.encoder.eval()
    rows = model.tokenizer(texts)
    alone = torch.cat([encoder(model.tokenizer.batch([r])) for r in rows])
    return float((encoder(model.tokenizer.batch(rows)) - alone).abs().max())


def main_score(path: Path) -> float:
    """Mean main score over splits and subsets of an mteb result."""
    scores = json.loads(path.read_text(encoding="utf-8"))["scores"]
    return mean(entry["main_score"] for split in scores.values() for entry in split)


if __name__ == "__main__":
    guard(main)
