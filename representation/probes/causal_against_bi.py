"""How far does a token's state move when the mask alone is changed? LLM2Vec's second probe (arXiv 2404.05961, 4.3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from analysis.formats import score
from analysis.tables.grid import Cell, Grid
from encoders.encoder import Encoder
from encoders.tokens import Batch
from representation.answer import Answer
from representation.backbones import by_design, distinct_backbones, over_seeds
from representation.heat_panels import Look, Panel, heat_panels
from representation.probes.position_means import PositionMeans, bin_names, bin_starts
from representation.probes.switched_attention import switched_attention
from representation.progress import each
from representation.styled import Words

if TYPE_CHECKING:
    import pandas as pd

    from representation.subject import Subject
    from representation.texts import Text, Texts

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
        [_drawing(found, over)],
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
    with switched_attention(encoder.backbone, is_causal=True):
        causal = encoder.each_layer(batch, layers, lambda _, hidden: hidden)
    with switched_attention(encoder.backbone, is_causal=False):
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
