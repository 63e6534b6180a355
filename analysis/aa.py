"""`python -m analysis.aa scores=<results folder or csv>`: runs of one design against each other."""

from cli.errors import UserError, guard

USAGE = """\
A/A test: how often do the tests tell runs of one and the same design apart?

usage: python -m analysis.aa scores=<results folder or csv> [key=value ...]

Each design's runs with other seeds are dealt to two sides in all ways and compared as two designs would be. Nothing but
the seed differs, so alpha at most should be told apart: without the rule (the test over tasks alone, p), and with the
rule for a star, which takes three runs per side or more, so six runs of a design. Printed, per design and for all: the
shares with their standard errors. out= writes same_design.md, .tex and .csv too.

examples:
  python -m analysis.aa scores=runs/embedded/scores
  python -m analysis.aa scores=runs/embedded/scores models=[multilayer-causal] seeds=[0,1,2,3,4,5] out=tables
"""
KEYS = ["scores", "out", "models", "seeds", "types", "tasks", "missing", "alpha", "zeros", "decimals", "scale"]
KEYS += ["benchmark", "split", "subsets", "revision", "task_types", "rows_shown", "allow"]


def main() -> None:
    """Print the table; with `out=` write it too."""
    from analysis.cli import settings_or_manual

    settings = settings_or_manual(USAGE, KEYS)
    if settings is None:
        return

    from analysis.grids.latex import latex_grid
    from analysis.grids.markdown import markdown_grid
    from analysis.manifests.compared_keys import check_allowed
    from analysis.questions.same_design import same_design, split_grid
    from analysis.scores.choose import choose, rows_of
    from analysis.scores.complete import complete, policy_for
    from analysis.scores.load import load
    from analysis.write import csv_text, output_folder, write_whole

    folder = output_folder(settings)
    scores = load(settings)
    check_allowed(settings.allow, (run.manifest for design in scores.designs.values() for run in design.runs))
    chosen = choose(scores, settings, fewest=1)
    policy = policy_for(settings.missing, (scores.designs[label] for label in chosen))
    whole = complete(rows_of(scores.frame, chosen, settings), chosen, policy)
    table = same_design(whole.frame, whole.designs, whole.tasks, settings)
    if table.empty:
        raise UserError(
            f"None of the {len(whole.designs)} designs has two runs, so nothing is to be split. Train and score the"
            " same design with other seeds: seed=0,1,2."
        )
    grid = split_grid(table, f"all {len(whole.tasks)} tasks", settings)
    text = "\n".join(
        [f"## {grid.title}\n", markdown_grid(grid), *(f"- {note}" for note in (*scores.notes, *whole.notes))]
    )
    print(text)
    if settings.out:
        texts = {"md": text + "\n", "tex": latex_grid(grid), "csv": csv_text(table)}
        files = write_whole(folder, {f"same_design.{ending}": written for ending, written in texts.items()})
        print("\n  ".join(["Files:", *map(str, files)]))


if __name__ == "__main__":
    guard(main)
