"""Scores on the development package by recipe and design: the recipe that serves all best, and each design's own best.

    python -m benchmarks.sweeps.recipe runs/recipe

A recipe is what a study folder's name says beside `pooler.` keys, which are of the design. A score is the mean over
tasks and seeds; the mean of a row is over designs, so that none decides alone.
"""

from collections import defaultdict
from pathlib import Path
from statistics import mean

from analysis.scores.mteb_task import read_task
from benchmarks.arguments import folder_first
from cli.errors import UserError, guard

Table = dict[str, dict[str, list[float]]]  # recipe -> design -> the mean over tasks of each seed


def main() -> None:
    """Print one row per recipe, best first; the best of each design bold."""
    root = folder_first("runs/recipe")
    table = read(root)
    if not table:
        raise UserError(f"There are no scores below {root}/*/scores. Run evaluate.py on its runs first.")
    print("\n".join(lines(table)))


def read(root: Path) -> Table:
    """Return the scores of all study folders of `root`. Raises UserError for a file that is no result of mteb."""
    table: Table = defaultdict(lambda: defaultdict(list))
    for revision in sorted(root.glob("*/scores/results/*__*/seed=*")):
        study, cell = revision.parent.name.rsplit("__", 1)
        words = study.split(",")
        recipe = ",".join(word for word in words if not word.startswith("pooler."))
        design = ",".join([cell, *(word for word in words if word.startswith("pooler."))])
        table[recipe][design].append(mean(read_task(path, cell, "").score for path in revision.glob("Docs*.json")))
    return table


def lines(table: Table) -> list[str]:
    """Return the table in Markdown. A cell with fewer seeds than another of its design says so and is not its best."""
    designs = sorted({design for row in table.values() for design in row})
    seeds = {design: max(len(row.get(design, ())) for row in table.values()) for design in designs}
    best = {
        design: max(mean(row[design]) for row in table.values() if len(row.get(design, ())) == seeds[design])
        for design in designs
    }
    rows = []
    for recipe, row in sorted(table.items(), key=lambda item: -mean(mean(scores) for scores in item[1].values())):
        shown = []
        for design in designs:
            scores = row.get(design, [])
            text = f"{mean(scores):.4f}" if scores else ""
            if scores and len(scores) < seeds[design]:
                text += f" ({len(scores)} of {seeds[design]} seeds)"
            elif scores and mean(scores) == best[design]:
                text = f"**{text}**"
            shown.append(text)
        rows.append(f"| {recipe} | {' | '.join(shown)} | {mean(mean(scores) for scores in row.values()):.4f} |")
    return ["| recipe | " + " | ".join(designs) + " | mean |", "|---" * (len(designs) + 2) + "|", *rows]


if __name__ == "__main__":
    guard(main)
