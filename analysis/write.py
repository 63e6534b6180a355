"""The files of one analysis, each written whole or not at all, and what is printed."""

from collections.abc import Callable, Iterable
from pathlib import Path

from analysis.analyse import Result
from analysis.drawings.drawing import Drawing, drawn, write_figures
from analysis.grids.csv import csv_blocks
from analysis.grids.grid import Grid
from analysis.grids.latex import latex_grid
from analysis.grids.markdown import escape, markdown_grid
from analysis.questions.letters import names_in
from analysis.result_json import result_json
from analysis.scores.long_table import scores_for_file
from analysis.settings import Settings
from cli.errors import UserError
from records.atomic import write_text


def output_folder(settings: Settings) -> Path:
    """Return where the files go: `out=`, else beside the first scores. Raises UserError where a file is in the way."""
    first = settings.scores[0]
    stem = first.name.removesuffix(".gz").removesuffix(".csv")
    folder = settings.out or (first / "analysis" if first.is_dir() else first.with_name(f"{stem}-analysis"))
    if folder.exists() and not folder.is_dir():
        raise UserError(f"out={folder} is a file. Name a folder with out=<folder>.")
    return folder


def write_files(result: Result, folder: Path) -> list[Path]:
    """Write the tables to `folder` and return their paths. Raises UserError where the folder cannot be written."""
    first = result.grids()[0]
    texts: dict[str, str | Iterable[str]] = {
        "table.md": document(result),
        "table.tex": latex_document(result),
        "by_type.md": markdown_grid(first),
        "by_type.tex": latex_grid(first),
    }
    for answer in result.answers:
        texts |= {f"{name}.csv": csv_blocks(table) for name, table in (answer.frames | answer.csv).items()}
    texts["scores.csv"] = csv_blocks(scores_for_file(result.material.whole_frame))
    texts["result.json"] = result_json(result)
    drawings = draw(result) if result.material.settings.figures else []
    if result.material.settings.report:
        from analysis.report.page import report_files  # jinja2, for reports alone

        texts |= report_files(result, drawings)
    try:
        for name, text in texts.items():
            write_text(folder / name, text)
        pictures = write_figures(drawings, folder / "figures")
    except OSError as error:
        mend = "Name another folder with out=<folder>."
        raise UserError(f"Cannot write to {folder}: {error.strerror}. {mend}") from error
    return [*(folder / name for name in texts), *pictures]


def draw(result: Result) -> list[Drawing]:
    """Return the figures of all answers, in the order of the tables."""
    return drawn(names_in(result.material), lambda: [d for answer in result.answers for d in answer.draw()])


def printed(result: Result, folder: Path) -> str:
    """Return what the screen shows: the main tables, the names of the others, notes, verdict."""
    titles = [grid.title for grid in result.grids(main=False)]
    more = f"## Further tables\n\n{'; '.join(titles)}: in {folder / 'table.md'}.\n" if titles else ""
    return _document(result, result.grids(main=True), f" Folder: {folder}.", more)


def document(result: Result) -> str:
    """Return all tables as Markdown, with the notes and the verdict."""
    return _document(result, result.grids(), words=escape)


def _document(
    result: Result, grids: list[Grid], after_rest: str = "", more: str = "", words: Callable[[str], str] = str
) -> str:
    """after_rest: follows the words on a list that is cut; words: applied to notes and verdict, which a screen shows as
    they are."""
    parts = []
    for grid in grids:
        parts.append(f"## {grid.title}\n\n{markdown_grid(grid)}")
        parts[-1] += f"\n{grid.rest}{after_rest}\n" if grid.rest else ""
    notes = "\n".join(f"- {words(note)}" for note in result.notes)
    return "\n".join([*parts, *filter(None, [more]), f"## Notes\n\n{notes}\n", f"{words(result.verdict)}\n"])


def latex_document(result: Result) -> str:
    r"""Return all tables, ready for \input, with the notes and the verdict as comments."""
    tables = "\n".join(map(latex_grid, result.grids()))
    comments = "\n".join("% " + " ".join(line.split()) for line in [*result.notes, result.verdict])
    return f"% \\usepackage{{booktabs}} in the preamble\n{tables}\n{comments}\n"
