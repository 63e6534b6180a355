"""What does a multilayer head lose when it cannot read one of its layers? An intervention without training."""

import sys
from typing import TYPE_CHECKING, Any

from analysis.formats import score, signed
from analysis.tables.grid import Cell, Grid
from representation.answer import Answer
from representation.backbones import over_seeds
from representation.heads.layer_drops import LEVEL, drops, layer_drops
from representation.heat_panels import Look, Panel, heat_panels
from representation.progress import each
from representation.styled import Words

if TYPE_CHECKING:
    import pandas as pd

    from analysis.figures.drawing import Drawing
    from representation.subject import Subject
    from representation.texts import Texts

NAME = "leave_one_layer_out"
MOST_COLUMNS = 12
TOP = 5


def answer(subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> Answer | None:
    """Score every multilayer encoder L + 1 times on the benchmark's tasks, from one forward pass a text.

    None where there is no multilayer encoder of two layers or more.
    """
    own = [s for s in subjects if s.config["pooler"]["name"] == "multilayer"]
    if not own:
        return None
    import pandas as pd

    print(f"{NAME}: {len(own)} encoders on {len(texts.task_set.tasks)} tasks, with all layers and without each.",
          file=sys.stderr, flush=True)  # fmt: skip
    made = []
    for subject in each(own, NAME, settings):
        if len(subject.encoder().encoder.pooler.layers) > 1:
            table = layer_drops(subject, texts.task_set, settings)
            made.append(table.assign(encoder=subject.design, seed=subject.seed))
    if not made:
        return None
    scores = pd.concat(made, ignore_index=True)
    found = {str(design): drops(table) for design, table in scores.groupby("encoder", sort=False)}
    over = f"over {scores['task'].nunique()} tasks of {texts.benchmark}"
    tables = [table.assign(encoder=design) for design, table in found.items()]
    return Answer(
        NAME,
        "One layer left out",
        [_grid(found, over)],
        [_drawing(found, over)],
        {NAME: pd.concat(tables, ignore_index=True), f"{NAME}_scores": scores},
        [
            "An intervention on the finished head: the layer's key is masked out of the softmax and nothing is trained "
            "again. A head trained without that layer could do better: a drop does not measure what the layer knows.",
            "Layers above were still computed from the one left out: only the head's own reading of it is cut.",
            "Intervals are not corrected for their number: of twenty, one leaves out zero by chance alone. They are "
            "of these encoders on other tasks.",
            *over_seeds(own),
        ],
    )


def _grid(found: dict[str, "pd.DataFrame"], over: str) -> Grid:
    layers = [list(dict.fromkeys(table["layer"])) for table in found.values()]
    wide = all(own == layers[0] for own in layers) and len(layers[0]) <= MOST_COLUMNS
    header = [f"Layer {layer}" for layer in layers[0]] if wide else [f"The {TOP} layers of the largest drop"]
    rows = []
    for label, table in found.items():
        for kind, own in table.groupby("type", sort=False):
            cells = [_cell(row) for row in own.itertuples()] if wide else [Cell(_top(own))]
            rows.append([Cell(label), Cell(str(kind)), Cell(score(own["whole"].iloc[0])), *cells])
    caption = (
        f"Score with all layers, and its drop when the head cannot read one of them (masked, no training), {over}. "
        f"Below it the {LEVEL:.0%} interval (Student's t over the tasks of the row, where there are several). Above "
        "zero: the layer was of use."
    )
    return Grid(NAME, caption, ["Encoder", "Type", "All layers", *header], rows, left=2, title="Drop without a layer")


def _cell(row: Any) -> Cell:
    return Cell(signed(row.drop), below=(f"{signed(row.low)} to {signed(row.high)}",) if row.tasks > 1 else ())


def _top(own: "pd.DataFrame") -> str:
    most = own.sort_values("drop", ascending=False, kind="stable").head(TOP)
    return ", ".join(f"{row.layer} ({signed(row.drop)})" for row in most.itertuples())


def _drawing(found: dict[str, "pd.DataFrame"], over: str) -> "Drawing":
    panels = {}
    for label, table in found.items():
        kinds, layers = list(dict.fromkeys(table["type"])), list(dict.fromkeys(table["layer"]))
        values = table.pivot(index="type", columns="layer", values="drop").loc[kinds, layers].to_numpy()
        panels[label] = Panel(values, kinds, layers)
    caption = (
        "Drop of the score when a multilayer head cannot read one layer (to the right; its key is masked, nothing is "
        f"trained again), mean by task type (downwards), {over}. Above zero: the layer was of use."
    )
    said = "; ".join(f"{label}: {_most(table)}" for label, table in found.items())
    words = Words(NAME, "Score lost without one layer", caption, f"Largest drop: {said}.")
    return heat_panels(words, panels, Look("", "layer left out", "drop in score", centre=0, digits=3))


def _most(table: "pd.DataFrame") -> str:
    last = table[table["type"] == table["type"].iloc[-1]]
    row = last.loc[last["drop"].idxmax()]
    return f"{signed(row['drop'])} ({row['type']}, layer {row['layer']})"
