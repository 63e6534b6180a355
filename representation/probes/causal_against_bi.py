"""Movement of a token's state when the mask alone is changed: LLM2Vec's second probe (arXiv 2404.05961, 4.3)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from analysis.drawings.drawing import Drawing
from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from encoders.attention.pattern import Pattern, pattern_of
from encoders.attention.switch import attention_of, set_attention
from encoders.encoder import Encoder
from encoders.tokens import Batch
from representation.encoders_studied import Studied, distinct_backbones, over_seeds
from representation.figures import MOST_PANELS, heat_panels, not_drawn, tables_of
from representation.question import each
from representation.texts import Text, Texts

PLACE = 40
NAME = "causal_against_bi"
WHOLE = "all"  # in the place of a bin's positions


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
    """Return the cosine between a token's causal and bidirectional states under the same weights, layer by position.

    Every text is run twice, whatever attention the run was trained with; starts that share weights are one.
    """
    backbones, wanted = distinct_backbones(encoders, with_attention=False), texts.distinct
    every = [
        {"encoder": studied.design, "seed": studied.seed, **row}
        for studied in each(backbones, NAME, settings)
        for row in measured(studied, texts, wanted).rows()
    ]
    frame, over = pd.DataFrame(every), f"over {len(wanted)} distinct texts ({texts.over})"
    whole, binned = frame[frame["positions"] == WHOLE], frame[frame["positions"] != WHOLE]
    last = tables_of(whole, "positions", "layer", "cosine")
    return Answer(
        NAME,
        "Causal against bidirectional states",
        [_grid(last, over), _counts(binned)],
        lambda: [_drawing(tables_of(binned, "layer", "positions", "cosine"), last, over)],
        {NAME: binned},
        over_seeds(backbones),
    )


def measured(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> "PositionMeans":
    """Return means [L, bins] over texts of the cosines of their real tokens, BOS, instruction and EOS among them."""
    encoder = studied.encoder()
    seen = PositionMeans(encoder.encoder.pooler.num_layers, bin_starts(encoder.max_length))

    def compute(batch: Batch) -> None:
        seen.add(cosines(encoder.encoder, batch), batch.position_ids, batch.view.real)

    for _ in texts.passes(studied, wanted, compute):
        pass
    return seen


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


class PositionMeans:
    """Sums [L, bins] of each text's mean in a bin, and how many texts [bins] and tokens [bins] have reached it."""

    def __init__(self, layers: int, starts: list[int]) -> None:
        self.starts = starts
        self.sums = torch.zeros(layers, len(starts), dtype=torch.float64)
        self.texts, self.tokens = torch.zeros(2, len(starts), dtype=torch.long)
        self.of_texts = torch.zeros(layers, dtype=torch.float64)  # sums of each text's mean over all its tokens
        self.longest = 0  # tokens of the longest text seen

    def add(self, values: Tensor, positions: Tensor, real: Tensor) -> None:
        """Take values [L, B, T] of the tokens at positions [B, T]; real: [B, T] bool, the tokens that count."""
        ends = torch.tensor([*self.starts[1:], torch.iinfo(torch.long).max], device=positions.device)
        place = torch.bucketize(positions, ends, right=True)
        member = F.one_hot(place, len(self.starts)).double() * real[..., None]  # [B, T, bins]
        count = member.sum(dim=1)  # [B, bins]
        kept = values.double().masked_fill(~real, 0.0)
        means = torch.einsum("lbt,btn->lbn", kept, member) / count.clamp(min=1)
        self.sums += means.sum(dim=1).cpu()
        self.of_texts += (kept.sum(dim=-1) / real.sum(dim=1)).sum(dim=1).cpu()
        self.texts += (count > 0).sum(dim=0).cpu()
        self.tokens += count.sum(dim=0).long().cpu()
        self.longest = max(self.longest, int(real.sum(dim=1).max()))

    @property
    def means(self) -> Tensor:
        """[L, bins] float64: the mean over the texts that reach a bin; nan where none does."""
        return self.sums / torch.where(self.texts > 0, self.texts.double(), torch.nan)

    @property
    def whole(self) -> Tensor:
        """[L] float64: the mean over all texts of each text's mean over all its tokens."""
        return self.of_texts / self.texts[0]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield layer, from 1, positions, cosine, texts and tokens of each bin that is reached, and of all of them."""
        bins = bin_names(self.starts, self.longest)  # the first ones, since every text begins at 0
        for layer, (means, whole) in enumerate(zip(self.means.tolist(), self.whole.tolist(), strict=True), start=1):
            counts = zip(bins, means, self.texts.tolist(), self.tokens.tolist(), strict=False)
            for row in (*counts, (WHOLE, whole, int(self.texts[0]), int(self.tokens.sum()))):
                yield {"layer": layer, **dict(zip(("positions", "cosine", "texts", "tokens"), row, strict=True))}


def _grid(whole: Mapping[str, pd.DataFrame], over: str) -> Grid:
    rows = []
    for label, table in whole.items():
        means = table.loc[WHOLE]
        first, middle, last = (score(means.iloc[i]) for i in (0, (len(means) - 1) // 2, -1))
        cells = [label, first, middle, last, f"{score(means.min())} (layer {means.idxmin()})"]
        rows.append([Cell(text) for text in cells])
    caption = (
        "Cosine between a token's states with causal and with bidirectional attention under the same weights, "
        f"mean over a text's tokens and then {over}. 1: the mask makes no difference."
    )
    header = ["Weights", "First layer", "Middle layer", "Last layer, after its norm", "Smallest"]
    return Grid(NAME, caption, header, rows, title="What the mask changes")


def _counts(binned: pd.DataFrame) -> Grid:
    """Texts and tokens behind each bin of positions; the same for all encoders of one tokenizer and length."""
    rows, counted = [], set()
    for label, part in binned[binned["layer"] == 1].groupby("encoder", sort=False):
        bins = part.drop_duplicates("positions")  # all seeds read the same
        if (counts := tuple(bins["texts"])) not in counted:
            counted.add(counts)
            rows += [[Cell(str(x)) for x in (label, *row)] for row in bins[["positions", "texts", "tokens"]].to_numpy()]
    caption = "Texts and tokens behind each bin of positions; encoders not listed have the counts of the first."
    header = ["Weights", "Positions", "Texts", "Tokens"]
    return Grid(f"{NAME}_counts", caption, header, rows, left=2, title="Counts")


def _drawing(panels: Mapping[str, pd.DataFrame], whole: Mapping[str, pd.DataFrame], over: str) -> Drawing:
    caption = (
        "Cosine between a token's states with causal and with bidirectional attention under the same weights, by layer "
        f"(downwards) and position in the text (to the right), mean over a text's tokens in a bin and then {over}."
        f"{not_drawn(panels, MOST_PANELS)}"
    )
    ends = "; ".join(f"{label} {score(table.iloc[0, -1])}" for label, table in whole.items())
    figure = heat_panels(panels, ("layer", "position"), "cosine")
    alt = f"Mean at the last layer: {ends}."
    return Drawing(NAME, "Causal against bidirectional states", caption, alt, figure)
