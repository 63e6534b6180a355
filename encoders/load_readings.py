"""A checkpoint loaded once, read by several poolers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cli.errors import UserError
from encoders.chunking import Chunk
from encoders.encoder import Reading, Readings
from encoders.loading import loaded
from encoders.routers import experts_of
from encoders.text_encoder import TextEncoder
from encoders.tokens import Batch
from poolers.shared.registry import build_pooler
from records.streams import stream_seed

Config = dict[str, Any]


@dataclass(frozen=True)
class LoadedReadings:
    """`text_encoder` has tokenizer, backbone and the checkpoint's own pooler, which is not run.

    A fingerprint is that of the encoder which has this pooler alone: the same vectors where it is the same.
    """

    text_encoder: TextEncoder
    readings: Readings
    fingerprints: dict[str, str]

    def parts(self, texts: Sequence[str], instruction: str = "") -> Iterator[tuple[Chunk, dict[str, np.ndarray]]]:
        """As `TextEncoder.parts`, with one [n, E] float32 for each reading."""

        def vectors(batch: Batch) -> dict[str, np.ndarray]:
            return {name: v.cpu().numpy() for name, v in self.readings(batch).items()}

        return self.text_encoder.run(texts, instruction, vectors)


def load_readings(cfg: Config, run: Path | None, poolers: Mapping[str, Config]) -> LoadedReadings:
    """Load the run in the folder `run`, or the untrained start of `cfg`, for `poolers` (name -> as in conf/pooler).

    Raises `UserError` as `load_run` does, and for a pooler that does not fit the model or lacks statistics.
    """
    text_encoder, identity = loaded(cfg, run, list(poolers.values()))
    own = text_encoder.encoder.pooler
    seed, experts = stream_seed(cfg["seed"], "head"), experts_of(text_encoder.encoder.backbone)
    built = {
        name: build_pooler(config, own.hidden_size, own.num_layers, seed, experts).to(text_encoder.device).eval()
        for name, config in poolers.items()
    }
    for name, pooler in built.items():
        if pooler.lacks_statistics:
            raise UserError(
                f"The reading {name} would be standardised by statistics of a corpus, which readings have none of. "
                "Leave token_choice.standardise out, or score pooler=moee with pooler.statistics=<file> by itself."
            )
    readings = {name: Reading(pooler, poolers[name]["normalize"]) for name, pooler in built.items()}
    fingerprints = {name: identity.fingerprint(pooler, poolers[name]) for name, pooler in built.items()}
    return LoadedReadings(text_encoder, Readings(text_encoder.encoder, readings), fingerprints)
