"""Experts that a trained router of adapter=mixse gives to task types, classes of tokens and texts.

Kang et al. 2024 (arXiv 2406.12034) show such a heat map over domains. A token's expert has the largest weight of it.
"""

from functools import partial
from typing import Any

import pandas as pd

from analysis.drawings.drawing import Drawing
from analysis.render import Section, Table
from representation.encoders_studied import Studied
from representation.figures import heat_panels
from representation.moee.mixtures import mixtures, routes_experts
from representation.moee.token_routes import ALL, measured, routed_experts, routes, shares, sublayers
from representation.sections import each
from representation.texts import Texts

Config = dict[str, Any]
PLACE = 115
NAME = "routing"
COLUMNS = [
    "entropy: of a token's routing weights (softmax over the routed experts, before top-k) over that of even ones, "
    "mean over the texts' own tokens; largest: share of these tokens with the expert that has most.",
    "text_nmi, text_mutual: agreement of a text's task type with the expert of largest mean weight, as normalised "
    "(above zero by chance already) and adjusted mutual information.",
    "token_nmi, class_nmi: of each token's expert with the type of its text, and with its class.",
]
OF = {"type": "task type", "class": "class of token"}


def section(encoders: list[Studied], texts: Texts, settings: Config) -> Section | None:
    """Return the section; None where no encoder is a run of adapter=mixse whose router has a choice."""
    runs = [studied for studied in mixtures(encoders) if routes_experts(studied)]
    if not runs:
        return None
    wanted, kinds = texts.every, [text.type for text in texts.every]
    rows: dict[str, list[Config]] = {"sublayers": [], "shares": []}
    for studied in each(runs, NAME, settings):
        routing, names, experts = routes(studied, texts, wanted), sublayers(studied), routed_experts(studied)
        about = {"encoder": studied.label}
        rows["sublayers"] += [about | row for row in measured(routing, kinds, names)]
        rows["shares"] += [about | row for row in shares(routing, kinds, names, experts)]
    frames = {f"{NAME}_{name}": pd.DataFrame(of) for name, of in rows.items()}
    of_sublayers, of_shares = frames.values()
    tables = _tables(of_sublayers, of_shares, texts.over)
    draw = partial(_drawings, of_shares, texts.over)
    return Section(NAME, "Routes of the experts", tables, draw, frames, COLUMNS)


def _tables(sublayers: pd.DataFrame, by_group: pd.DataFrame, over: str) -> list[Table]:
    routers = f"Routers of adapter=mixse; {over}. The notes below say what the columns are."
    counted = f"Share of the tokens whose largest routing weight an expert has, over all sublayers; {over}."
    whole = by_group[by_group["sublayer"] == ALL]
    whole = whole.pivot_table(index=["encoder", "of", "group"], columns="expert", values="share", sort=False)
    return [
        Table(f"{NAME}-sublayers", "Routers", routers, sublayers, left=2),
        Table(f"{NAME}-shares", "Shares", counted, whole.reset_index(), left=3),
    ]


def _drawings(frame: pd.DataFrame, over: str) -> list[Drawing]:
    """Draw heat maps of each encoder and expert, by task type and by class of token: sublayers downwards."""
    return [_drawing(frame, of, over) for of in OF]


def _drawing(frame: pd.DataFrame, of: str, over: str) -> Drawing:
    part = frame[(frame["sublayer"] != ALL) & (frame["of"] == of)]
    named = part.assign(encoder=part["encoder"] + ", expert " + part["expert"])
    drawn = heat_panels(named, ("sublayer", "group", "share"), ("sublayer", ""), "share of tokens")
    caption = f"Share of the tokens of each {OF[of]} whose largest routing weight the expert has; {over}."
    return Drawing(f"{NAME}_{of}", f"Experts by {OF[of]}", caption, drawn)
