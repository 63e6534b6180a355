"""The files of one analysis, each written whole or not at all."""

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.factorial.effects import effects_for_file
from analysis.grids.csv import csv_text
from analysis.grids.latex import latex_document, latex_grid
from analysis.grids.markdown import document, markdown_grid
from analysis.manifests.cost import has_costs, memory_kinds, peak_memory, tokens_per_second, training_flops
from analysis.scores.long_table import scores_for_file
from analysis.settings import Settings
from analysis.tables.main import type_grid
from analysis.tables.result_json import result_json
from cli.errors import UserError
from records.atomic import write_text

if TYPE_CHECKING:
    import pandas as pd

    from analysis.analyse import Result
    from analysis.control.rule import Footnote
    from analysis.drawings.drawing import Drawing


def output_folder(settings: Settings) -> Path:
    """Return where the files go: `out=`, else beside the first scores. Raises UserError where a file is in the way."""
    first = settings.scores[0]
    stem = first.name.removesuffix(".gz").removesuffix(".csv")
    folder = settings.out or (first / "analysis" if first.is_dir() else first.with_name(f"{stem}-analysis"))
    if folder.exists() and not folder.is_dir():
        raise UserError(f"out={folder} is a file. Name a folder with out=<folder>.")
    return folder


def write_files(result: "Result", folder: Path) -> list[Path]:
    """Write the tables to `folder` and return their paths. Raises UserError where the folder cannot be written."""
    grid = type_grid(result)
    texts = {
        "table.md": document(result),
        "table.tex": latex_document(result),
        "by_type.md": markdown_grid(grid),
        "by_type.tex": latex_grid(grid),
        "by_type.csv": csv_text(_sized(result), index=True),
        "pairs.csv": csv_text(pairs_for_file(_noted(result), result.settings.correction)),
        "scores.csv": csv_text(scores_for_file(result.frame)),
    }
    if result.gain is not None:
        texts["before_after.csv"] = csv_text(result.gain, index=True)
    if result.effects:
        tests, marginals = effects_for_file(result.effects)
        texts["effects.csv"] = csv_text(pairs_for_file(tests, result.settings.correction))
        texts["marginal_means.csv"] = csv_text(marginals)
    texts |= {f"{name}.csv": csv_text(table) for section in result.sections for name, table in section.frames.items()}
    texts["result.json"] = result_json(result)
    drawings = _drawings(result)
    if result.settings.report:
        from analysis.report.page import report_files

        texts |= report_files(result, drawings)
    pictures = []
    try:
        for name, text in texts.items():
            write_text(folder / name, text)
        if drawings:
            from analysis.drawings.drawing import write_figures

            pictures = write_figures(drawings, folder / "figures")
    except OSError as error:
        raise UserError(
            f"Cannot write to {folder}: {error.strerror}. Name another folder with out=<folder>."
        ) from error
    return [*(folder / name for name in texts), *pictures]


def _drawings(result: "Result") -> "list[Drawing]":
    """Figures cost seconds, so they are drawn where they are asked for."""
    if not result.settings.figures:
        return []
    from analysis.figures.every import draw

    return draw(result)


def pairs_for_file(pairs: "pd.DataFrame", correction: str) -> "pd.DataFrame":
    """Leave out the column that repeats `p_holm`, `p_bh` or p, and name the floor after its correction."""
    table = pairs.drop(columns=["p_adjusted"])
    if correction == "none":
        return table.drop(columns=["p_min_adjusted"])
    return table.rename(columns={"p_min_adjusted": f"p_min_{correction}"})


def _sized(result: "Result") -> "pd.DataFrame":
    table = result.means.rename_axis("design").copy()
    designs = [result.designs[str(label)] for label in table.index]
    if has_costs(result.designs):
        table.insert(0, "trainable", [design.parameters for design in designs])
        table.insert(1, "train_flops", [training_flops(design) for design in designs])
        table.insert(2, "train_tokens_per_second", [tokens_per_second(design) for design in designs])
        table.insert(3, "peak_memory_bytes", [peak_memory(design) for design in designs])
        table.insert(4, "peak_memory_of", ["+".join(sorted(memory_kinds([design]))) for design in designs])
    if result.footnotes:
        table["differs_in"] = [_said([n for n in result.footnotes if label in n.marked]) for label in table.index]
    return table


def _noted(result: "Result") -> "pd.DataFrame":
    """The pairs; where differences were let through, the keys in which each pair differs."""
    pairs = result.pairs
    if not result.footnotes:
        return pairs
    both = zip(pairs["first"], pairs["second"], strict=True)
    return pairs.assign(differs_in=[_said([n for n in result.footnotes if n.parts(a, b)]) for a, b in both])


def _said(notes: "list[Footnote]") -> str:
    return ";".join(key for note in notes for key in note.keys)
