"""Several poolers over one forward pass of a run's backbone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from encoders.attention.switch import refuse_unpadded
from encoders.encoder import Encoder, experts_of, prove_routers
from encoders.loading import Config, digest_of, load_head, loaded
from encoders.text_encoder import Chunk, TextEncoder
from encoders.tokens import Batch
from poolers.shared.base import Pooler
from poolers.shared.registry import build_pooler
from records.files import stream_seed

Head = tuple[int, Path | None]


class Variants:
    """Runs `encoder`'s backbone once per batch and gives each pooler what it consumes, as `Encoder` would alone."""

    def __init__(self, encoder: Encoder, poolers: Mapping[str, Pooler], normalize: bool) -> None:
        refuse_unpadded(encoder.backbone.config._attn_implementation, any(p.reads_padding for p in poolers.values()))
        with encoder.precision():  # weights may be stored as they are computed by now, beside float32 states
            prove_routers(encoder.backbone, poolers.values())
        self.encoder, self.poolers, self.normalize = encoder, poolers, normalize

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        """Return variant -> [B, E] float32, of unit length if `normalize`."""
        states = self.encoder.collected(batch, self.poolers)
        with torch.autocast(batch.roles.device.type, enabled=False):
            vectors = {name: pooler(states[name], batch.view) for name, pooler in self.poolers.items()}
        return {name: F.normalize(v, dim=-1) if self.normalize else v for name, v in vectors.items()}


@dataclass(frozen=True)
class LoadedVariants:
    """`text_encoder`'s own pooler is not run. fingerprints: of the encoders that have one of the poolers alone."""

    text_encoder: TextEncoder
    variants: Variants
    fingerprints: dict[str, str]

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[Chunk, dict[str, np.ndarray]]]:
        """As `TextEncoder.parts`, with one [n, E] float32 for each variant."""

        def vectors(batch: Batch) -> dict[str, np.ndarray]:
            return {name: v.cpu().numpy() for name, v in self.variants(batch).items()}

        return self.text_encoder.run(texts, instruction, vectors)


def load_variants(
    cfg: Config, run: Path | None, poolers: Mapping[str, Config], heads: Mapping[str, Head] | None = None
) -> LoadedVariants:
    """Load the run in the folder `run`, or the untrained start of `cfg`, for `poolers` (name -> as in conf/pooler).

    heads: name -> seed that draws the pooler's parameters, and run folder with trained ones, if there are any;
    None: the seed of `cfg` for all.
    Raises `UserError` as `load_run` does, and for a pooler that does not fit the model or lacks statistics.
    """
    text_encoder = loaded(cfg, run, list(poolers.values()))
    usual = text_encoder.encoder.pooler
    experts = experts_of(text_encoder.encoder.backbone)
    variants, fingerprints = dict[str, Pooler](), dict[str, str]()
    for name, config in poolers.items():
        seed, trained = (heads or {}).get(name, (cfg["seed"], None))
        pooler = build_pooler(config, usual.hidden_size, usual.num_layers, stream_seed(seed, "head"), experts)
        if trained:
            load_head(pooler, trained)
        if pooler.lacks_statistics:
            raise UserError(
                f"The variant {name} would be standardised by statistics of a corpus, which variants have none of. "
                "Leave reference_fault.standardise out, or score pooler=moee with pooler.statistics=<file> by itself."
            )
        variants[name] = pooler.to(text_encoder.device).eval()
        fingerprints[name] = digest_of({**cfg, "pooler": config}, trained or run, pooler)
    return LoadedVariants(text_encoder, Variants(text_encoder.encoder, variants, cfg["normalize"]), fingerprints)
