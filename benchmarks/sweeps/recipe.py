"""The recipe that serves all cells best: mean score on the development package, by study and cell.

    python -m benchmarks.sweeps.recipe runs/recipe

A recipe is a study folder; its value is the mean over cells of the mean over tasks: no cell decides alone.
"""

from collections import defaultdict
from statistics import mean

from analysis.scores.mteb_task import read_task
from benchmarks.arguments import folder_first
from cli.errors import UserError, guard


def main() -> None:
    """Print one row a recipe, best first."""
    root = folder_first("runs/recipe")
    table: dict[str, dict[str, float]] = defaultdict(dict)
    for revision in root.glob("*/scores/results/*__*/seed=*"):
        study = revision.parents[3].name
        cell = revision.parent.name.rsplit("__", 1)[1]
        table[study][cell] = mean(read_task(path, cell, "").score for path in revision.glob("Docs*.json"))
    if not table:
        raise UserError(f"There are no scores below {root}/*/scores. Run evaluate.py on its runs first.")
    cells = sorted({cell for row in table.values() for cell in row})
    print("| recipe | " + " | ".join(cells) + " | mean |")
    print("|---" * (len(cells) + 2) + "|")
    for study, row in sorted(table.items(), key=lambda item: -mean(item[1].values())):
        shown = " | ".join(f"{row[c]:.4f}" if c in row else "" for c in cells)
        print(f"| {study} | {shown} | {mean(row.values()):.4f} |")


if __name__ == "__main__":
    guard(main)
