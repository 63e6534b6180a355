"""The files of one analysis, each written whole or not at all, and what is printed."""

import json
from pathlib import Path, PurePath

import pandas as pd

from analysis.analyse import Result
from analysis.drawings.drawing import Drawing, drawn, figure_files, write_figures
from analysis.render import escape_markdown, latex, markdown_section
from analysis.result_json import result_json
from analysis.scores.long_table import scores_for_file
from analysis.settings import Settings
from analysis.tables.pairs import LEADING
from cli.errors import UserError
from records.files import write_text

Drawings = dict[str, list[Drawing]]  # name of a section -> its figures


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
    drawings = draw(result) if result.compared.settings.figures else {}
    texts = {"table.md": document(result, drawings), "table.tex": latex_document(result)}
    tables = {name: table for section in result.sections for name, table in section.frames.items()}
    tables["scores"] = scores_for_file(result.compared.frame, result.compared.designs)
    texts |= {f"{name}.csv": csv_text(table) for name, table in tables.items()}
    if result.compared.settings.report:
        from analysis.report.page import report_page  # jinja2, for reports alone

        texts["report.html"] = report_page(result, drawings)
    figures = figure_files([one for some in drawings.values() for one in some], pictures={LEADING})
    names = [*texts, "result.json", *(f"figures/{name}" for name in figures)]
    texts["result.json"] = result_json(result, names)
    older = _written(folder)
    try:
        for name, text in texts.items():
            write_text(folder / name, text)
        pictures = write_figures(figures, folder / "figures")
    except OSError as error:
        mend = "Name another folder with out=<folder>."
        raise UserError(f"Cannot write to {folder}: {error.strerror}. {mend}") from error
    for name in older - set(names):
        (folder / name).unlink(missing_ok=True)
    return [*(folder / name for name in texts), *pictures]


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


def draw(result: Result) -> Drawings:
    """Return the figures of each section."""
    drawings: Drawings = {}

    def make() -> list[Drawing]:
        drawings.update({section.name: section.draw() for section in result.sections})
        return [one for some in drawings.values() for one in some]

    drawn(make)
    return drawings


def printed(result: Result, folder: Path) -> str:
    """Return what the screen shows: the main sections, the names of the others, notes, and last the verdict."""
    titles = [section.title for section in result.sections if not section.main]
    more = [f"## Further\n\n{'; '.join(titles)}: in {folder / 'table.md'}.\n"] if titles else []
    main = [markdown_section(section, [], depth=2) for section in result.sections if section.main]
    notes = "".join(f"- {note}\n" for note in result.notes)
    return "\n".join([*main, *more, f"## Notes\n\n{notes}", f"{result.verdict}\n"])


def document(result: Result, drawings: Drawings | None = None) -> str:
    """Return the page as Markdown: verdict, then one section after another, notes."""
    parts = [f"## Verdict\n\n{escape_markdown(result.verdict)}\n"]
    if drawings:
        parts += [f"![Differences with intervals](figures/{LEADING}.png)\n"]
    for section in result.sections:
        figures = [one for one in (drawings or {}).get(section.name, []) if one.name != LEADING]
        parts.append(markdown_section(section, figures, depth=2, kind="pdf"))
    notes = "".join(f"- {escape_markdown(note)}\n" for note in result.notes)
    return "\n".join([*parts, f"## Notes\n\n{notes}"])


def latex_document(result: Result) -> str:
    r"""Return all tables, ready for \input, with the notes and the verdict as comments."""
    tables = "\n".join(map(latex, result.tables))
    comments = "\n".join("% " + " ".join(line.split()) for line in [result.verdict, *result.notes])
    return f"% \\usepackage{{booktabs,graphicx}} in the preamble\n{tables}\n{comments}\n"
