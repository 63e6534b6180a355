"""Statistics that a pooler wants of a corpus, computed once over given texts and kept in its buffers."""

from collections.abc import Sequence

import torch

from encoders.chunks import by_token_budget
from encoders.encoder import Encoder
from encoders.rows import is_unpadded
from encoders.tokens import TextTokenizer, Tokens
from poolers.moee import MoEE


@torch.no_grad()
def fit_statistics(encoder: Encoder, tokenizer: TextTokenizer, rows: Sequence[Tokens], budget: int) -> None:
    """Set the statistics of `encoder`'s pooler to those of `rows`, encoded as it stands, without dropout."""
    pooler, training = encoder.pooler, encoder.training
    assert isinstance(pooler, MoEE)
    device = next(encoder.backbone.parameters()).device
    encoder.eval()
    parts = []
    for chunk in by_token_budget([len(r) for r in rows], budget, padded=not is_unpadded(encoder.backbone)):
        batch = tokenizer.batch([rows[i] for i in chunk]).to(device)
        parts.append(pooler.parts(encoder.states(batch)))
    pooler.fit(parts)
    encoder.train(training)
