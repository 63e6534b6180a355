"""Attention of trained heads: of multilayer heads over layers, of lastlayer heads over classes of tokens."""

from typing import Any

import numpy as np
import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from representation.encoders_studied import Studied, over_seeds
from representation.figures import MOST_PANELS, heat_panels, not_drawn, tables_of
from representation.heads.attributed import CLASSES, Attributed, attributed, has_several_keys
from representation.heads.layer_columns import layer_columns
from representation.question import each
from representation.texts import Texts

PLACE = 50
NAME = "attribution"


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
    """Return how heads divide their attention, by task type; None where no pooler has a head over several keys."""
    candidates = [s for s in encoders if s.config["pooler"]["name"] in ("multilayer", "lastlayer")]  # load no others
    with_heads, rows = [], []
    for studied in each(candidates, NAME, settings):
        if has_several_keys(studied.encoder().encoder.pooler):
            with_heads.append(studied)
            rows += [_rows(studied, kind, attributed(studied, texts, of)) for kind, of in texts.of_type.items()]
    if not with_heads:
        return None
    frame = pd.concat(rows, ignore_index=True)
    numbers = ["attention", "even", "entropy"]
    means = frame.groupby(["encoder", "type", "key"], sort=False)[numbers].mean().reset_index()
    of_tokens, occurring = means["key"].isin(CLASSES), means.groupby("key")["even"].transform("max") > 0
    parts = [
        (means[~of_tokens], _layer_grid, _layer_drawing),
        (means[of_tokens & occurring], _token_grid, _token_drawing),
    ]
    shown = [part for part in parts if len(part[0])]
    asked = frame.groupby(["encoder", "type"], sort=False)[["length", "shifted"]].mean()
    moved = [_instruction_grid(asked[asked["length"] > 0], texts.over)] if (asked["length"] > 0).any() else []
    note = "Attention says what a head reads, not what its vector would lose without it: see leave_one_layer_out."
    return Answer(
        NAME,
        "Attention of the heads",
        [*(grid(of, texts.over) for of, grid, _ in shown), *moved],
        lambda: [drawing(of, texts.over) for of, _, drawing in shown],
        {NAME: frame},
        [note, *over_seeds(with_heads)],
    )


def _rows(studied: Studied, kind: str, read: Attributed) -> pd.DataFrame:
    """One row per key. length, shifted: of texts with an instruction, NaN without one."""
    instructed = read.length > 0
    effect = {of: getattr(read, of)[instructed].mean() if instructed.any() else np.nan for of in ("length", "shifted")}
    return pd.DataFrame(
        {
            **{"encoder": studied.design, "seed": studied.seed, "type": kind, "key": read.names},
            **{"attention": read.attention.mean(axis=0), "even": read.even.mean(axis=0)},
            "std_over_texts": [of_key.std(ddof=1) for of_key in read.attention.T],
            **{"entropy": read.entropy.mean(), "texts": len(read.entropy)},
            **effect,
        }
    )


def _three(value: float) -> str:
    return score(value, 3)


def _layer_grid(means: pd.DataFrame, over: str) -> Grid:
    header, cells = layer_columns(means.rename(columns={"key": "layer"}), "attention", "with most attention", _three)
    entropy = means.groupby(["encoder", "type"])["entropy"].first()
    rows = [[*map(Cell, key), *of_layers, Cell(_three(entropy[key]))] for key, of_layers in cells.items()]
    share = _three(1 / means["key"].nunique())
    wide = header[0].startswith("Layer ")  # not always from 0: pooler.layers may name some
    even = f"spread evenly it would be {share} for each" if wide else "even attention is 1 / layers"
    caption = (
        f"Attention of multilayer heads to the vector of each layer, mean over heads, queries and {over}; {even}. "
        "Entropy: over that of even attention, 1 where the head prefers no layer."
    )
    return Grid(f"{NAME}_layers", caption, ["Encoder", "Type", *header, "Entropy"], rows, left=2, title="Layers")


def _token_grid(means: pd.DataFrame, over: str) -> Grid:
    rows = []
    for key, of_keys in means.groupby(["encoder", "type"], sort=False):
        shares = [f"{_three(row.attention)} ({_three(row.even)})" for row in of_keys.itertuples()]
        rows.append([Cell(str(text)) for text in (*key, *shares, _three(of_keys["entropy"].iloc[0]))])
    caption = (
        f"Attention of lastlayer heads to the tokens of each class, mean over heads, queries and {over}. In brackets "
        "the class's share of the tokens that the head reads, which even attention would give it. Entropy: over that "
        "of even attention, 1 where the head prefers no token. Content words: all that is neither punctuation nor a "
        "word of a closed list of English function words, pieces of words too."
    )
    header = ["Encoder", "Type", *means["key"].unique(), "Entropy"]
    return Grid(f"{NAME}_tokens", caption, header, rows, left=2, title="Tokens")


def _instruction_grid(asked: pd.DataFrame, over: str) -> Grid:
    rows = [
        [Cell(str(label)), Cell(str(kind)), Cell(score(row["length"])), Cell(score(row["shifted"]))]
        for (label, kind), row in asked.iterrows()
    ]
    caption = (
        "Heads with pooler.query=instruction: the length of what the instruction adds to the projected queries over "
        "their own, and the share of the attention that goes to other keys for it, mean over heads, queries and those "
        f"with an instruction of {over}."
    )
    header = ["Encoder", "Type", "Length", "Attention moved"]
    return Grid(f"{NAME}_instruction", caption, header, rows, left=2, title="What the instruction moves")


def _layer_drawing(means: pd.DataFrame, over: str) -> Drawing:
    panels = tables_of(means, "type", "key", "attention")
    caption = (
        f"Attention of multilayer heads to each layer (to the right) by task type (downwards), mean over heads, "
        f"queries and {over}. A row sums to 1.{not_drawn(panels, MOST_PANELS)}"
    )
    most = "; ".join(f"{label}: layer {table.mean().idxmax()}" for label, table in panels.items())
    figure = heat_panels(panels, ("", "layer"), "attention")
    return Drawing(f"{NAME}_layers", "Attention over layers", caption, f"Most attention: {most}.", figure)


def _token_drawing(means: pd.DataFrame, over: str) -> Drawing:
    with np.errstate(divide="ignore"):
        ratio = np.log2(means["attention"] / means["even"].where(means["even"] > 0))
    panels = tables_of(means.assign(ratio=ratio), "type", "key", "ratio")
    caption = (
        "Attention of lastlayer heads to each class of tokens over the class's share of the tokens read, logarithm to "
        f"base 2, by task type, mean over heads, queries and {over}: +1 is twice what even attention would give, "
        f"-1 half of it.{not_drawn(panels, MOST_PANELS)}"
    )
    most = "; ".join(f"{label}: {table.mean().idxmax()}" for label, table in panels.items())
    figure = heat_panels(panels, ("", ""), "log2 of attention over share", centre=0, digits=1)
    return Drawing(f"{NAME}_tokens", "Attention over tokens", caption, f"Class most above its share: {most}.", figure)
