"""How far does a token's state move when the mask alone is changed? LLM2Vec's second probe (arXiv 2404.05961, 4.3)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from analysis.grids.formats import score
from analysis.grids.grid import Cell, Grid
from analysis.questions.question import Answer
from encoders.attention.pattern import Pattern, pattern_of
from encoders.attention.switch import attention_of, set_attention
from encoders.encoder import Encoder
from encoders.tokens import Batch
from representation.encoders_studied import by_design, distinct_backbones, over_seeds
from representation.figures import Look, Panel, Words, heat_panels
from representation.progress import each

if TYPE_CHECKING:
    import pandas as pd

    from representation.encoders_studied import Subject
    from representation.texts import Text, Texts


@contextmanager
def switched_attention(backbone: PreTrainedModel, pattern: Pattern) -> Iterator[None]:
    """Within, `backbone` attends by `pattern`; afterwards by its own again, that of every loaded encoder."""
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
    def over_seeds(found: Sequence["PositionMeans"]) -> "PositionMeans":
        """The mean over encoders that have read the same texts."""
        first = found[0]
        sums, whole = (torch.stack([getattr(f, key) for f in found]).mean(dim=0) for key in ("sums", "of_texts"))
        return PositionMeans(first.starts, sums, first.texts, first.tokens, whole, first.longest)

    def add(self, values: Tensor, positions: Tensor, real: Tensor) -> None:
        """Take values [L, B, T] of the tokens at positions [B, T]; real: [B, T] bool, the tokens that count."""
        ends = torch.tensor([*self.starts[1:], torch.iinfo(torch.long).max], device=positions.device)
        place = torch.bucketize(positions, ends, right=True)
        member = torch.nn.functional.one_hot(place, len(self.starts)).double() * real[..., None]  # [B, T, bins]
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


NAME = "causal_against_bi"


def answer(subjects: "list[Subject]", texts: "Texts", settings: dict[str, Any]) -> Answer | None:
    """Return the cosine between a token's causal and bidirectional states under the same weights, layer by position.

    Every text is run twice, whatever attention the run was trained with; starts that share weights are one.
    """
    own = distinct_backbones(subjects, with_attention=False)
    wanted = list({text.text: text for text in texts.every}.values())
    each_seed = [measured(subject, texts, wanted) for subject in each(own, NAME, settings)]
    found = {
        design: PositionMeans.over_seeds([each_seed[own.index(subject)] for subject in seeds])
        for design, seeds in by_design(own).items()
    }
    over = f"over {len(wanted)} distinct texts ({texts.over})"
    return Answer(
        NAME,
        "Causal against bidirectional states",
        [_grid(found, over), _counts(found)],
        lambda: [_drawing(found, over)],
        {NAME: _frame(own, each_seed)},
        over_seeds(own),
    )


def measured(subject: "Subject", texts: "Texts", wanted: "Sequence[Text]") -> PositionMeans:
    """Means [L, bins] over texts of the cosines of their real tokens, BOS, instruction and EOS among them."""
    encoder = subject.encoder()
    layers = encoder.encoder.pooler.num_layers
    seen = PositionMeans.empty(layers, bin_starts(encoder.max_length))

    def compute(batch: Batch) -> None:
        seen.add(cosines(encoder.encoder, batch), batch.position_ids, batch.view.real)

    for _ in texts.passes(subject, wanted, compute):
        pass
    return seen


def cosines(encoder: Encoder, batch: Batch) -> Tensor:
    """[L, B, T] float32: cosine between each token's states with causal and with bidirectional attention.

    The states of one of the two are held for this batch, in the format of the model; the other's go layer by layer.
    Where there is padding the values mean nothing. The attention of `encoder` is afterwards what it was.
    """
    layers = range(encoder.pooler.num_layers)
    with switched_attention(encoder.backbone, pattern_of({"name": "causal"})):
        causal = encoder.each_layer(batch, layers, lambda _, hidden: hidden)
    with switched_attention(encoder.backbone, pattern_of({"name": "bi"})):
        return torch.stack(
            encoder.each_layer(
                batch,
                layers,
                lambda i, hidden: F.cosine_similarity(causal[i].float(), hidden.float(), dim=-1),
            )
        )


def _grid(found: dict[str, PositionMeans], over: str) -> Grid:
    rows = []
    for label, seen in found.items():
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


def _counts(found: dict[str, PositionMeans]) -> Grid:
    """How much each bin of positions is a mean of; the same for all encoders of one tokenizer and length."""
    distinct = {tuple(seen.texts.tolist()): (label, seen) for label, seen in reversed(found.items())}
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


def _drawing(found: dict[str, PositionMeans], over: str) -> Any:
    panels = {label: _panel(seen) for label, seen in found.items()}
    caption = (
        "Cosine between a token's states with causal and with bidirectional attention under the same weights, by layer "
        f"(downwards) and position in the text (to the right), mean over a text's tokens in a bin and then {over}."
    )
    said = "; ".join(f"{label} {score(float(seen.whole[-1]))}" for label, seen in found.items())
    words = Words(NAME, "Causal against bidirectional states", caption, f"Mean at the last layer: {said}.")
    return heat_panels(words, panels, Look("layer", "position", "cosine"))


def _panel(seen: PositionMeans) -> Panel:
    names = _bins(seen)
    return Panel(seen.means[:, : len(names)].numpy(), [str(i + 1) for i in range(len(seen.means))], names)


def _frame(own: "list[Subject]", found: list[PositionMeans]) -> "pd.DataFrame":
    import pandas as pd

    rows = [
        {
            **{"encoder": subject.design, "seed": subject.seed, "layer": layer + 1, "positions": name},
            **{"cosine": float(seen.means[layer, b]), "texts": int(seen.texts[b]), "tokens": int(seen.tokens[b])},
        }
        for subject, seen in zip(own, found, strict=True)
        for layer in range(len(seen.means))
        for b, name in enumerate(_bins(seen))
    ]
    return pd.DataFrame(rows)
