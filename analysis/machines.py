"""`python -m analysis.machines scores=[folder_a,folder_b]`: the same designs and seeds, trained on several machines."""

import sys
from dataclasses import replace

from cli.errors import guard

USAGE = """\
Another machine: does the verdict stay where the same seeds are trained and scored on another processor?

usage: python -m analysis.machines scores=[<results folder>,<results folder>,...] [key=value ...]

Each folder holds the same designs and seeds of one machine; what not all have is left out, and named. Printed: how far
the mean of a run strays over machines at one seed, and over seeds on one machine; each pair's difference, p and verdict
on each machine; and in one sentence whether the verdicts are the same. Claims take three seeds. Where manifests differ
in more than the machine the folders are refused, with the keys (allow= lets them through). out= writes machines.md,
machines.csv, machine_pairs.csv and the tables as .tex too.

examples:
  python -m analysis.machines scores=[runs/usual/scores,runs/avx2/scores]
  python -m analysis.machines 'scores=runs/machine_*/scores' against=eos-causal out=tables
"""
KEYS = ["scores", "out", "models", "seeds", "against", "types", "tasks", "missing", "alpha", "correction", "zeros"]
KEYS += ["decimals", "rope", "scale", "benchmark", "split", "subsets", "revision", "task_types", "rows_shown"]
KEYS += ["factors", "allow", "rename", "unit", "digits"]


def main() -> None:
    """Print both tables and the sentence; with `out=` write them too."""
    from analysis.cli import settings_or_manual

    settings = settings_or_manual(USAGE, KEYS)
    if settings is None:
        return

    from analysis.control.machines import held_alike, named
    from analysis.control.rule import NotControlledError
    from analysis.grids.csv import csv_text
    from analysis.grids.latex import latex_grid
    from analysis.grids.markdown import markdown_grid
    from analysis.questions.machines import answer_of
    from analysis.scores.choose import choose_control
    from analysis.scores.read import scores_of_each
    from analysis.write import output_folder, write_whole

    folder, places = output_folder(settings), named(settings.scores)
    read = {name: scores_of_each(replace(settings, scores=(path,))) for name, path in places.items()}
    try:
        alike = held_alike({name: (frame, designs) for name, (frame, designs, _, _) in read.items()}, settings)
    except NotControlledError as refused:
        print(markdown_grid(refused.grid), file=sys.stderr)
        raise
    control = choose_control(alike.designs[alike.names[0]], alike.labels, settings.against, alike.labels)
    given = answer_of(alike, control, settings)
    finding, *notes = given.notes
    notes += [note for *_, of_one in read.values() for note in of_one]
    text = "\n".join(f"## {grid.title}\n\n{markdown_grid(grid)}" for grid in given.grids)
    text += "\n".join(["\n## Notes\n", *(f"- {note}" for note in dict.fromkeys(notes)), "", finding])
    print(text)
    if settings.out:
        texts = {"machines.md": text + "\n"} | {f"{name}.csv": csv_text(table) for name, table in given.frames.items()}
        texts |= {f"{grid.name.replace('-', '_')}.tex": latex_grid(grid) for grid in given.grids}
        print("\n  ".join(["Files:", *map(str, write_whole(folder, texts))]))


if __name__ == "__main__":
    guard(main)
