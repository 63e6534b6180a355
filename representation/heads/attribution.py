"""Attention of trained heads: of multilayer heads over layers, of lastlayer heads over classes of tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from representation.encoders_studied import Studied, mean_by_design, over_seeds
from representation.figures import Look, Panel, Words, heat_panels
from representation.heads.attributed import Attributed, attributed, reads_layers, reads_tokens
from representation.question import each
from representation.texts import Texts

PLACE = 50
NAME = "attribution"
MOST_COLUMNS = 12  # of a table; of more layers the five with most attention are named
TOP = 5
OfTypes = dict[str, Attributed]  # task type -> its texts
Designs = dict[str, OfTypes]


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
    """Return how heads divide their attention, by task type; None where no pooler has a head over several keys."""
    with_heads: list[Studied] = []
    attention: list[OfTypes] = []
    over_layers = set()
    candidates = [s for s in encoders if s.config["pooler"]["name"] in ("multilayer", "lastlayer")]  # load no others
    for studied in each(candidates, NAME, settings):
        pooler = studied.encoder().encoder.pooler
        if reads_layers(pooler) or reads_tokens(pooler):
            with_heads.append(studied)
            attention.append({kind: attributed(studied, texts, wanted) for kind, wanted in texts.of_type.items()})
            over_layers |= {studied.design} if reads_layers(pooler) else set()
    if not with_heads:
        return None
    designs = mean_by_design(with_heads, attention, _mean)
    layers = {design: kinds for design, kinds in designs.items() if design in over_layers}
    tokens = {design: kinds for design, kinds in designs.items() if design not in over_layers}
    grids, drawings = [], []
    if layers:
        grids.append(_layer_grid(layers, texts.over))
        drawings.append(_layer_drawing(layers, texts.over))
    if tokens:
        grids.append(_token_grid(tokens, texts.over))
        drawings.append(_token_drawing(tokens, texts.over))
    note = "Attention says what a head reads, not what its vector would lose without it: see leave_one_layer_out."
    frames, notes = {NAME: _frame(with_heads, attention)}, [note, *over_seeds(with_heads)]
    return Answer(NAME, "Attention of the heads", grids, lambda: drawings, frames, notes)


def _mean(seeds: list[OfTypes]) -> OfTypes:
    return {kind: Attributed.over_seeds([of_types[kind] for of_types in seeds]) for kind in seeds[0]}


def _layer_grid(designs: Designs, over: str) -> Grid:
    names = [attention.names for kinds in designs.values() for attention in kinds.values()]
    wide = all(name == names[0] for name in names) and len(names[0]) <= MOST_COLUMNS
    header = [f"Layer {name}" for name in names[0]] if wide else [f"The {TOP} layers with most attention"]
    rows = []
    for label, kinds in designs.items():
        for kind, attention in kinds.items():
            cells = [score(x, 3) for x in attention.shares] if wide else [_top(attention)]
            rows.append([Cell(x) for x in (label, kind, *cells, score(float(attention.entropy.mean()), 3))])
    even = (
        f"spread evenly it would be {score(1 / len(names[0]), 3)} for each" if wide else "even attention is 1 / layers"
    )
    caption = (
        f"Attention of multilayer heads to the vector of each layer, mean over heads, queries and {over}; {even}. "
        "Entropy: over that of even attention, 1 where the head prefers no layer."
    )
    return Grid(f"{NAME}_layers", caption, ["Encoder", "Type", *header, "Entropy"], rows, left=2, title="Layers")


def _top(attention: Attributed) -> str:
    order = np.argsort(-attention.shares, kind="stable")[:TOP]
    return ", ".join(f"{attention.names[i]} ({score(float(attention.shares[i]), 3)})" for i in order)


def _token_grid(designs: Designs, over: str) -> Grid:
    read = _classes_read(designs)
    rows = []
    for label, kinds in designs.items():
        for kind, attention in kinds.items():
            cells = [f"{score(attention.shares[i], 3)} ({score(attention.expected[i], 3)})" for i in read.values()]
            rows.append([Cell(x) for x in (label, kind, *cells, score(float(attention.entropy.mean()), 3))])
    caption = (
        f"Attention of lastlayer heads to the tokens of each class, mean over heads, queries and {over}. In brackets "
        "the class's share of the tokens that the head reads, which even attention would give it. Entropy: over that "
        "of even attention, 1 where the head prefers no token. Content words: all that is neither punctuation nor a "
        "word of a closed list of English function words, pieces of words too."
    )
    return Grid(f"{NAME}_tokens", caption, ["Encoder", "Type", *read, "Entropy"], rows, left=2, title="Tokens")


def _classes_read(designs: Designs) -> dict[str, int]:
    """Class -> its number, of those that occur among the tokens read."""
    every = [attention for kinds in designs.values() for attention in kinds.values()]
    return {name: i for i, name in enumerate(every[0].names) if any(attention.expected[i] > 0 for attention in every)}


def _layer_drawing(designs: Designs, over: str) -> Drawing:
    panels = {
        label: Panel(
            np.stack([attention.shares for attention in kinds.values()]), list(kinds), next(iter(kinds.values())).names
        )
        for label, kinds in designs.items()
    }
    caption = (
        f"Attention of multilayer heads to each layer (to the right) by task type (downwards), mean over heads, "
        f"queries and {over}. A row sums to 1."
    )
    most = "; ".join(f"{label}: layer {_most(kinds)}" for label, kinds in designs.items())
    words = Words(f"{NAME}_layers", "Attention over layers", caption, f"Most attention: {most}.")
    return heat_panels(words, panels, Look("", "layer", "attention"))


def _most(kinds: OfTypes) -> str:
    every = list(kinds.values())
    return every[0].names[int(np.mean([attention.shares for attention in every], axis=0).argmax())]


def _token_drawing(designs: Designs, over: str) -> Drawing:
    read = _classes_read(designs)
    panels = {
        label: Panel(
            np.stack([_ratio(attention)[list(read.values())] for attention in kinds.values()]), list(kinds), list(read)
        )
        for label, kinds in designs.items()
    }
    caption = (
        "Attention of lastlayer heads to each class of tokens over the class's share of the tokens read, logarithm to "
        f"base 2, by task type, mean over heads, queries and {over}: +1 is twice what even attention would give, "
        "-1 half of it."
    )
    most = "; ".join(
        f"{label}: {max(read, key=lambda name: float(np.nanmean(panel.values[:, list(read).index(name)])))}"
        for label, panel in panels.items()
    )
    words = Words(f"{NAME}_tokens", "Attention over tokens", caption, f"Class most above its share: {most}.")
    return heat_panels(words, panels, Look("", "", "log2 of attention over share", centre=0, digits=1))


def _ratio(attention: Attributed) -> np.ndarray:
    """Return [C] log2 of attention over even attention; nan for classes that do not occur."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log2(attention.shares / attention.expected)
    return np.where(attention.expected > 0, ratio, np.nan)


def _frame(encoders: Sequence[Studied], attention: Sequence[OfTypes]) -> pd.DataFrame:
    rows = [
        {
            **{"encoder": studied.design, "seed": studied.seed, "type": kind, "key": name},
            **{"attention": read.shares[i], "even": read.expected[i]},
            **{"std_over_texts": read.attention[:, i].std(ddof=1), "entropy": read.entropy.mean()},
            "texts": len(read.entropy),
        }
        for studied, kinds in zip(encoders, attention, strict=True)
        for kind, read in kinds.items()
        for i, name in enumerate(read.names)
    ]
    return pd.DataFrame(rows)
