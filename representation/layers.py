"""The worth of each layer, how layers resemble one another, and how far training moved each of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.style import MOST_DESIGNS
from analysis.render import Section, Table, in_percent
from evaluation.tasks.chosen import TaskSet
from evaluation.variants import read_by
from poolers.shared.vector_geometry import Floats, unit
from representation.encoders_studied import Studied, after_their_starts, distinct_backbones
from representation.figures import heat_panels, look
from representation.sections import each
from representation.texts import Arrays, Text, Texts, gathered
from representation.variants import arrays, score_variants, type_means, variants_of

PLACE = 10
FOLDER = "layer_scores"  # in the cache: among a study's scores, layers would be taken for designs of it
BY = ["decoder", "pooling", "layer"]
POOLINGS = {"mean": "mean of the tokens", "eos": "last token"}  # of a variant, in words
PANEL = 1.75, 1.7  # inches


def section(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Section:
    """Score every layer by mteb and compare layers over the sample of texts. Two forward passes per text at most."""
    distinct = distinct_backbones(encoders)
    scores = layer_scores(distinct, texts.task_set, settings)
    within, moved = layer_likeness(distinct, texts, settings)
    over, means = f"over {scores['task'].nunique()} tasks of {texts.benchmark}", type_means(scores, BY)
    caption = f"Mean over task types of the score of each layer, read without parameters, {over}."
    worth = _wide(means.mean(axis=1))
    tables = [
        Table("layers-scores", "Score of each layer", caption, worth, in_percent(worth), left=2),
    ]
    frames = {"layers_scores": scores, "layers_likeness": within}
    if len(moved):
        frames["layers_moved"] = moved
        caption = f"Linear CKA of each layer of a run and the same layer of its untrained start, over {texts.over}."
        changed = _wide(moved.groupby(BY, sort=False)["cka"].mean())
        tables.append(Table("layers-moved", "How far training moved each layer", caption, changed, left=2))
    curves, maps = partial(layer_curves, means, over), partial(layer_maps, within, texts.over)
    return Section("layers", "Layers", tables, lambda: [curves(), maps()], frames)


def _wide(values: pd.Series) -> pd.DataFrame:
    """Return (decoder, pooling) x layer of a series over (decoder, pooling, layer)."""
    wide = values.unstack("layer")
    wide = wide.loc[values.index.droplevel("layer").unique()]
    return wide.set_axis([f"Layer {layer}" for layer in wide.columns], axis=1).reset_index()


def layer_scores(distinct: Sequence[Studied], tasks: TaskSet, settings: dict[str, Any]) -> pd.DataFrame:
    """Return one row per (decoder, seed, pooling, layer, task) with its type and score, mteb's own.

    All layers come from one forward pass per text, and what was scored before is not scored again.
    """
    place = Path(settings["cache_dir"]) / FOLDER
    names = [f"layer:*/{pooling}" for pooling in POOLINGS]
    of = [(studied, variant) for studied in distinct for variant in read_by([studied.candidate], names)]
    labels = [studied.design for studied, _ in of]
    variants = [replace(variant, results=place) for _, variant in of]
    rows = []
    for variant, kind, task, value in score_variants(variants, tasks, settings):
        layer, _, pooling = variant.variant.removeprefix("layer:").partition("/")
        label = labels[variants.index(variant)]
        rows.append((label, variant.manifest["seed"], pooling, int(layer), kind, task, value))
    return pd.DataFrame(rows, columns=["decoder", "seed", "pooling", "layer", "type", "task", "score"])


def linear_cka(first: Floats, second: Floats) -> float:
    """Linear centred kernel alignment of [N, D] and [N, E]; NaN where one of them does not vary over the texts.

    ||Y'X||^2 / (||X'X|| ||Y'Y||), Frobenius norms, X and Y with their columns centred (Kornblith, Norouzi, Lee and
    Hinton 2019, "Similarity of neural network representations revisited", section 3 and equation of 3.1's linear
    kernel). From 0 to 1; unmoved by rotations of either side and by one common scale, not by other linear maps. With
    fewer texts than dimensions it is biased upwards.
    """
    x, y = (np.asarray(side, dtype=np.float64) for side in (first, second))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    norm = np.sqrt(_alignment(x, x) * _alignment(y, y))
    return float(_alignment(x, y) / norm) if norm > 0 else float("nan")


def _alignment(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """||y'x||^2, by way of the smaller of [D, E] and the texts' [N, N]: sum of (x x') * (y y')."""
    if len(x) < min(x.shape[1], y.shape[1]):
        return float(((x @ x.T) * (y @ y.T)).sum())
    return float(((y.T @ x) ** 2).sum())


def mean_cosine(first: Floats, second: Floats) -> float:
    """Mean over texts of the cosine between the two vectors of a text, [N, D] each; -1 to 1."""
    return float((unit(first) * unit(second)).sum(axis=1).mean())


MEASURES = {"cka": linear_cka, "cosine": mean_cosine}


def between_layers(vectors: Floats, measure: Callable[[Floats, Floats], float]) -> NDArray[np.float64]:
    """[L, L] `measure` of every pair of layers; vectors: [L, N, D]. `measure` is symmetric."""
    values = np.empty((len(vectors), len(vectors)))
    for i, j in combinations_with_replacement(range(len(vectors)), 2):
        values[i, j] = values[j, i] = measure(vectors[i], vectors[j])
    return values


def layer_vectors(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> Arrays:
    """Return pooling -> [L, N, D], the vectors of `wanted` as the layers have them; CKA looks at their lengths too."""
    words = [f"layer:{i}/{p}" for p in POOLINGS for i in range(studied.encoder().encoder.pooler.num_layers)]
    variants = variants_of(studied, dict(zip(words, words, strict=True)), normalize=False)
    vectors = gathered(texts.passes(studied, wanted, arrays(variants)), len(wanted))
    return {p: np.stack([vectors[word] for word in words if word.endswith(f"/{p}")]) for p in POOLINGS}


def layer_likeness(
    distinct: Sequence[Studied], texts: Texts, settings: dict[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (every two layers of a decoder, each layer of a run against the same layer of its start).

    Long tables with the columns decoder, seed, pooling, layer, (other,) cka, cosine. One pass over the sample per
    decoder and seed; the vectors of one start are kept while its runs are read.
    """
    within, moved = [], []
    starts: dict[str, Arrays] = {}
    of_start = after_their_starts(distinct)
    for studied, start in each(of_start, "similarity of layers", settings, lambda pair: str(pair[0].label)):
        vectors = layer_vectors(studied, texts, texts.every)
        if not studied.trained:
            starts = {studied.label: vectors}
        for pooling, layers in vectors.items():
            where = (studied.design, studied.seed, pooling)
            tables = [between_layers(layers, measure) for measure in MEASURES.values()]
            within += [(*where, i, j, *(values[i, j] for values in tables)) for i, j in np.ndindex(tables[0].shape)]
            if start in starts:
                pairs = enumerate(zip(layers, starts[start][pooling], strict=True))
                moved += [(*where, i, *(measure(*pair) for measure in MEASURES.values())) for i, pair in pairs]
    columns = ["decoder", "seed", "pooling", "layer"]
    return (
        pd.DataFrame(within, columns=[*columns, "other", *MEASURES]),
        pd.DataFrame(moved, columns=[*columns, *MEASURES]),
    )


def layer_curves(means: pd.DataFrame, over: str) -> Drawing:
    """means: (decoder, pooling, layer) x type. At most as many decoders as there are marks are drawn, the first."""
    every = list(dict.fromkeys(means.index.get_level_values("decoder")))
    shown = every[:MOST_DESIGNS]
    panels_of = canvas(PANEL[0] * len(means.columns) + 2.5, PANEL[1] * len(POOLINGS) + 0.4)
    panels = panels_of.subplots(len(POOLINGS), len(means.columns), sharex=True, sharey="col", squeeze=False)
    for (i, pooling), (j, kind) in product(enumerate(POOLINGS), enumerate(means.columns)):
        scores, axes = means[kind].xs(pooling, level="pooling"), panels[i, j]
        for k, name in enumerate(shown):
            axes.plot(scores[name], **look(k, 3.5, 1), label=name)
        axes.grid(axis="y")
        axes.set_title(kind if i == 0 else "")
        axes.set_ylabel(f"score, {POOLINGS[pooling]}" if j == 0 else "")
        axes.set_xlabel("layer" if i == len(POOLINGS) - 1 else "")
    panels_of.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right center")
    caption = f"Score of every layer on each task type, the last one after the final norm, mean over seeds, {over}."
    return Drawing("layers_curves", "Layer curves", caption, panels_of)


def layer_maps(within: pd.DataFrame, over: str) -> Drawing:
    """Draw linear CKA of every two layers, a panel for each decoder and variant; within: of `layer_likeness`."""
    named = within.assign(encoder=within["decoder"] + ", " + within["pooling"])
    drawn = heat_panels(named, ("layer", "other", "cka"), ("layer", "layer"), "linear CKA")
    return Drawing("layers_likeness", "Similarity of layers", f"Linear CKA of every two layers, over {over}.", drawn)
