"""Movement of a token's state when the mask alone is changed: LLM2Vec's second probe (arXiv 2404.05961, 4.3)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from analysis.drawings.drawing import Drawing
from analysis.render import Section, Table
from encoders.attention.pattern import Pattern, pattern_of
from encoders.attention.switch import attention_of, set_attention
from encoders.encoder import Encoder
from encoders.tokens import Batch
from representation.encoders_studied import Studied, distinct_backbones
from representation.figures import heat_panels
from representation.sections import each
from representation.texts import Text, Texts

PLACE = 40
NAME = "causal_against_bi"
WHOLE = "all"  # in the place of a bin's positions
SHOWN = "Cosine between a token's states with causal and with bidirectional attention under the same weights"


def section(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Section | None:
    """Return the cosine between a token's causal and bidirectional states under the same weights, layer by position.

    Every text is run twice, whatever attention the run was trained with; starts that share weights are one.
    """
    backbones, wanted = distinct_backbones(encoders, with_attention=False), texts.distinct
    every = [
        {"encoder": studied.design, "seed": studied.seed, **row}
        for studied in each(backbones, NAME, settings)
        for row in measured(studied, texts, wanted)
    ]
    frame, over = pd.DataFrame(every), f"over {len(wanted)} distinct texts ({texts.over})"
    whole, binned = frame[frame["positions"] == WHOLE], frame[frame["positions"] != WHOLE]
    of_layers = whole.groupby(["encoder", "layer"], sort=False)["cosine"].mean().unstack()
    of_layers = of_layers.loc[whole["encoder"].unique()].rename(columns=lambda k: f"Layer {k}").reset_index()
    caption = f"{SHOWN}, mean over a text's tokens and then {over}. 1: the mask makes no difference."
    shown = Table(NAME, "What the mask changes", caption, of_layers)
    return Section(
        NAME, "Causal against bidirectional states", [shown], lambda: [_drawing(binned, over)], {NAME: binned}
    )


def measured(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> list[dict[str, Any]]:
    """Return a row per layer, from 1, and bin of positions (and "all"): the mean over texts of each text's mean cosine.

    Real tokens count, BOS, instruction and EOS among them. positions: "0", "1", "2-3"; the last ends with the longest
    text. texts: how many reach the bin.
    """
    encoder = studied.encoder()
    layers, starts = encoder.encoder.pooler.num_layers, np.array(bin_starts(encoder.max_length))
    sums, count, whole, longest = np.zeros((layers, len(starts))), np.zeros(len(starts), int), np.zeros(layers), 0
    passes = texts.passes(studied, wanted, lambda batch: (cosines(encoder.encoder, batch), batch.view.real))
    for _, (values, real) in passes:
        for of_text in (values[:, k, real[k]].double().cpu().numpy() for k in range(len(real))):  # [L, tokens]
            length = of_text.shape[1]
            reached = starts[starts < length]
            sums[:, : len(reached)] += np.add.reduceat(of_text, reached, axis=1) / np.diff([*reached, length])
            count[: len(reached)] += 1
            whole += of_text.mean(axis=1)
            longest = max(longest, length)
    columns = [*zip(bin_names(starts.tolist(), longest), (sums / np.maximum(count, 1)).T, count, strict=False)]
    columns.append((WHOLE, whole / count[0], count[0]))
    return [
        {"layer": layer + 1, "positions": name, "cosine": means[layer], "texts": int(reaching)}
        for layer in range(layers)
        for name, means, reaching in columns
    ]


def cosines(encoder: Encoder, batch: Batch) -> Tensor:
    """Return [L, B, T] float32: cosine between each token's states with causal and with bidirectional attention.

    The states of one of the two are held for this batch, in the format of the model; the other's go layer by layer.
    Where there is padding the values mean nothing. The attention of `encoder` is afterwards what it was.
    """
    layers = range(encoder.pooler.num_layers)
    with switched_attention(encoder.backbone, pattern_of({"name": "causal"})):
        causal = encoder.each_layer(batch, layers, lambda _, hidden: hidden)
    with switched_attention(encoder.backbone, pattern_of({"name": "bi"})):

        def against_causal(i: int, hidden: Tensor) -> Tensor:
            return F.cosine_similarity(causal[i].float(), hidden.float(), dim=-1)

        return torch.stack(encoder.each_layer(batch, layers, against_causal))


@contextmanager
def switched_attention(backbone: PreTrainedModel, pattern: Pattern) -> Iterator[None]:
    """Let `backbone` attend by `pattern`, and afterwards by its own again."""
    usual = attention_of(backbone)
    set_attention(backbone, pattern)
    try:
        yield
    finally:
        set_attention(backbone, usual)


def bin_starts(longest: int) -> list[int]:
    """First position of each bin: 0, 1, 2, 4, 8, ... below `longest`, the tokens of the longest text."""
    return [0, *(2**k for k in range((longest - 1).bit_length()))]


def bin_names(starts: list[int], longest: int) -> list[str]:
    """Positions of each bin that a text of `longest` tokens reaches, from 0: "0", "1", "2-3"; the last ends with it."""
    starts = [start for start in starts if start < longest]
    ends = [*(start - 1 for start in starts[1:]), longest - 1]
    return [str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True)]


def _drawing(binned: pd.DataFrame, over: str) -> Drawing:
    drawn = heat_panels(binned, ("layer", "positions", "cosine"), ("layer", "position"), "cosine")
    caption = f"{SHOWN}, by layer and position in the text, mean over a text's tokens in a bin and then {over}."
    return Drawing(NAME, "Causal against bidirectional states", caption, drawn)
