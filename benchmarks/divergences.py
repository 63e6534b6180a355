"""The effect of each divergence of the published code on the score and on batch-invariance, design by design.

    python train.py -m 'reference_fault=glob(*)' design=model4,model5 seed=0,1,2
    python evaluate.py run='runs/bundled*/*/seed*'
    python -m benchmarks.divergences runs/bundled
    python -m benchmarks.divergences runs/bundled pooler. objective.head_lr        # other keys that start so

The argument is the study as it stands in conf/; studies that deviate from it in such a key stand beside it.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from analysis.formats import Unit, count, p_text
from analysis.scores.mteb_results import read_task
from analysis.statistics.wilcoxon import signed_rank
from cli.errors import UserError, guard, quieten
from corpora.docstrings import read_docstrings
from encoders.loading import load_run

DIGEST = re.compile(r"-[0-9a-f]{8}$")  # ends the name of a folder where a value cannot stand in one
TEXTS = 48  # summaries and docstrings of polars in turn: of many lengths, so that a batch of them has padding


@dataclass(frozen=True)
class Cell:
    """One design under one divergence: its scores, and the configuration under which they were made."""

    scores: pd.Series  # main score by seed and task
    parameters: int
    config: dict[str, Any]
    run: Path  # of the first seed


def main() -> None:
    """Print one row per divergence and design."""
    quieten()
    base, prefixes = Path(*sys.argv[1:2] or ["runs/bundled"]), tuple(sys.argv[2:] or ["reference_fault-"])
    usual = cells(base, base)
    if not usual:
        raise UserError(f"There are no scores below {base}/scores. Run evaluate.py on its runs first.")
    print("| changed | design | trainable | seeds | score | difference | p | alone or in a batch |")
    print("|---|---|---|---|---|---|---|---|")
    for name, cell in usual.items():
        print(row("nothing", name, cell, None), flush=True)
    for study in sorted(base.parent.iterdir()):
        changed = [part for part in DIGEST.sub("", study.name).split("+") if part not in base.name.split("+")]
        same_study = study.name.partition("+")[0] == base.name.partition("+")[0]
        if same_study and changed and all(part.startswith(prefixes) for part in changed):
            for name, cell in cells(study, base).items():
                print(row(f"`{' '.join(changed)}`", name, cell, usual.get(name)), flush=True)


def cells(study: Path, base: Path) -> dict[str, Cell]:
    """Return design -> cell of a study folder, from its scores; runs that were only scored anew lie in `base`."""
    by_name: dict[str, Cell] = {}
    for folder in sorted((study / "scores" / "results").glob("*")):
        scores: dict[tuple[int, str], float] = {}
        for revision in sorted(folder.glob("seed*")):
            manifest = json.loads((revision / "run" / "manifest.json").read_text(encoding="utf-8"))
            if manifest["status"] == "finished":
                rows = [read_task(path, study.name, "") for path in revision.glob("Docs*.json")]
                scores |= {(manifest["seed"], row.task): row.score for row in rows}
                last = manifest
        if scores:
            cell = f"{last['pooler']}-{last['attn']}"
            place = Path(cell) / f"seed{min(seed for seed, _ in scores)}"
            size = last["parameters"]["adapter"] + last["parameters"]["head"]
            run = study / place if (study / place).is_dir() else base / place
            by_name[cell] = Cell(pd.Series(scores).sort_index(), size, last["config"], run)
    return by_name


def row(changed: str, name: str, cell: Cell, usual: Cell | None) -> str:
    """One line of the table; `difference` is the mean over tasks, +- the standard deviation over seeds."""
    both = pd.concat([cell.scores, (usual or cell).scores], axis=1, join="inner")
    seeds = both.groupby(level=0).mean()
    text = f"| {changed} | {name} | {count(cell.parameters)} | {len(seeds)} | {seeds[0].mean():.4f} |"
    if usual is None:
        return f"{text} | | {distance(cell):.1e} |"
    by_seed, by_task = (means[0] - means[1] for means in (seeds, both.groupby(level=1).mean()))
    spread = f" +- {by_seed.std():.4f}" if len(by_seed) > 1 else ""
    p = float(signed_rank(by_task.to_numpy()[None]).p[0])
    return (
        f"{text} {Unit(percent=False, digits=4).signed(by_seed.mean())}{spread} | {p_text(p)} | {distance(cell):.1e} |"
    )


@torch.inference_mode()
def distance(cell: Cell) -> float:
    """Largest difference of an entry of a unit vector between a text alone and the same text in one padded batch."""
    model = load_run(cell.run, cell.config)
    encoder = model.encoder.eval()
    docstrings = read_docstrings(["polars"])
    chosen = docstrings[:: max(1, len(docstrings) // TEXTS)][:TEXTS]
    rows = model.tokenizer([d.text if k % 2 else d.summary for k, d in enumerate(chosen)])
    alone = torch.cat([encoder(model.tokenizer.batch([r])) for r in rows])
    return float((encoder(model.tokenizer.batch(rows)) - alone).abs().max())


if __name__ == "__main__":
    guard(main)
