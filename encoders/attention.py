"""The attention switch and the probe that proves it took: which token's state moves when another token changes."""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from encoders.rows import last_states, one_text_each
from records.errors import UserError

PROBE_TOKENS = 6


def set_attention(backbone: PreTrainedModel, is_causal: bool) -> None:
    """Make the decoder causal or bidirectional through transformers' own mask (`config.is_causal`, >= 5.2).

    Setting `is_causal` on the attention modules alone would be a silent confound: the mask would stay causal.
    """
    backbone.config.is_causal = is_causal
    for module in backbone.modules():
        if isinstance(getattr(module, "is_causal", None), bool):
            module.is_causal = is_causal  # type: ignore[assignment]


def set_attention_dropout(backbone: PreTrainedModel, p: float) -> None:
    """Drop weights of attention with probability `p` in training; every kernel of ours and transformers' obeys.

    Raises `UserError` where the decoder's attention has no dropout to set.
    """
    layers = [m for m in backbone.modules() if isinstance(getattr(m, "attention_dropout", None), int | float)]
    if p and not layers:
        raise UserError(
            f"objective.attention_dropout={p}, but {type(backbone).__name__} has no dropout of attention. Set it to 0."
        )
    for module in layers:
        module.attention_dropout = p  # type: ignore[assignment]


@torch.no_grad()
def sight(backbone: PreTrainedModel) -> Tensor:
    """Return [T, T] bool: entry (i, j) tells whether the state of token i depends on token j.

    One batch of T + 1 texts: the original, and for each j a copy whose token j is another one.
    """
    vocabulary = backbone.config.get_text_config().vocab_size
    device = next(backbone.parameters()).device
    ids = (torch.arange(PROBE_TOKENS, device=device) * 37 + 11) % (vocabulary - 8) + 4
    batch = ids.repeat(PROBE_TOKENS + 1, 1)
    for j in range(PROBE_TOKENS):
        batch[j + 1, j] = (ids[j] + vocabulary // 2) % (vocabulary - 8) + 4
    training = backbone.training
    states = last_states(backbone.eval(), one_text_each(batch))
    backbone.train(training)
    moved = (states[1:] - states[:1]).float().norm(dim=-1)  # [j, i]
    return (moved > 1e-5 * states[0].float().norm(dim=-1)).T


def probe(backbone: PreTrainedModel, is_causal: bool) -> None:
    """Refuse a decoder whose tokens do not see exactly what the switch says they see."""
    seen = sight(backbone)
    wanted = torch.ones_like(seen).tril() if is_causal else torch.ones_like(seen)
    if not torch.equal(seen, wanted):
        name = "causal" if is_causal else "bi"
        leaks, blind = int((seen & ~wanted).sum()), int((~seen & wanted).sum())
        raise UserError(
            f"attn={name} does not hold for {type(backbone).__name__} with {backbone.config._attn_implementation}: "
            f"{leaks} token pairs see what they must not, {blind} do not see what they must. "
            "Use transformers >= 5.2, model.attn_implementation=unpadded, sdpa or eager and model.sliding_window=false."
        )
