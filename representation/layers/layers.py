"""What each layer is worth, and how layers resemble one another: curves of scores, heat maps of similarity."""

from typing import TYPE_CHECKING, Any

from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from representation.encoders_studied import Subject, decoders
from representation.layers.figures import layer_curves, layer_grids, layer_maps
from representation.layers.likeness import layer_likeness, likeness_tables
from representation.layers.scores import layer_scores
from representation.layers.vectors import POOLINGS
from representation.texts import Texts

if TYPE_CHECKING:
    import pandas as pd


def answer(subjects: list[Subject], texts: Texts, settings: dict[str, Any]) -> Answer:
    """Score every layer by mteb and compare layers over the sample of texts. Two forward passes a text at most."""
    found = decoders(subjects)
    scores = layer_scores(found, texts.task_set, settings)
    within, moved = layer_likeness(found, texts, settings)
    over = f"{scores['task'].nunique()} tasks of {texts.benchmark}"
    grids = layer_grids(scores, over)
    grids += [_moved_grid(moved, texts.over)] if len(moved) else []
    trained = [decoder.label for decoder in found if decoder.trained]
    drawings = [layer_curves(scores, trained, over)]
    for pooling, said in POOLINGS.items():
        drawings.append(layer_maps(f"layers_likeness_{pooling}", likeness_tables(within, pooling), said, texts.over))
    frames = {"layers_scores": scores, "layers_likeness": within} | ({"layers_moved": moved} if len(moved) else {})
    return Answer("layers", "Layers", grids, lambda: drawings, frames, _notes(texts, scores))


def _moved_grid(moved: "pd.DataFrame", over: str) -> Grid:
    means = moved.groupby(["decoder", "pooling", "layer"], sort=False)[["cka", "cosine"]].mean()
    layers = sorted(moved["layer"].unique())
    rows = []
    for decoder, pooling in dict.fromkeys(zip(moved["decoder"], moved["pooling"], strict=True)):
        own = means.loc[decoder, pooling]
        cells = [Cell(score(own["cka"][layer], 3), below=(score(own["cosine"][layer], 3),)) for layer in layers]
        rows.append([Cell(decoder), Cell(POOLINGS[pooling]), *cells])
    caption = (
        "Each layer of a run against the same layer of its untrained start: linear CKA of their vectors, below it the "
        f"mean cosine of a text's two vectors; mean over seeds; over {over}."
    )
    header = ["Run", "Reading", *(f"Layer {layer}" for layer in layers)]
    return Grid("layers-moved", caption, header, rows, left=2, title="How far training moved each layer")


def _notes(texts: Texts, scores: "pd.DataFrame") -> list[str]:
    most = scores.groupby("type")["task"].nunique()
    few = [f"{kind} {count}" for kind, count in most.items()]
    return [
        f"Scores of layers are mteb's own on {texts.benchmark}, tasks a type: {', '.join(few)}. Differences between "
        "layers are shown, not tested: python evaluate.py readings=[...] gives scores that python -m analysis tests.",
        f"Linear CKA (Kornblith et al. 2019) is over {len(texts.every)} texts; with fewer texts than dimensions it is "
        "biased upwards.",
        "Untrained starts that differ in the head alone have the same layers and are there once.",
    ]
