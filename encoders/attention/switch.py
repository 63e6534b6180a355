"""A pattern set on a decoder: by transformers' own mask where it has one, else by a mask put in its place."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cli.errors import UserError
from encoders.attention.pattern import Pattern, earlier, whole_text
from encoders.attention.unpadded import UNPADDED
from encoders.layers import parts

TAKE_ANY = ("eager", "sdpa", UNPADDED)  # kernels that take any pattern; others know causal and bidirectional alone


def set_attention(backbone: PreTrainedModel, pattern: Pattern) -> None:
    """Let the tokens of each layer see what `pattern` says.

    A decoder with causal layers keeps transformers' causal mask (`config.is_causal`, >= 5.2), every other one gets the
    bidirectional one; layers that are to see otherwise have it replaced. `is_causal` of the attention modules alone
    would leave the mask causal. Raises `UserError` where the pattern does not fit the decoder or its kernel.
    """
    layers, _ = parts(backbone)
    of_layers = pattern.of_layers(len(layers))
    usual = earlier if earlier in of_layers else whole_text
    kernel = backbone.config._attn_implementation
    if kernel not in TAKE_ANY and set(of_layers) - {earlier, whole_text}:
        raise UserError(
            f"{pattern} is neither causal nor bidirectional, which is all that {kernel} computes. "
            "Give model.attn_implementation=auto, unpadded, sdpa or eager."
        )
    backbone.config.is_causal = usual is earlier
    for module in attentions(backbone):
        module.is_causal = usual is earlier  # type: ignore[assignment]
    for layer, sees in zip(layers, of_layers, strict=True):
        if sees is not usual and not attentions(layer):
            raise UserError(
                f"attn={pattern.name} cannot switch single layers of {type(backbone).__name__}, whose attention does "
                "not say whether it is causal. Give attn=causal or attn=bi."
            )
        for module in attentions(layer):
            module.sees, module.is_causal = sees, sees is earlier  # type: ignore[assignment]
            if sees is not usual and not any(hook is replace_mask for hook in module._forward_pre_hooks.values()):
                module.register_forward_pre_hook(replace_mask, with_kwargs=True)
    backbone.pattern = pattern  # type: ignore[assignment]


def attention_of(backbone: PreTrainedModel) -> Pattern:
    """Return the pattern that `set_attention` has set."""
    return cast(Pattern, backbone.pattern)


def attentions(module: nn.Module) -> list[nn.Module]:
    """Return the attention modules in `module`: those that say whether they are causal."""
    return [m for m in module.modules() if isinstance(getattr(m, "is_causal", None), bool)]


def replace_mask(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Hook of an attention module: put the mask of what it sees in the place of transformers' own.

    The keys that are real tokens stand in the last row of either mask, [B, 1, 1, T] of [B, 1, T, T], on whichever side
    the padding is. Without a mask bidirectional attention is left to `is_causal`, which transformers hands down from
    the configuration. Another kernel's mask stays, and a row without padding has none.
    """
    if module.sees is earlier:
        return None
    mask = kwargs.get("attention_mask")
    if mask is None and module.sees is not whole_text and "segments" not in kwargs:
        states = args[0] if args else kwargs["hidden_states"]
        empty = torch.ones if module.config._attn_implementation == "sdpa" else torch.zeros
        kind = torch.bool if empty is torch.ones else states.dtype
        mask = empty(len(states), 1, 1, states.shape[1], dtype=kind, device=states.device)
    if isinstance(mask, Tensor) and mask.dim() == 4:
        last = mask[:, :, -1:]
        mask = last.expand_as(mask) if module.sees is whole_text else _narrowed(last, module.sees)
        kwargs = {**kwargs, "attention_mask": mask}
    return args, {**kwargs, "is_causal": False} if "is_causal" in kwargs else kwargs


def _narrowed(mask: Tensor, sees: Any) -> Tensor:
    """[B, 1, T, T] of a mask of real keys [B, 1, 1, T], bool or additive, with what `sees` forbids taken out."""
    real = (mask if mask.dtype is torch.bool else mask == 0)[:, 0, 0]
    positions = (real.cumsum(dim=-1) - 1).clamp(min=0)  # padding has no place in its text; no state of it is read
    may = (sees(positions[:, :, None], positions[:, None]) & real[:, None])[:, None]
    return may if mask.dtype is torch.bool else torch.zeros_like(mask).masked_fill(~may, torch.finfo(mask.dtype).min)


def set_attention_dropout(backbone: PreTrainedModel, p: float) -> None:
    """Drop weights of attention with probability `p` in training; every kernel of ours and transformers' obeys.

    Raises `UserError` where the decoder's attention has no dropout to set.
    """
    modules = [m for m in backbone.modules() if isinstance(getattr(m, "attention_dropout", None), int | float)]
    if p and not modules:
        lack = f"{type(backbone).__name__} has no dropout of attention"
        raise UserError(f"objective.attention_dropout={p}, but {lack}. Set it to 0.")
    for module in modules:
        module.attention_dropout = p  # type: ignore[assignment]
