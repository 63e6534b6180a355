"""An encoder whose backbone is frozen: its states come from a cache, only the pooler computes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from encoders.chunking import by_token_budget
from encoders.encoder import Encoder
from encoders.frozen.state_cache import StateCache
from encoders.identity import deciding, rounding
from encoders.precision import Precision
from encoders.tokens import Batch, TextTokenizer, Tokens
from poolers.shared.base import States

Config = dict[str, Any]


class CachedEncoder(Encoder):
    """Gives the pooler what `Encoder` would give it, read from `cache`; a text that is not there is an error.

    The backbone is in evaluation mode always: a state is computed once, so it can know no dropout.
    """

    def __init__(self, encoder: Encoder, cache: StateCache) -> None:
        super().__init__(encoder.backbone, encoder.pooler, encoder.normalize, encoder.compute)
        self.cache, self.lineage = cache, encoder.lineage

    def train(self, mode: bool = True) -> "CachedEncoder":
        """Set the mode of the pooler."""
        super().train(mode)
        self.backbone.eval()
        return self

    def states(self, batch: Batch) -> States:
        """Return what the pooler consumes: [B, T, D] of the last layer, or its reduction of each layer."""
        pooler, places = self.pooler, self.cache.places(batch)
        if pooler.consumes == "last":
            return self.cache.padded(self.cache.layers - 1, places, batch)
        with torch.autocast(batch.roles.device.type, enabled=False):
            layers = ((layer, self.cache.padded(layer, places, batch)) for layer in pooler.layers)
            return [pooler.reduce(layer, states, batch.view) for layer, states in layers]


def open_states(encoder: Encoder, cfg: Config, precision: Precision) -> CachedEncoder:
    """Return `encoder` on the cache of its states below cfg["cache_dir"], which is made where there is none."""
    shape, facts = encoder.backbone.config.get_text_config(), identity(encoder, cfg, precision)
    sizes = (shape.num_hidden_layers, shape.hidden_size)
    return CachedEncoder(encoder, StateCache(Path(cfg["cache_dir"]), facts, *sizes, precision.weights))


def identity(encoder: Encoder, cfg: Config, precision: Precision) -> Config:
    """All that a state depends on, besides the text's own tokens: what differs here never shares a cache."""
    computed = deciding(cfg, encoder.lineage, precision) | rounding(encoder.backbone)
    return {**computed, "max_length": cfg["max_length"]}


def compute_states(encoder: CachedEncoder, tokenizer: TextTokenizer, rows: Sequence[Tokens], budget: int) -> None:
    """Compute and keep the states of those of `rows` that the cache lacks.

    Chunks of `budget` padded tokens are cut by a rule that looks only ahead, and each is kept once it is computed: so
    stopped work goes on with the very same numbers.
    """
    missing = encoder.cache.missing(rows)
    for chunk in by_token_budget([len(r) for r in missing], budget):
        texts = [missing[i] for i in chunk]
        if not encoder.cache.appeared(texts):
            encoder.cache.write(texts, _states(encoder, tokenizer.batch(texts)))


def _states(encoder: CachedEncoder, batch: Batch) -> np.ndarray:
    """[L, N, D] states of the real tokens of a batch, text by text, in the stored format."""
    dtype = encoder.cache.dtype
    batch = batch.to(next(encoder.backbone.parameters()).device)

    def real(_layer: int, hidden: Tensor) -> Tensor:
        assert torch.promote_types(hidden.dtype, dtype) is dtype, f"{hidden.dtype} states do not fit into {dtype}"
        return hidden[batch.view.real].to(dtype)

    with torch.inference_mode():
        states = torch.stack(encoder.each_layer(batch, range(encoder.cache.layers), real)).cpu()
    return states.numpy() if dtype is torch.float32 else states.view(torch.int16).numpy()
