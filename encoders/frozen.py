"""What a head reads of a frozen decoder, on disk, each text's once, in 16 bits; an encoder that reads it there."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cli.errors import UserError, reading
from encoders.encoder import Encoder
from encoders.identity import deciding, execution, sources, versions
from encoders.precision import Precision
from encoders.text_encoder import by_token_budget
from encoders.tokens import Batch, TextTokenizer, Tokens
from poolers.shared.base import PAD, States
from records.files import of_value, replacing, write_json

Config = dict[str, Any]
TEXTS, STATES = "texts.json", "states.npy"
OPEN_MAPS = 512  # each holds a file descriptor
GIB = 2**30
# float16 of state / SCALE: 11 bits of mantissa, where bfloat16 has 8, up to 1,048,064; SmolLM2's states reach 26,700.
SCALE, LARGEST = 16.0, 16.0 * 65_504


def text_key(ids: Sequence[int], roles: Sequence[int]) -> str:
    """Name of a tokenised text: 128 bits of the sha256 of its ids and roles."""
    return hashlib.sha256(np.asarray([ids, roles], dtype=np.int32).tobytes()).hexdigest()[:32]


class StateCache:
    """What poolers that read alike read of one decoder under one setting: <root>/states/<sha256 of `identity`>.

    A shard is a folder with `states.npy` [N, L, D] float16, of the L layers that are read, and `texts.json` (key and
    tokens of each text, in order). N: `vectors` rows a text, or its tokens where that is 0: so a text takes
    2 x rows x L x D bytes. A shard is whole or absent, and never changed: of two writers the first stays.
    """

    def __init__(self, root: Path, identity: Config, layers: int, width: int, vectors: int) -> None:
        self.identity = of_value(identity)
        self.folder = Path(root) / "states" / self.identity[:24]
        self.layers, self.width, self.vectors = layers, width, vectors
        self._places: dict[str, tuple[Path, int, int]] = {}  # text -> shard, first row there, number of rows
        if not (self.folder / "identity.json").is_file():
            write_json(self.folder / "identity.json", identity)
        for shard in sorted(self.folder.glob(f"*/{TEXTS}")):
            self._enter(shard.parent)

    def bytes_of(self, rows: Iterable[Tokens]) -> int:
        """What the states of these texts take on disk, but for a header of 128 bytes a shard."""
        return 2 * self.layers * self.width * sum(self.vectors or len(r) for r in rows)

    def missing(self, rows: Sequence[Tokens]) -> list[Tokens]:
        """The distinct texts of `rows` that are not here, longest first: an order that depends on nothing else."""
        lacking = {text_key(r.ids, r.roles): r for r in rows}
        return [r for key, r in sorted(lacking.items(), key=lambda kr: (-len(kr[1]), kr[0])) if key not in self._places]

    def keep(self, rows: Sequence[Tokens], compute: Callable[[], np.ndarray]) -> None:
        """Add a shard of these texts, unless another process has; `compute` gives its [N, L, D], text after text."""
        texts = [(text_key(r.ids, r.roles), len(r)) for r in rows]
        shard = self.folder / of_value(texts)[:24]
        states = None if shard.is_dir() else compute()
        if states is not None and not shard.is_dir():  # another process may have been quicker
            with replacing(shard) as draft:
                draft.mkdir()
                write_json(draft / TEXTS, texts)
                with (draft / STATES).open("wb") as file:  # not np.save, which hides that the disk is full
                    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(states))
                    file.write(np.ascontiguousarray(states).data)
        self._enter(shard)

    def read(self, batch: Batch) -> Tensor:
        """[B, T, L, D] as stored, zero where there is padding, or [B, vectors, L, D]; on the batch's device.

        Raises `LookupError` for a text that was not computed.
        """
        out = np.zeros((len(batch.roles), self.vectors or batch.roles.shape[1], self.layers, self.width), np.float16)
        for i, (ids, roles) in enumerate(zip(batch.input_ids.cpu().numpy(), batch.roles.cpu().numpy(), strict=True)):
            (real,) = np.nonzero(roles != PAD)
            place = self._places.get(text_key(ids[real], roles[real]))
            if place is None:
                raise LookupError(f"The states of a text of {len(real)} tokens are not in {self.folder}.")
            shard, start, length = place
            column = 0 if self.vectors else real[0]
            out[i, column : column + length] = _mapped(shard / STATES)[start : start + length]
        return torch.from_numpy(out).to(batch.roles.device)

    def _enter(self, shard: Path) -> None:
        with reading(shard, "Delete that folder."):
            texts = json.loads((shard / TEXTS).read_text(encoding="utf-8"))
            states, lengths = _mapped(shard / STATES), [self.vectors or tokens for _, tokens in texts]
            wanted = (sum(lengths), self.layers, self.width)
            if states.shape != wanted or states.dtype != np.float16:
                raise ValueError(f"shape {states.shape} instead of {wanted}")
        start = 0
        for (key, _), length in zip(texts, lengths, strict=True):
            self._places[key] = shard, start, length
            start += length


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
        """Return what the pooler consumes: [B, T, D] of the last layer, or its reduction of each layer; float32."""
        pooler, layers = self.pooler, (of.float() * SCALE for of in self.cache.read(batch).unbind(2))
        if pooler.consumes == "last":
            return next(layers)
        if self.cache.vectors:
            return [vectors.squeeze(1) for vectors in layers]
        with torch.autocast(batch.roles.device.type, enabled=False):
            return [pooler.reduce(layer, of, batch.view) for layer, of in zip(pooler.layers, layers, strict=True)]

    def computed(self, batch: Batch) -> np.ndarray:
        """Return what is stored of a batch, [N, L, D]: its real tokens' or its texts' own vectors, text by text."""
        pooler, batch = self.pooler, batch.to(next(self.backbone.parameters()).device)

        def kept(layer: int, hidden: Tensor) -> Tensor:
            read = pooler.reduce(layer, hidden, batch.view) if self.cache.vectors else hidden[batch.view.real]
            return (read.reshape(-1, hidden.shape[-1]).float() / SCALE).half()

        with torch.inference_mode():
            states = torch.stack(self.each_layer(batch, self._layers(pooler), kept), dim=1)
        if not states.isfinite().all():
            what = f"The base gives NaN, infinity or a state above {LARGEST:,.0f}, which 16 bits do not keep"
            raise UserError(f"{what}. Give precision=fp32, or backbone.frozen=false.")
        return states.cpu().numpy()


def open_states(encoder: Encoder, cfg: Config, precision: Precision) -> CachedEncoder:
    """Return `encoder` on the cache of what its pooler reads below cfg["cache_dir"], which is made where it lacks."""
    facts, width = identity(encoder, cfg, precision), encoder.pooler.hidden_size
    cache = StateCache(Path(cfg["cache_dir"]), facts, len(facts["layers"]), width, len(facts["vectors"]))
    return CachedEncoder(encoder, cache)


def identity(encoder: Encoder, cfg: Config, precision: Precision) -> Config:
    """All that a state depends on, besides the text's own tokens: what differs here never shares a cache."""
    pooler = encoder.pooler
    layers = [pooler.num_layers - 1] if pooler.consumes == "last" else [*pooler.layers]
    read = {"layers": layers, "vectors": pooler.reduces_to, "max_length": cfg["max_length"], "scale": SCALE}
    may_round = {**execution(encoder.backbone), "versions": versions(), "sources": sources()}
    return deciding(cfg, encoder.merged, precision) | may_round | read


def compute_states(
    encoder: CachedEncoder, tokenizer: TextTokenizer, rows: Iterable[Tokens], budget: int, limit: float = inf
) -> Config:
    """Compute and keep what the cache lacks of `rows`; return facts for the manifest.

    Chunks of `budget` padded tokens are cut by a rule that looks only ahead, and each is kept once it is computed: so
    stopped work goes on with the very same numbers. Raises `UserError` before, where all states take over `limit` GiB.
    """
    cache, texts = encoder.cache, list({text_key(r.ids, r.roles): r for r in rows}.values())
    missing, size = cache.missing(texts), cache.bytes_of(texts)
    if size > limit * GIB:
        what = f"{len(texts):,} texts take {size / GIB:,.2f} GiB of states, and backbone.state_limit={limit:g} GiB"
        mend = "Raise it, lower trainer.max_steps or text_length, or give a multilayer head pooler.tokens=mean"
        raise UserError(f"backbone.frozen=true: {what}. {mend}, which keeps a vector a layer.")
    print(f"States of {len(texts):,} texts in {cache.folder}: {len(missing):,} to compute.", flush=True)
    for chunk in by_token_budget([len(r) for r in missing], budget):
        some = [missing[i] for i in chunk]
        cache.keep(some, partial(encoder.computed, tokenizer.batch(some)))
    return {"identity": cache.identity, "texts": len(texts), "computed_texts": len(missing), "bytes": size}
