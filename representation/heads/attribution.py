"""Where do trained heads look? Attention of multilayer heads over layers, of lastlayer heads over classes of tokens."""

from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from representation.encoders_studied import by_design, over_seeds
from representation.figures import Look, Panel, Words, heat_panels
from representation.heads.attributed import Attributed, attributed, reads_layers, reads_tokens
from representation.progress import each

if TYPE_CHECKING:
    import pandas as pd

    from analysis.drawings.drawing import Drawing
    from representation.encoders_studied import Subject
    from representation.texts import Texts

NAME = "attribution"
MOST_COLUMNS = 12  # of a table; of more layers the five with most attention are named
TOP = 5
Found = dict[str, dict[str, Attributed]]  # design -> task type -> its texts


def answer(subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> Answer | None:
    """Return how heads divide their attention, by task type; None where no pooler has a head over several keys."""
    own, each_seed, over_layers = [], [], set()
    for subject in each(_with_heads(subjects), NAME, settings):
        pooler = subject.encoder().encoder.pooler
        if reads_layers(pooler) or reads_tokens(pooler):
            own.append(subject)
            each_seed.append({kind: attributed(subject, texts, wanted) for kind, wanted in texts.of_type.items()})
            over_layers |= {subject.design} if reads_layers(pooler) else set()
    if not own:
        return None
    found = {design: _mean([each_seed[own.index(s)] for s in seeds]) for design, seeds in by_design(own).items()}
    layers = {design: kinds for design, kinds in found.items() if design in over_layers}
    tokens = {design: kinds for design, kinds in found.items() if design not in over_layers}
    grids, drawings = [], []
    if layers:
        grids.append(_layer_grid(layers, texts.over))
        drawings.append(_layer_drawing(layers, texts.over))
    if tokens:
        grids.append(_token_grid(tokens, texts.over))
        drawings.append(_token_drawing(tokens, texts.over))
    return Answer(
        NAME,
        "Attention of the heads",
        grids,
        lambda: drawings,
        {NAME: _frame(own, each_seed)},
        [
            "Attention says what a head reads, not what its vector would lose without it: see leave_one_layer_out.",
            *over_seeds(own),
        ],
    )


def _mean(seeds: list[dict[str, Attributed]]) -> dict[str, Attributed]:
    return {kind: Attributed.over_seeds([own[kind] for own in seeds]) for kind in seeds[0]}


def _with_heads(subjects: "list[Subject]") -> "list[Subject]":
    """Those whose pooler may have a head over several keys, so that no others are loaded."""
    return [s for s in subjects if s.config["pooler"]["name"] in ("multilayer", "lastlayer")]


def _layer_grid(found: Found, over: str) -> Grid:
    names = [own.names for kinds in found.values() for own in kinds.values()]
    wide = all(name == names[0] for name in names) and len(names[0]) <= MOST_COLUMNS
    header = [f"Layer {name}" for name in names[0]] if wide else [f"The {TOP} layers with most attention"]
    rows = []
    for label, kinds in found.items():
        for kind, own in kinds.items():
            cells = [score(x, 3) for x in own.shares] if wide else [_top(own)]
            rows.append([Cell(x) for x in (label, kind, *cells, score(float(own.entropy.mean()), 3))])
    even = (
        f"spread evenly it would be {score(1 / len(names[0]), 3)} for each" if wide else "even attention is 1 / layers"
    )
    caption = (
        f"Attention of multilayer heads to the vector of each layer, mean over heads, queries and {over}; {even}. "
        "Entropy: over that of even attention, 1 where the head prefers no layer."
    )
    return Grid(f"{NAME}_layers", caption, ["Encoder", "Type", *header, "Entropy"], rows, left=2, title="Layers")


def _top(own: Attributed) -> str:
    order = np.argsort(-own.shares, kind="stable")[:TOP]
    return ", ".join(f"{own.names[i]} ({score(float(own.shares[i]), 3)})" for i in order)


def _token_grid(found: Found, over: str) -> Grid:
    read = _classes_read(found)
    rows = []
    for label, kinds in found.items():
        for kind, own in kinds.items():
            cells = [f"{score(own.shares[i], 3)} ({score(own.expected[i], 3)})" for i in read.values()]
            rows.append([Cell(x) for x in (label, kind, *cells, score(float(own.entropy.mean()), 3))])
    caption = (
        f"Attention of lastlayer heads to the tokens of each class, mean over heads, queries and {over}. In brackets "
        "the class's share of the tokens that the head reads, which even attention would give it. Entropy: over that "
        "of even attention, 1 where the head prefers no token. Content words: all that is neither punctuation nor a "
        "word of a closed list of English function words, pieces of words too."
    )
    return Grid(f"{NAME}_tokens", caption, ["Encoder", "Type", *read, "Entropy"], rows, left=2, title="Tokens")


def _classes_read(found: Found) -> dict[str, int]:
    """Class -> its number, of those that occur among the tokens read."""
    every = [own for kinds in found.values() for own in kinds.values()]
    return {name: i for i, name in enumerate(every[0].names) if any(own.expected[i] > 0 for own in every)}


def _layer_drawing(found: Found, over: str) -> "Drawing":
    panels = {
        label: Panel(np.stack([own.shares for own in kinds.values()]), list(kinds), next(iter(kinds.values())).names)
        for label, kinds in found.items()
    }
    caption = (
        f"Attention of multilayer heads to each layer (to the right) by task type (downwards), mean over heads, "
        f"queries and {over}. A row sums to 1."
    )
    most = "; ".join(f"{label}: layer {_most(kinds)}" for label, kinds in found.items())
    words = Words(f"{NAME}_layers", "Attention over layers", caption, f"Most attention: {most}.")
    return heat_panels(words, panels, Look("", "layer", "attention"))


def _most(kinds: dict[str, Attributed]) -> str:
    own = list(kinds.values())
    return own[0].names[int(np.mean([a.shares for a in own], axis=0).argmax())]


def _token_drawing(found: Found, over: str) -> "Drawing":
    read = _classes_read(found)
    panels = {
        label: Panel(np.stack([_ratio(own)[list(read.values())] for own in kinds.values()]), list(kinds), list(read))
        for label, kinds in found.items()
    }
    caption = (
        "Attention of lastlayer heads to each class of tokens over the class's share of the tokens read, logarithm to "
        f"base 2, by task type, mean over heads, queries and {over}: +1 is twice what even attention would give, "
        "-1 half of it."
    )
    said = "; ".join(
        f"{label}: {max(read, key=lambda name: float(np.nanmean(panel.values[:, list(read).index(name)])))}"
        for label, panel in panels.items()
    )
    words = Words(f"{NAME}_tokens", "Attention over tokens", caption, f"Class most above its share: {said}.")
    return heat_panels(words, panels, Look("", "", "log2 of attention over share", centre=0, digits=1))


def _ratio(own: Attributed) -> np.ndarray:
    """[C] log2 of attention over even attention; nan for classes that do not occur."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log2(own.shares / own.expected)
    return np.where(own.expected > 0, ratio, np.nan)


def _frame(own: "list[Subject]", found: list[dict[str, Attributed]]) -> "pd.DataFrame":
    import pandas as pd

    rows = [
        {
            **{"encoder": subject.design, "seed": subject.seed, "type": kind, "key": name},
            **{"attention": read.shares[i], "even": read.expected[i]},
            **{"std_over_texts": read.attention[:, i].std(ddof=1), "entropy": read.entropy.mean()},
            "texts": len(read.entropy),
        }
        for subject, kinds in zip(own, found, strict=True)
        for kind, read in kinds.items()
        for i, name in enumerate(read.names)
    ]
    return pd.DataFrame(rows)
