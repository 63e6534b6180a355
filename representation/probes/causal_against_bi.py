"""Movement of a token's state when the mask alone is changed: LLM2Vec's second probe (arXiv 2404.05961, 4.3)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from representation.encoders_studied import Studied, distinct_backbones, mean_by_design, over_seeds
from representation.figures import Look, Panel, Words, heat_panels
from representation.question import each
from representation.texts import Text, Texts

PLACE = 40
NAME = "causal_against_bi"


def answer(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Answer | None:
    """Return the cosine between a token's causal and bidirectional states under the same weights, layer by position.

    Every text is run twice, whatever attention the run was trained with; starts that share weights are one.
    """
    backbones, wanted = distinct_backbones(encoders, with_attention=False), texts.distinct
    means = [measured(studied, texts, wanted) for studied in each(backbones, NAME, settings)]
    designs = mean_by_design(backbones, means, PositionMeans.over_seeds)
    over = f"over {len(wanted)} distinct texts ({texts.over})"
    return Answer(
        NAME,
        "Causal against bidirectional states",
        [_grid(designs, over), _counts(designs)],
        lambda: [_drawing(designs, over)],
        {NAME: _frame(backbones, means)},
        over_seeds(backbones),
    )


def measured(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> "PositionMeans":
    """Return means [L, bins] over texts of the cosines of their real tokens, BOS, instruction and EOS among them."""
    encoder = studied.encoder()
    layers = encoder.encoder.pooler.num_layers
    seen = PositionMeans.empty(layers, bin_starts(encoder.max_length))

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
    starts = [0]
    while (following := max(1, 2 * starts[-1])) < longest:
        starts.append(following)
    return starts


def bin_names(starts: list[int], longest: int) -> list[str]:
    """Positions of each bin that a text of `longest` tokens reaches, from 0: "0", "1", "2-3"; the last ends with it."""
    starts = [start for start in starts if start < longest]
    ends = [*(start - 1 for start in starts[1:]), longest - 1]
    return [str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True)]


@dataclass
class PositionMeans:
    """Sums [L, bins] of each text's mean in a bin, and how many texts [bins] and tokens [bins] have reached it.

    longest: tokens of the longest text seen.
    """

    starts: list[int]
    sums: Tensor
    texts: Tensor
    tokens: Tensor
    of_texts: Tensor  # [L] sums of each text's mean over all its tokens
    longest: int = 0

    @staticmethod
    def empty(layers: int, starts: list[int]) -> "PositionMeans":
        """Nothing seen yet."""
        bins = len(starts)
        return PositionMeans(
            starts,
            torch.zeros(layers, bins, dtype=torch.float64),
            torch.zeros(bins, dtype=torch.long),
            torch.zeros(bins, dtype=torch.long),
            torch.zeros(layers, dtype=torch.float64),
        )

    @staticmethod
    def over_seeds(seeds: Sequence["PositionMeans"]) -> "PositionMeans":
        """The mean over encoders that have read the same texts."""
        first = seeds[0]
        sums, whole = (torch.stack([getattr(seen, key) for seen in seeds]).mean(dim=0) for key in ("sums", "of_texts"))
        return PositionMeans(first.starts, sums, first.texts, first.tokens, whole, first.longest)

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


def _grid(designs: dict[str, PositionMeans], over: str) -> Grid:
    rows = []
    for label, seen in designs.items():
        means = seen.whole
        low = int(means.argmin())
        middle = (len(means) - 1) // 2
        values = [*(score(float(means[i])) for i in (0, middle, -1)), f"{score(float(means[low]))} (layer {low + 1})"]
        rows.append([Cell(label), *map(Cell, values)])
    caption = (
        "Cosine between a token's states with causal and with bidirectional attention under the same weights, "
        f"mean over a text's tokens and then {over}. 1: the mask makes no difference."
    )
    header = ["Weights", "First layer", "Middle layer", "Last layer, after its norm", "Smallest"]
    return Grid(NAME, caption, header, rows, title="What the mask changes")


def _counts(designs: dict[str, PositionMeans]) -> Grid:
    """Texts and tokens behind each bin of positions; the same for all encoders of one tokenizer and length."""
    distinct = {tuple(seen.texts.tolist()): (label, seen) for label, seen in reversed(designs.items())}
    rows = [
        [Cell(label), Cell(name), Cell(str(int(texts))), Cell(str(int(tokens)))]
        for label, seen in reversed(distinct.values())
        for name, texts, tokens in zip(_bins(seen), seen.texts, seen.tokens, strict=False)
    ]
    caption = "Texts and tokens behind each bin of positions; encoders not listed have the counts of the first."
    return Grid(f"{NAME}_counts", caption, ["Weights", "Positions", "Texts", "Tokens"], rows, left=2, title="Counts")


def _bins(seen: PositionMeans) -> list[str]:
    """Names of the bins that some text reaches: the first ones, since every text begins at 0."""
    return bin_names(seen.starts, seen.longest)


def _drawing(designs: dict[str, PositionMeans], over: str) -> Drawing:
    panels = {
        label: Panel(
            seen.means[:, : len(_bins(seen))].numpy(), [str(i + 1) for i in range(len(seen.means))], _bins(seen)
        )
        for label, seen in designs.items()
    }
    caption = (
        "Cosine between a token's states with causal and with bidirectional attention under the same weights, by layer "
        f"(downwards) and position in the text (to the right), mean over a text's tokens in a bin and then {over}."
    )
    ends = "; ".join(f"{label} {score(float(seen.whole[-1]))}" for label, seen in designs.items())
    words = Words(NAME, "Causal against bidirectional states", caption, f"Mean at the last layer: {ends}.")
    return heat_panels(words, panels, Look("layer", "position", "cosine"))


def _frame(backbones: Sequence[Studied], means: list[PositionMeans]) -> pd.DataFrame:
    rows = [
        {
            **{"encoder": studied.design, "seed": studied.seed, "layer": layer + 1, "positions": name},
            **{"cosine": float(seen.means[layer, b]), "texts": int(seen.texts[b]), "tokens": int(seen.tokens[b])},
        }
        for studied, seen in zip(backbones, means, strict=True)
        for layer in range(len(seen.means))
        for b, name in enumerate(_bins(seen))
    ]
    return pd.DataFrame(rows)
