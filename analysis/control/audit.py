"""The audit of a study: the factors that vary, other differences, identical streams, scoring and code."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from analysis.control.rule import Control, described, difference_table, judge, short, value_table
from analysis.manifests.designs import Design, config_order, labelled
from analysis.manifests.differences import ABSENT, values_of
from analysis.names import by_number, listed
from analysis.render import Table, escape_markdown, markdown
from cli.compose import CONF

STREAMS = ("data", "dropout", "adapter", "head", "evaluation")


def audit(
    designs: dict[str, Design], left_out: list[str], factors: tuple[str, ...], allow: tuple[str, ...]
) -> tuple[str, Control, dict[str, Design]]:
    """Return the audit as Markdown, the finding of the rule, and the cells (label -> design, in config order).

    designs: model -> design with its runs; left_out: folders that do not count.
    """
    cells = labelled(designs)
    order: Any = OmegaConf.to_container(OmegaConf.select(OmegaConf.load(CONF / "analysis.yaml"), "order"))
    cells = {label: cells[label] for label in config_order(cells, order)}
    control = judge(cells, factors, allow)
    sections = {**facts(control, cells, factors), "Left out": left_out or ["Nothing."]}
    text = "\n".join(f"## {title}\n\n{_markdown(parts)}" for title, parts in sections.items())
    return text, control, cells


def facts(control: Control, cells: dict[str, Design], factors: tuple[str, ...]) -> Mapping[str, Sequence[Table | str]]:
    """Return heading -> tables and lines, for every format. cells: label -> design with its runs."""
    trained = {label: cell for label, cell in cells.items() if cell.trained}
    none = ["No key below a factor varies where the factor itself does not."]
    return {
        "Cells": [_cells(cells)],
        "Factors": [_factors(cells, factors), *(control.confounded or none)],
        "What else differs": _others(control, cells),
        "Streams": _streams(trained),
        "Scoring": _scoring(cells),
        "Code": _code(cells),
    }


def _markdown(parts: Sequence[Table | str]) -> str:
    lines = [part for part in parts if isinstance(part, str)]
    tables = [markdown(part) for part in parts if isinstance(part, Table)]
    return "\n".join([*tables, *(["\n".join(f"- {escape_markdown(line)}" for line in lines) + "\n"] if lines else [])])


def verdict(cells: dict[str, Design], factors: tuple[str, ...], control: Control) -> str:
    """Return the line for cells that do compare."""
    varying = [f for f in factors if len({cell.factors[f] for cell in cells.values()}) > 1]
    if len({cell.trained for cell in cells.values()}) > 1:
        varying.append("training")
    if len(cells) == 1:
        return f"Controlled: one cell, {next(iter(cells))}; its seeds differ in nothing else."
    allowed = [key for note in control.footnotes for key in note.keys]
    but = f" and, as allowed, in {listed(allowed)}" if allowed else ""
    return f"Controlled: these {len(cells)} cells differ only in {', '.join(varying) or 'nothing'}{but}."


def _cells(cells: dict[str, Design]) -> Table:
    rows = []
    for label, cell in cells.items():
        seeds, steps = ", ".join(run.seed for run in cell.runs), {str(r.manifest.get("steps", "-")) for r in cell.runs}
        rows.append([label, seeds, ", ".join(sorted(steps)) if cell.trained else "-"])
    frame = pd.DataFrame(rows, columns=["Cell", "Seeds", "Steps"])
    return Table("cells", "Cells", f"{len(cells)} cells.", frame, left=2)


def _factors(cells: dict[str, Design], factors: tuple[str, ...]) -> Table:
    groups: dict[str, dict[str, list[str]]] = {factor: {} for factor in factors}
    for factor, (label, cell) in product(factors, cells.items()):
        groups[factor].setdefault(cell.factors[factor], []).append(label)
    return value_table("Factors", "The factors.", "Cells", groups, 10)


def _others(control: Control, cells: dict[str, Design]) -> list[Table | str]:
    refused: list[Table | str] = [difference_table(control.refused, cells)] if control.refused else []
    allowed = [f"{note.mark}: {note.text}" for note in control.footnotes]
    return [*(refused or ([] if allowed else ["Nothing."])), *allowed, *control.notes]


def _streams(cells: dict[str, Design]) -> list[str]:
    """Name per seed the cells with identical batches in identical order and identical seeds of each stream."""
    lines = []
    for seed in by_number({run.seed for cell in cells.values() for run in cell.runs}):
        those = {label: cell for label, cell in cells.items() if any(run.seed == seed for run in cell.runs)}
        keys = {"batch order": "batch_order_sha256", "steps": "steps"} | {f"stream {s}": f"seeds.{s}" for s in STREAMS}
        same, other = [], []
        for name, key in keys.items():
            values = values_of(key, those, seed)
            if len(values) != 1:
                other.append(described(name, values))
            elif ABSENT not in values:
                same.append(name if name.startswith("stream") else f"{name} ({short(next(iter(values)))})")
        who = f"all {len(those)} cells" if len(those) == len(cells) else listed(those, 10)
        lines.append(f"Seed {seed}: identical in {who}: {', '.join(same) or 'nothing'}.")
        lines += [f"Seed {seed} differs: {line}." for line in other]
    return lines or ["No trained run."]


def _scoring(cells: dict[str, Design]) -> list[str]:
    scored = {label for label, cell in cells.items() if any("evaluation" in run.manifest for run in cell.runs)}
    if not scored:
        return ["No scores were given; name the scores' folder too to compare how the cells were scored."]
    those = {label: cell for label, cell in cells.items() if label in scored}
    profiles = [run.profile for cell in those.values() for run in cell.runs]
    inputs = {key for profile in profiles for key in profile if key.startswith("evaluation.inputs.")}
    alike = f"{sum(len(values_of(key, those)) == 1 for key in inputs)} of {len(inputs)} (task, split) pairs"
    return [f"All {len(those)} scored cells were given identical inputs in {alike}."]


def _code(cells: dict[str, Design]) -> list[str]:
    """Show commits and dirty flags; compared is the digest of all sources, among the keys above."""
    commits: dict[str, dict[str, None]] = {}
    for label, code in ((label, run.manifest.get("code")) for label, cell in cells.items() for run in cell.runs):
        if code:
            word = f"{str(code.get('commit'))[:12]}{' with uncommitted changes' if code.get('dirty') else ''}"
            commits.setdefault(word, {})[label] = None
    return [f"{word}: {listed(units, 10)}." for word, units in commits.items()]
