"""Knowledge of tokens of what comes after them: LLM2Vec's probe (arXiv 2404.05961, section 4), held-out docstrings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from omegaconf import OmegaConf
from torch import Tensor
from torch.nn import functional as F

from analysis.drawings.canvas import canvas
from analysis.drawings.drawing import Drawing
from analysis.drawings.style import BLACK, MOST_DESIGNS
from analysis.render import Section, Table
from analysis.statistics.arrays import Floats
from analysis.statistics.intervals import student_interval
from cli.compose import CONF
from cli.errors import UserError
from cli.limits import Limit
from corpora.docstrings import read_docstrings
from encoders.encoder import Encoder
from encoders.text_encoder import TextEncoder
from encoders.tokens import Batch
from poolers.shared.base import INSTRUCTION, weighted_mean
from representation.encoders_studied import Studied, by_design, distinct_backbones
from representation.figures import look
from representation.read_ahead_texts import Quadruple, batches, quadruples, trios
from representation.sections import each
from representation.texts import Texts

PLACE = 30
NAME = "read_ahead"
LIMITS = {"read_ahead.triples": Limit(8)}
LEVEL = 0.95
MADE_OF = (
    "A is the one-sentence summary of a docstring, B that of a docstring of another package, C the beginning of the "
    "description under B, D the beginning of a description in a third package. q = (A, B), s+ = (A, C), s- = (A, D); "
    "B, C and D have as many tokens, and only the states of A's tokens are averaged."
)


def section(encoders: list[Studied], texts: Texts, settings: dict[str, Any]) -> Section | None:
    """Return cos(q, s+) - cos(q, s-) of the pooled states of A, by layer, for every backbone.

    Its texts are not the sample's: those of the benchmark have no two that begin alike. A causal layer cannot read
    ahead and has exactly zero. Raises `UserError` where no text fits.
    """
    triples, backbones = held_out(settings), distinct_backbones(encoders)
    values = [measured(studied.encoder(), triples) for studied in each(backbones, NAME, settings)]
    frames = [
        pd.DataFrame({"encoder": s.design, "seed": s.seed}, index=range(1)).merge(gains_of([of_run]), how="cross")
        for s, of_run in zip(backbones, values, strict=True)
    ]
    designs = {
        name: gains_of([values[backbones.index(s)] for s in seeds]) for name, seeds in by_design(backbones).items()
    }
    last = pd.DataFrame({"encoder": name, **layers.iloc[-1].to_dict()} for name, layers in designs.items())
    over = f"over triples of held-out docstrings that fit, with Student's {LEVEL:.0%} interval"
    caption = f"cos(q, s+) - cos(q, s-) of the last layer {over}; share: q nearer s+."
    shown = Table(NAME, "Reading ahead: last layer", caption, last.astype({"count": int, "layer": int}), digits=4)
    return Section(
        NAME, "Reading ahead", [shown], lambda: [_drawing(designs, over)], {NAME: pd.concat(frames)}, [MADE_OF]
    )


def held_out(settings: dict[str, Any]) -> list[Quadruple]:
    """Quadruples of the docstrings that are held out of all training (conf/data/docstrings.yaml).

    Raises `UserError` where one of these packages is not installed.
    """
    packages = list(OmegaConf.load(CONF / "data" / "docstrings.yaml").held_out)
    docstrings = read_docstrings(packages, settings["cache_dir"])
    return quadruples(docstrings, settings[NAME]["triples"], settings["texts_seed"])


def measured(encoder: TextEncoder, triples: Sequence[Quadruple]) -> Floats:
    """Return [L, n] cos(q, s+) - cos(q, s-) of every layer for each of n quadruples that fit into max_length.

    Raises `UserError` where fewer than two do.
    """
    fitting = trios(triples, encoder.tokenizer)
    if len(fitting) < 2:
        raise UserError(
            f"max_length={encoder.max_length} leaves room for {len(fitting)} of {len(triples)} texts of read_ahead. "
            "Leave the table out: tables=[...]."
        )
    model = encoder.encoder.eval()
    values = np.empty((model.pooler.num_layers, len(fitting)))
    for chunk, three in batches(fitting, encoder.tokenizer, encoder.back_off.budget):
        with torch.inference_mode():
            values[:, chunk] = gains(*(pooled_openings(model, batch.to(encoder.device)) for batch in three))
    return values


def pooled_openings(encoder: Encoder, batch: Batch) -> Tensor:
    """Return [L, B, D] float32: the mean over A's tokens (role INSTRUCTION) of each layer's states, the last normed."""
    weights = (batch.roles == INSTRUCTION).float()
    count = encoder.pooler.num_layers
    return torch.stack(encoder.each_layer(batch, range(count), lambda _, hidden: weighted_mean(hidden, weights)))


def gains(q: Tensor, plus: Tensor, minus: Tensor) -> Floats:
    """Return [...] of vectors [..., D]: cos(q, s+) - cos(q, s-). Exactly zero where s+ and s- are the same."""
    unit = [F.normalize(vectors.double(), dim=-1) for vectors in (q, plus, minus)]
    near, far = ((unit[0] * other).sum(dim=-1) for other in unit[1:])
    difference: Floats = (near - far).cpu().numpy()
    return difference


def gains_of(seeds: Sequence[Floats]) -> pd.DataFrame:
    """Return one row per layer, from 1, of the differences [L, n] of n triples, at least two, of one array per seed.

    mean, low, high: over triples, each averaged over seeds, with Student's interval; share: of triples and seeds above
    zero, those at zero by half; count: of triples.
    """
    every = np.stack(seeds)
    triples = every.mean(axis=0)
    low, high = student_interval(triples, LEVEL)
    share = (every > 0).mean(axis=(0, 2)) + (every == 0).mean(axis=(0, 2)) / 2
    layers = range(1, len(triples) + 1)
    ends = {"mean": triples.mean(axis=1), "low": low, "high": high}
    return pd.DataFrame({"layer": layers, **ends, "share": share, "count": triples.shape[1]})


def _drawing(designs: dict[str, pd.DataFrame], over: str) -> Drawing:
    """Draw every layer of each design, at most twelve."""
    drawn = canvas(7.0, 3.2)
    axes = drawn.add_subplot()
    for k, (label, layers) in enumerate(list(designs.items())[:MOST_DESIGNS]):
        style = look(k, 4)
        axes.fill_between(layers["layer"], layers["low"], layers["high"], color=style["color"], alpha=0.15, linewidth=0)
        axes.plot(layers["layer"], layers["mean"], label=label, **style)
    axes.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("layer")
    axes.set_ylabel("cos(q, s+) \N{MINUS SIGN} cos(q, s\N{MINUS SIGN})")
    axes.grid(axis="y")
    drawn.legend(loc="outside right center")
    caption = f"cos(q, s+) - cos(q, s-) layer by layer, {over}. Above zero a token's state knows what comes after it."
    return Drawing(NAME, "Reading ahead by layer", caption, drawn)
