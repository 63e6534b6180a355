"""Gains of designs within each Retrieval task: on short or long queries and documents, names, shared words.

docs/decisions/fine-retrieval.md says what the halves are and what is corrected with what.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.grids.formats import equals, percent, signed
from analysis.grids.grid import Cell, Grid
from analysis.names import listed
from analysis.questions.compared_pairs import compare_pairs, corrected, seed_cube
from analysis.questions.crossings import Crossing
from analysis.questions.design_by_type import from_reference, over_what, simple_effects
from analysis.questions.means import seed_means
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, after_correction, filled, marked_cell, star_legend
from analysis.questions.tested_effects import effect_tests
from analysis.scores.items import Items
from analysis.settings import Settings
from analysis.statistics.seeds import FEWEST_SEEDS

PLACE = 101
TYPES = ("Retrieval", "Reranking", "InstructionRetrieval")
FEATURES = {  # of the item files -> what it is, its lower half, its upper half
    "query_words": ("query length", "short", "long"),
    "query_names": ("names in query", "few", "many"),
    "document_words": ("document length", "short", "long"),
    "overlap": ("shared words", "few", "many"),
}
HALVES = ("lower", "upper")
CHANGE = "upper - lower"
FEWEST_ITEMS = 10  # in each half of a task, or the task says nothing of that feature
FEWEST_TASKS = 2
AGAIN = "score again with predictions=true into another results folder to compare designs by kind of query."
METHODS = (
    "Whether differences between designs depend on the kind of query was tested within tasks: each task's queries were"
    " halved at the median of a feature, and the difference of the halves compared between designs by sign flips of"
    " tasks [@pitman1937]."
)


@dataclass(frozen=True)
class _Halves:
    """Tasks of one type. `frame`: long, feature, task, unit, design, seed and a score per half and of their change."""

    kind: str
    designs: list[str]
    frame: pd.DataFrame
    blocks: dict[str, list[str]]  # feature -> its units, "<feature>: <task>"
    sizes: dict[str, list[int]]  # feature -> items in the halves of all its tasks
    together: pd.DataFrame  # Spearman's correlation of the features, mean over tasks
    reference: str  # the design that the others are compared with

    @property
    def units(self) -> list[str]:
        """The units of all features."""
        return [unit for units in self.blocks.values() for unit in units]

    def scores(self, which: str) -> pd.DataFrame:
        """Return the long frame of one half, or of the change, as the comparisons read it."""
        return self.frame.drop(columns="task").rename(columns={"unit": "task", which: "score"})


def answer(material: Material) -> Answer | None:
    """Return one table per type of task with the halves of its queries; None where no items have features."""
    of_types = {kind: [items for items in material.items if items.type == kind] for kind in TYPES}
    old = [kind for kind, items in of_types.items() if items and not any(one.features for one in items)]
    notes = [f"The items of {listed(old)} were written without features of their texts; {AGAIN}"] if old else []
    grids, tables = list[Grid](), dict[str, list[pd.DataFrame]]()
    for items in of_types.values():
        halves = _halved(items, material)
        if halves is None:
            continue
        tests = _interactions(halves, material.settings)
        change, parts = _compared(halves, tests, material)
        grids.append(_grid(halves, change, parts, material.settings.of_other_tests))
        notes.append(_note(halves, tests))
        for end, table in {"": change, "_halves": parts, "_tests": tests}.items():
            tables.setdefault(f"fine_retrieval{end}", []).append(table.assign(task_type=halves.kind))
    frames = {name: pd.concat(of_name, ignore_index=True) for name, of_name in tables.items()}
    if not notes:
        return None
    methods = [METHODS] if grids else []
    return Answer("fine_retrieval", grids=grids, frames=frames, notes=notes, methods=methods, aside=not grids)


def _halved(every: list[Items], material: Material) -> _Halves | None:
    """Return the mean scores of both halves of each task's items by each feature, for the designs that have items.

    The upper half is above the task's median. Several subsets of a task are averaged.
    """
    rows, sizes, likeness = [], {name: [0, 0] for name in FEATURES}, []
    have = {design for items in every for design, _ in items.values}
    designs = [design for design in material.designs if design in have]
    for items in every:
        likeness.append(pd.DataFrame(items.features, columns=list(FEATURES), dtype=np.float64).corr("spearman"))
        for name in FEATURES:
            values = items.features.get(name, np.zeros(0))
            middle = np.nanmedian(values) if np.isfinite(values).any() else 0.0
            lower, upper = np.flatnonzero(values <= middle), np.flatnonzero(values > middle)
            if min(len(lower), len(upper)) < FEWEST_ITEMS:
                continue
            sizes[name] = [sizes[name][0] + len(lower), sizes[name][1] + len(upper)]
            for (design, seed), scores in items.values.items():
                means = float(scores[lower].mean()), float(scores[upper].mean())
                rows.append((name, items.task, f"{name}: {items.task}", design, seed, *means))
    keys = ["feature", "task", "unit", "design", "seed"]
    frame = pd.DataFrame(rows, columns=[*keys, *HALVES]).groupby(keys, sort=False, as_index=False).mean()
    lacking = frame.groupby("unit")["design"].transform("nunique") < len(designs)
    frame = frame[~lacking].assign(**{CHANGE: frame["upper"] - frame["lower"]})
    blocks = {name: [*part["unit"].unique()] for name in FEATURES if len(part := frame[frame["feature"] == name])}
    blocks = {name: units for name, units in blocks.items() if len(units) >= FEWEST_TASKS}
    if len(designs) < 2 or not blocks:
        return None
    together = pd.concat(likeness, keys=range(len(likeness))).groupby(level=1, sort=False).mean()
    reference = material.control if material.control in designs else str(material.matrix[designs].mean().idxmax())
    return _Halves(every[0].type, designs, frame, blocks, sizes, together, reference)


def _interactions(halves: _Halves, settings: Settings) -> pd.DataFrame:
    """Return one row per feature: design x half, over tasks by sign flips and over seeds by F, Holm over features."""
    parts = [halves.scores(half) for half in HALVES]
    means = [seed_means(part, halves.designs, halves.units) for part in parts]
    cells, place = np.hstack(means), {unit: k for k, unit in enumerate(halves.units)}
    cube = np.concatenate([seed_cube(part, mean) for part, mean in zip(parts, means, strict=True)])
    rows = {name: [place[unit] for unit in of_feature] for name, of_feature in halves.blocks.items()}
    crossing = Crossing({"half": list(HALVES), "design": halves.designs}, {}, [])
    by_seed = {name: cube[:, at] for name, at in rows.items()}
    tests = effect_tests({name: cells[at] for name, at in rows.items()}, crossing, settings, by_seed)
    whole = replace(settings.of_other_tests, family="table")
    return corrected(tests[tests["effect"] == "half x design"].reset_index(drop=True), whole)


def _compared(halves: _Halves, test: pd.DataFrame, material: Material) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the pairs' differences of the change, and those on each half, each with its interval.

    A pair's change is told where its own tests pass, corrected over the pairs of one feature, and design x half is
    told for that feature.
    """
    settings, tables = replace(material.settings.of_other_tests, family="type"), []
    for which in (CHANGE, *HALVES):
        frame = halves.scores(which)
        matrix = seed_means(frame, halves.designs, halves.units)
        pairs = compare_pairs(matrix, halves.blocks, settings, material.control, frame, sizes=False)
        tables.append(simple_effects(pairs, matrix, halves.blocks, settings).assign(part=which))
    gate = tables[0]["type"].map(test.set_index("type")["told"]).astype(bool)
    return tables[0].assign(told=tables[0]["told"] & gate), pd.concat(tables[1:], ignore_index=True)


def _note(halves: _Halves, test: pd.DataFrame) -> str:
    """Say which features designs are told to depend on, and which two of them go together most."""
    names = test["type"].map(lambda name: FEATURES[name][0])
    each = [f"{name} p {equals(p)}" for name, p in zip(names, test["p_adjusted"], strict=True)]
    if (enough := test["n_seeds"] >= FEWEST_SEEDS).all():
        each = [f"{one}, seeds {equals(p)}" for one, p in zip(each, test["p_seeds_adjusted"], strict=True)]
    told = listed(list(names[test["told"]]), 4) or "none"
    claim = f"told: {told}" if enough.any() else "no claim about designs"
    finding = f"{halves.kind}, design x kind of query, corrected over {len(test)} features: {'; '.join(each)}; {claim}."
    above = halves.together.where(np.triu(np.ones(halves.together.shape, dtype=bool), k=1)).stack().dropna()
    if above.empty:
        return finding
    one, other = above.abs().idxmax()
    likest = f"{FEATURES[one][0]} and {FEATURES[other][0]} (rank correlation {signed(above[one, other], 2)})"
    return f"{finding} Features that go together most within a task: {likest}; the one may stand for the other."


def _grid(halves: _Halves, change: pd.DataFrame, parts: pd.DataFrame, settings: Settings) -> Grid:
    """One row per feature and design: its mean on both halves, and by how much more it is ahead on the upper."""
    reference, numbers = halves.reference, settings.numbers
    tables = {half: parts[parts["part"] == half] for half in HALVES} | {CHANGE: change}
    records = {which: _by_design(table, reference) for which, table in tables.items()}
    means = {half: seed_means(halves.scores(half), halves.designs, halves.units) for half in HALVES}

    def cells(row: Row) -> list[Cell]:
        feature, design = row["feature"], row["design"]
        title, *names = FEATURES[feature]
        units, items = halves.blocks[feature], halves.sizes[feature]
        counts = [f"{n:,} {name}" for n, name in zip(items, names, strict=True)]
        task_counts = f"{len(units)} tasks: {', '.join(counts)}" if design == halves.designs[0] else ""
        line = [Cell(title, below=tuple(filter(None, [task_counts]))), Cell(design)]
        for half in HALVES:
            test, mean = records[half].get((feature, design)), numbers.score(means[half].loc[units, design].mean())
            below = (f"{numbers.signed(test['mean'])} {numbers.interval(test['low'], test['high'])}",) if test else ()
            line.append(Cell(mean, below=below))
        test = records[CHANGE].get((feature, design))
        ends = numbers.interval(test["low"], test["high"]) if test else ""
        return [*line, marked_cell(numbers.signed(test["mean"]), test, settings, ends) if test else Cell("-")]

    level, shown = percent(settings.alpha), pd.DataFrame(records[CHANGE].values())
    caption = (
        f"Mean over {halves.kind} tasks of the score of each task's items up to (lower) and above (upper) the task's"
        f" median of a feature; below it the difference from {reference} with its {level} interval {over_what(shown)},"
        " uncorrected. Last column: the difference on the upper half less that on the lower, its interval, and p of the"
        f" signed-rank test over tasks{after_correction(settings)} over the pairs of one feature; * only where design x"
        f" half is told for that feature too. {star_legend(shown, settings)}. Tasks are the units; their items are of"
        " these runs only."
    )
    rows = pd.DataFrame([{"feature": name, "design": design} for name in halves.blocks for design in halves.designs])
    header = ["Queries by", "Design", "Lower half", "Upper half", "Upper - lower"]
    grid = Grid(f"fine-{halves.kind.lower()}", caption, header, left=2, title=f"{halves.kind} by kind of query")
    return filled(grid, rows, cells, settings.rows_shown, "rows; fine_retrieval.csv has all.")


def _by_design(table: pd.DataFrame, reference: str) -> dict[tuple[str, str], Row]:
    """Return (feature, design) -> its row, turned to design minus reference."""
    rows = from_reference(table, reference).to_dict("records")
    return {(row["type"], row["design"]): row for row in rows}
