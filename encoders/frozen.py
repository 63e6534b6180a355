"""States of a frozen decoder on disk: each text's once, all layers, memory-mapped; an encoder that reads them there."""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cli.errors import reading
from encoders.encoder import Encoder
from encoders.identity import deciding, rounding
from encoders.precision import Precision
from encoders.text_encoder import by_token_budget
from encoders.tokens import Batch, TextTokenizer, Tokens
from poolers.shared.base import PAD, States
from records.files import of_value, replacing, write_json

Config = dict[str, Any]
STORED: dict[torch.dtype, Any] = {torch.float32: np.dtype(np.float32), torch.bfloat16: np.dtype(np.int16)}  # its bits
TEXTS, STATES = "texts.json", "states.npy"
OPEN_MAPS = 512  # each holds a file descriptor


class Place(NamedTuple):
    """The place of a text's states: rows [start, start + length) of every layer in a shard."""

    shard: Path
    start: int
    length: int


def text_key(ids: Sequence[int], roles: Sequence[int]) -> str:
    """Name of a tokenised text: 128 bits of the sha256 of its ids and roles."""
    return hashlib.sha256(np.asarray([ids, roles], dtype=np.int32).tobytes()).hexdigest()[:32]


class StateCache:
    """The states of one decoder under one setting: <root>/states/<sha256 of `identity`>.

    A shard is a folder with `states.npy` [L, N, D] (N: tokens of all its texts, in the decoder's own format) and
    `texts.json` (key and length of each, in order); it is whole or absent, and never changed: where two processes write
    the same one, the first stays. Layers come first, so that a head that reads one layer touches 1/L of the file.
    """

    def __init__(self, root: Path, identity: dict[str, Any], layers: int, width: int, dtype: torch.dtype) -> None:
        self.identity = of_value(identity)
        self.folder = Path(root) / "states" / self.identity[:24]
        self.layers, self.width, self.dtype = layers, width, dtype
        self._places: dict[str, Place] = {}
        if not (self.folder / "identity.json").is_file():
            write_json(self.folder / "identity.json", identity)
        for shard in sorted(self.folder.glob(f"*/{TEXTS}")):
            self._enter(shard.parent)

    def missing(self, rows: Sequence[Tokens]) -> list[Tokens]:
        """The distinct texts of `rows` that are not here, longest first: an order that depends on nothing else."""
        lacking = {text_key(r.ids, r.roles): r for r in rows}
        return [r for key, r in sorted(lacking.items(), key=lambda kr: (-len(kr[1]), kr[0])) if key not in self._places]

    def appeared(self, rows: Sequence[Tokens]) -> bool:
        """Take up the shard of `rows` where another process has written it meanwhile; return whether one has."""
        shard = self._shard(rows)
        if shard.is_dir():
            self._enter(shard)
        return shard.is_dir()

    def write(self, rows: Sequence[Tokens], states: np.ndarray) -> None:
        """Add one shard. states: [L, N, D] in the stored format, the texts of `rows` one after another."""
        shard = self._shard(rows)
        with replacing(shard) as draft:
            draft.mkdir()
            write_json(draft / TEXTS, _texts(rows))
            with (draft / STATES).open("wb") as file:  # not np.save, which hides that the disk is full
                np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(states))
                file.write(np.ascontiguousarray(states).data)
        self._enter(shard)

    def places(self, batch: Batch) -> list[tuple[Place, int]]:
        """Return each text's place and the column of its first token. Raises `LookupError` for one not computed."""
        places = []
        for ids, roles in zip(batch.input_ids.cpu().numpy(), batch.roles.cpu().numpy(), strict=True):
            (real,) = np.nonzero(roles != PAD)
            place = self._places.get(text_key(ids[real], roles[real]))
            if place is None:
                raise LookupError(f"The states of a text of {len(real)} tokens are not in {self.folder}.")
            places.append((place, int(real[0])))
        return places

    def padded(self, layer: int, places: Sequence[tuple[Place, int]], batch: Batch) -> Tensor:
        """[B, T, D] states of one layer (0 is the first) on the batch's device, zero where there is padding."""
        out = np.zeros((*batch.roles.shape, self.width), dtype=STORED[self.dtype])
        for i, ((shard, start, length), column) in enumerate(places):
            out[i, column : column + length] = _mapped(shard / STATES)[layer, start : start + length]
        return torch.from_numpy(out).view(self.dtype).to(batch.roles.device)

    def _shard(self, rows: Sequence[Tokens]) -> Path:
        return self.folder / of_value(_texts(rows))[:24]

    def _enter(self, shard: Path) -> None:
        with reading(shard, "Delete that folder."):
            texts = json.loads((shard / TEXTS).read_text(encoding="utf-8"))
            states = _mapped(shard / STATES)
            wanted = (self.layers, sum(length for _, length in texts), self.width)
            if states.shape != wanted or states.dtype != STORED[self.dtype]:
                raise ValueError(f"shape {states.shape} instead of {wanted}")
        start = 0
        for key, length in texts:
            self._places[key] = Place(shard, start, length)
            start += length


def _texts(rows: Sequence[Tokens]) -> list[tuple[str, int]]:
    return [(text_key(r.ids, r.roles), len(r)) for r in rows]


@lru_cache(maxsize=OPEN_MAPS)
def _mapped(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r")


class CachedEncoder(Encoder):
    """Gives the pooler what `Encoder` would give it, read from `cache`; a text that is not there is an error.

    The backbone is in evaluation mode always: a state is computed once, so it can know no dropout.
    """

    def __init__(self, encoder: Encoder, cache: StateCache) -> None:
        super().__init__(encoder.backbone, encoder.pooler, encoder.normalize, encoder.compute)
        self.cache, self.merged = cache, encoder.merged

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
    computed = deciding(cfg, encoder.merged, precision) | rounding(encoder.backbone)
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
