"""The files of one analysis, each written whole or not at all, and what is printed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath

import pandas as pd

from analysis.analyse import Result
from analysis.drawings.drawing import Drawing, drawn, file_names, write_figures
from analysis.grids.grid import Grid
from analysis.grids.latex import latex_grid
from analysis.grids.markdown import escape, markdown_grid
from analysis.questions.pair_figures import LEADING
from analysis.result_json import result_json
from analysis.scores.long_table import scores_for_file
from analysis.settings import Settings
from cli.errors import UserError
from records.files import write_text


def output_folder(settings: Settings) -> Path:
    """Return where the files go: `out=`, else beside the first scores. Raises UserError where a file is in the way."""
    first = settings.scores[0]
    stem = first.name.removesuffix(".gz").removesuffix(".csv")
    folder = settings.out or (first / "analysis" if first.is_dir() else first.with_name(f"{stem}-analysis"))
    if folder.exists() and not folder.is_dir():
        raise UserError(f"out={folder} is a file. Name a folder with out=<folder>.")
    return folder


def write_files(result: Result, folder: Path) -> list[Path]:
    """Write the tables to `folder` and return their paths. Raises UserError where the folder cannot be written.

    Files of an earlier analysis in that folder that this one does not write are taken away, so that no report stands
    beside tables of other scores.
    """
    texts = {"table.md": document(result), "table.tex": latex_document(result)}
    texts["by_type.md"] = markdown_grid(result.grids()[0])
    texts |= {f"{grid.name.replace('-', '_')}.tex": latex_grid(grid) for grid in result.grids()}
    tables = {name: table for answer in result.answers for name, table in answer.frames.items()}
    shown = {**result.material.designs, **result.material.references}
    tables["scores"] = scores_for_file(result.material.whole_frame, shown)
    texts |= {f"{name}.csv": csv_text(table) for name, table in tables.items()}
    texts["result.json"] = ""
    drawings = draw(result) if result.material.settings.figures else []
    if result.material.settings.report:
        from analysis.report.page import report_page  # jinja2, for reports alone

        texts["report.html"] = report_page(result, drawings)
    names = [*texts, *(f"figures/{name}" for name in file_names(drawings))]
    texts["result.json"] = result_json(result, names)
    older = _written(folder)
    paths = write_whole(folder, texts, drawings)
    for name in older - set(names):
        (folder / name).unlink(missing_ok=True)
    return paths


def _written(folder: Path) -> set[str]:
    """Return the names of the files that the last analysis in `folder` wrote, by its result.json."""
    try:
        files = json.loads((folder / "result.json").read_text(encoding="utf-8"))["files"]
        return {name for name in files if PurePath(name).parts[:-1] in ((), ("figures",))}
    except (OSError, ValueError, LookupError, TypeError):  # none there, or of another program
        return set()


def csv_text(table: pd.DataFrame) -> str:
    """Return the table as csv text, floats with all their digits."""
    return table.to_csv(index=False, lineterminator="\n")


def write_whole(folder: Path, texts: Mapping[str, str], drawings: list[Drawing] | None = None) -> list[Path]:
    """Write texts by file name, and figures, and return their paths. Raises UserError where that is not possible."""
    try:
        for name, text in texts.items():
            write_text(folder / name, text)
        pictures = write_figures(drawings or [], folder / "figures")
    except OSError as error:
        mend = "Name another folder with out=<folder>."
        raise UserError(f"Cannot write to {folder}: {error.strerror}. {mend}") from error
    return [*(folder / name for name in texts), *pictures]


def draw(result: Result) -> list[Drawing]:
    """Return the figures of all answers, in the order of the tables."""
    ending = result.material.settings.numbers.said
    return drawn(
        lambda: [
            replace(one, of=answer.name, caption=one.caption + ending * answer.of_scores)
            for answer in result.answers
            for one in answer.draw()
        ]
    )


def printed(result: Result, folder: Path) -> str:
    """Return what the screen shows: the main tables, the names of the others, notes, and last the verdict."""
    titles = [grid.title for grid in result.grids(main=False)]
    more = [f"## Further tables\n\n{'; '.join(titles)}: in {folder / 'table.md'}.\n"] if titles else []
    tables = [_table(grid, f" Folder: {folder}.") for grid in result.grids(main=True)]
    return "\n".join([*tables, *more, f"## Notes\n\n{_list(result.notes, str)}", f"{result.verdict}\n"])


def document(result: Result) -> str:
    """Return the page as Markdown: verdict, scores, notes, then one section per answer."""
    first, *others = result.answers
    notes, further = result.page_notes()
    parts = [f"## Verdict\n\n{escape(result.verdict)}\n"]
    if result.material.settings.figures:
        parts += [f"![Differences with intervals](figures/{LEADING}.png)\n"]
    parts += [
        *map(_table, first.grids),
        f"## Notes\n\n{_list(notes)}",
    ]
    for answer in others:
        parts += map(_table, answer.grids)
        parts += [_list(answer.notes)] if answer.grids and answer.notes else []
    return "\n".join([*parts, *([f"## Further notes\n\n{_list(further)}"] if further else [])])


def _table(grid: Grid, after_rest: str = "") -> str:
    """after_rest: follows the words on a list that is cut."""
    return f"## {grid.title}\n\n{markdown_grid(grid)}" + (f"\n{grid.rest}{after_rest}\n" if grid.rest else "")


def _list(notes: list[str], words: Callable[[str], str] = escape) -> str:
    """words: applied to each note; a screen shows it as it is."""
    return "".join(f"- {words(note)}\n" for note in notes)


def latex_document(result: Result) -> str:
    r"""Return all tables, ready for \input, with the notes and the verdict as comments."""
    tables = "\n".join(map(latex_grid, result.grids()))
    comments = "\n".join("% " + " ".join(line.split()) for line in [result.verdict, *result.notes])
    return f"% \\usepackage{{booktabs,graphicx}} in the preamble\n{tables}\n{comments}\n"
