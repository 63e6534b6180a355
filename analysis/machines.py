"""`python -m analysis.machines scores=[folder_a,folder_b]`: the same designs and seeds, trained on several machines."""

import sys
from dataclasses import replace
from pathlib import Path

from cli.errors import UserError, guard

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

    from analysis.analyse import controlled, scores_of_each
    from analysis.control.rule import NotControlledError
    from analysis.grids.csv import csv_text
    from analysis.grids.latex import latex_grid
    from analysis.grids.markdown import markdown_grid
    from analysis.manifests.compared_keys import check_allowed
    from analysis.questions import machines as of
    from analysis.scores.choose import choose_control
    from analysis.write import output_folder, write_whole

    folder, places = output_folder(settings), named(settings.scores)
    read = {name: scores_of_each(replace(settings, scores=(path,))) for name, path in places.items()}
    runs = [run for one in read.values() for design in one[1].values() for run in design.runs]
    check_allowed(settings.allow, (run.manifest for run in runs))
    frames, notes = of.shared({name: frame for name, (frame, *_) in read.items()})
    designs = {name: of.of_runs(read[name][1], frame) for name, frame in frames.items()}
    labels = list(next(iter(designs.values())))
    designs = {name: {label: some[label] for label in labels} for name, some in designs.items()}  # pairs one way round
    control = choose_control(read[next(iter(read))][1], labels, settings.against, labels)
    tasks = frames[next(iter(frames))]["task"].unique().tolist()
    try:
        rule = controlled(of.by_machine(designs), tasks, settings, of.FACTOR)
    except NotControlledError as refused:
        print(markdown_grid(refused.grid), file=sys.stderr)
        raise
    of.refuse_other_designs(designs, settings)
    spreads = of.spread_table(of.run_means(frames, labels), settings)
    pairs = of.pair_table(of.materials(frames, designs, control, settings))
    over = f"all {len(tasks)} tasks"
    grids = [of.spread_grid(spreads, over, len(frames), settings)]
    grids += [] if pairs.empty else [of.pair_machine_grid(pairs, over, list(frames), settings)]
    notes += of.machine_notes(designs) + rule.notes + [note for one in read.values() for note in one[3]]
    notes += [f"{note.mark}: {note.text}" for note in rule.footnotes]
    text = "\n".join(f"## {grid.title}\n\n{markdown_grid(grid)}" for grid in grids)
    text += "\n".join(["\n## Notes\n", *(f"- {note}" for note in dict.fromkeys(notes)), ""])
    text += f"\n{of.conclusion(pairs, spreads, list(frames), settings)}"
    print(text)
    if settings.out:
        texts = {"machines.md": text + "\n", "machines.csv": csv_text(spreads), "machine_pairs.csv": csv_text(pairs)}
        texts |= {f"{grid.name.replace('-', '_')}.tex": latex_grid(grid) for grid in grids}
        print("\n  ".join(["Files:", *map(str, write_whole(folder, texts))]))


def named(folders: tuple[Path, ...]) -> dict[str, Path]:
    """Return name -> folder; a name is the last part of the paths in which all differ, or else the whole path.

    Raises UserError for fewer than two folders, or one that is named twice.
    """
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        raise UserError("Name two folders of scores or more, each once: scores=[<of one machine>,<of another>].")
    depths = range(1, 1 + min(len(folder.parts) for folder in folders))
    parts = ([folder.parts[-depth] for folder in folders] for depth in depths)
    names = next((names for names in parts if len(set(names)) == len(folders)), list(map(str, folders)))
    return dict(zip(names, folders, strict=True))


if __name__ == "__main__":
    guard(main)
