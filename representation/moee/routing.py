"""Experts that a trained router of adapter=mixse gives to task types, classes of tokens and texts.

Kang et al. 2024 (arXiv 2406.12034) show such a heat map over domains. A token's expert has the largest weight of it.
"""

from textwrap import shorten
from typing import Any

import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.grids.formats import score
from analysis.grids.grid import NONE, Cell, Grid
from analysis.questions.question import Answer
from cli.limits import Limit
from representation.encoders_studied import Studied
from representation.figures import MOST_PANELS, heat_panels, not_drawn, tables_of
from representation.moee.mixtures import mixtures, routes_experts
from representation.moee.token_routes import ALL, examples, measured, routed_experts, routes, shares, sublayers
from representation.moee.training_routes import change_drawing, change_grid, logged_routes
from representation.question import each
from representation.texts import Texts

Config = dict[str, Any]
PLACE = 115
NAME = "routing"
LIMITS = {"routing.shown": Limit(1), "routing.words": Limit(1)}
SHOWN = 90  # characters of a text
MEASURES = {
    "entropy": "Entropy",
    "largest": "Largest share",
    "text_nmi": "Type, text: NMI",
    "text_mutual": "AMI",
    "token_nmi": "Type, token: NMI",
    "class_nmi": "Class, token: NMI",
}
OF = {"type": "task type", "class": "class of token"}


def answer(encoders: list[Studied], texts: Texts, settings: Config) -> Answer | None:
    """Return the answer; None where no encoder is a run of adapter=mixse whose router has a choice."""
    runs, keys = [studied for studied in mixtures(encoders) if routes_experts(studied)], settings[NAME]
    if not runs:
        return None
    wanted, kinds = texts.every, [text.type for text in texts.every]
    shown = [text for sample in texts.of_type.values() for text in sample[: keys["shown"]]]
    tables: dict[str, list[Config]] = {"sublayers": [], "shares": [], "texts": [], "training": []}
    for studied in each(runs, NAME, settings):
        routing, names, experts = routes(studied, texts, wanted), sublayers(studied), routed_experts(studied)
        rows = {
            "sublayers": measured(routing, kinds, names),
            "shares": shares(routing, kinds, names, experts),
            "texts": examples(studied, texts, shown, experts, keys["words"]),
            "training": logged_routes(studied.candidate.folder, experts),
        }
        for name, of_run in rows.items():
            tables[name] += [{"encoder": studied.label, **row} for row in of_run]
    frames = {f"{NAME}_{name}": pd.DataFrame(rows) for name, rows in tables.items()}
    of_sublayers, of_shares, of_texts, of_training = frames.values()
    notes = [
        "Routing weights are the softmax over the routed experts, before top-k; a token's expert has the largest. "
        "An expert that is always on is not among them.",
        "Tokens of one text are not independent, so these numbers describe and test nothing.",
    ]
    if of_training.empty:
        notes.append("No log here has the routes of the training steps: the runs are older, or took no step.")
    grids = [
        sublayer_grid(of_sublayers, texts.over),
        share_grid(of_shares, texts.over),
        text_grid(of_texts, texts.over),
        *([] if of_training.empty else [change_grid(of_training)]),
    ]

    def draw() -> list[Drawing]:
        change = [] if of_training.empty else [change_drawing(of_training)]
        return [*_drawings(of_shares, texts.over), *change]

    return Answer(NAME, "Routes of the experts", grids, draw, frames, notes)


def sublayer_grid(frame: pd.DataFrame, over: str) -> Grid:
    """One row per encoder and sublayer, all of them first."""
    rows = [
        [Cell(r["encoder"]), Cell(r["sublayer"]), *(Cell(score(r[key], 3)) for key in MEASURES)]
        for r in frame.to_dict("records")
    ]
    caption = (
        f"Routers of adapter=mixse; {over}. Entropy: of a token's routing weights over that of even ones, mean over "
        "the texts' own tokens. Largest share: of these tokens, with the expert that has most. Type, text: agreement "
        "of a text's task type with the expert of largest mean weight over its own tokens, as normalised mutual "
        "information (above zero by chance already) and adjusted (AMI, zero on average by chance). Type, token and "
        "class, token: of each token's expert with the type of its text, and with its class."
    )
    header = ["Encoder", "Sublayer", *MEASURES.values()]
    return Grid(f"{NAME}-sublayers", caption, header, rows, left=2, title="Routers")


def share_grid(frame: pd.DataFrame, over: str) -> Grid:
    """One row per encoder, task type or class of token, and expert, over all sublayers."""
    whole = frame[frame["sublayer"] == ALL]
    rows = []
    for (encoder, of, group), part in whole.groupby(["encoder", "of", "group"], sort=False):
        best = part["share"].max()
        for r in part.itertuples():
            text = Cell(score(r.share, 3), style="best" if r.share == best else "")
            rows.append([Cell(str(encoder)), Cell(OF[str(of)]), Cell(str(group)), Cell(str(r.expert)), text])
    caption = (
        f"Share of the tokens whose largest routing weight an expert has, over all sublayers; {over}. Task types: of "
        "the texts' own tokens. Largest of each in bold."
    )
    return Grid(
        f"{NAME}-shares", caption, ["Encoder", "By", "Tokens of", "Expert", "Share"], rows, left=4, title="Shares"
    )


def text_grid(frame: pd.DataFrame, over: str) -> Grid:
    """One row per encoder, text and expert."""
    rows = []
    for r in frame.to_dict("records"):
        about = (r["encoder"], r["type"], shorten(r["text"], SHOWN, placeholder=" ..."), r["expert"])
        rows.append([*map(Cell, about), Cell(r["tokens"] or NONE), Cell(score(r["share"], 2))])
    caption = (
        "The first texts of each task type: the tokens with the largest routing weight of each expert, mean over "
        f"sublayers, with that weight, and the expert's share of the text's own tokens. Examples and no count; {over}."
    )
    header = ["Encoder", "Type", "Text", "Expert", "Tokens most surely its own", "Share"]
    return Grid(f"{NAME}-texts", caption, header, rows, left=5, title="Texts")


def _drawings(frame: pd.DataFrame, over: str) -> list[Drawing]:
    """Two heat maps per encoder, by task type and by class of token: sublayers downwards, one panel per expert."""
    drawings = []
    for place, (encoder, part) in enumerate(frame[frame["sublayer"] != ALL].groupby("encoder", sort=False)):
        for of, what in OF.items():
            by_expert = part[part["of"] == of].drop(columns="encoder").rename(columns={"expert": "encoder"})
            panels = tables_of(by_expert, "sublayer", "group", "share")
            caption = (
                f"Share of the tokens of each {what} whose largest routing weight the expert has, by sublayer; "
                f"{encoder}; {over}.{not_drawn(panels, MOST_PANELS)}"
            )
            most = ", ".join(f"{name} {table.to_numpy().mean():.2f}" for name, table in panels.items())
            figure = heat_panels(panels, ("sublayer", ""), "share of tokens")
            title = f"Experts by {what}: {encoder}"
            drawings.append(Drawing(f"{NAME}_{of}_{place}", title, caption, f"Mean share: {most}.", figure))
    return drawings
