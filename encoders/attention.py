"""The attention switch and the probe that proves it took: which token's state moves when another token changes."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from encoders.backbone import parts
from encoders.rows import last_states, one_text_each
from records.errors import UserError

PROBE_TOKENS = 6


def set_attention(backbone: PreTrainedModel, is_causal: bool, bi_last: int = 0) -> None:
    """Make the decoder causal or bidirectional through transformers' own mask (`config.is_causal`, >= 5.2).

    Setting `is_causal` on the attention modules alone would be a silent confound: the mask would stay causal.
    bi_last: so many layers, counted from the last, are bidirectional above causal ones. Raises `UserError` where the
    decoder has fewer.
    """
    layers, _ = parts(backbone)
    if bi_last > len(layers):
        raise UserError(
            f"attn.layers={bi_last} is more than the {len(layers)} layers of {type(backbone).__name__}. Lower it."
        )
    backbone.config.is_causal = is_causal
    for module in _attentions(backbone):
        module.is_causal = is_causal  # type: ignore[assignment]
    for layer in layers[len(layers) - bi_last :]:
        for module in _attentions(layer):
            module.is_causal = False  # type: ignore[assignment]
            if not any(hook is see_both_ways for hook in module._forward_pre_hooks.values()):
                module.register_forward_pre_hook(see_both_ways, with_kwargs=True)


def _attentions(module: nn.Module) -> list[nn.Module]:
    return [m for m in module.modules() if isinstance(getattr(m, "is_causal", None), bool)]


def see_both_ways(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
    """Hook of an attention module: put the mask of real tokens alone in the place of the causal one.

    It is the causal mask's last row, [B, 1, 1, T] of [B, 1, T, T]: the last token sees every real one, on whichever
    side the padding is. Without a mask `is_causal` decides, which transformers hands down from the configuration
    where it is new enough. Another kernel's mask stays.
    """
    if module.is_causal:
        return None
    mask = kwargs.get("attention_mask")
    if isinstance(mask, Tensor) and mask.dim() == 4:
        kwargs = {**kwargs, "attention_mask": mask[:, :, -1:].expand_as(mask)}
    return args, {**kwargs, "is_causal": False} if "is_causal" in kwargs else kwargs


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
    training = backbone.training
    states = last_states(backbone.eval(), one_text_each(_probe_ids(backbone)))
    backbone.train(training)
    return _moved(states)


@torch.no_grad()
def sight_of_layers(backbone: PreTrainedModel) -> Tensor:
    """Return [L, T, T] bool: entry (l, i, j) tells whether layer l alone lets token i see token j.

    Where one layer sees all, all states above do, so the states of the last one cannot tell. Here every layer is
    given its own original and T copies of it, token j of copy j with its features rolled by one place; what its
    attention makes of them is compared.
    """
    layers, _ = parts(backbone)
    moved: list[Tensor] = []

    def disturb(_layer: nn.Module, args: Any) -> Any:
        rows = args[0].view(PROBE_TOKENS + 1, PROBE_TOKENS, -1)[:1].repeat(PROBE_TOKENS + 1, 1, 1)
        j = torch.arange(PROBE_TOKENS, device=rows.device)
        rows[j + 1, j] = rows[j + 1, j].roll(1, dims=-1)
        return rows.view_as(args[0]), *args[1:]

    def compare(_module: nn.Module, _args: Any, output: Any) -> None:
        moved.append(_moved(output[0].view(PROBE_TOKENS + 1, PROBE_TOKENS, -1)))

    handles = [layer.register_forward_pre_hook(disturb) for layer in layers]
    handles += [_attentions(layer)[0].register_forward_hook(compare) for layer in layers]
    training = backbone.training
    try:
        last_states(backbone.eval(), one_text_each(_probe_ids(backbone)[:1].repeat(PROBE_TOKENS + 1, 1)))
    finally:
        for handle in handles:
            handle.remove()
        backbone.train(training)
    return torch.stack(moved)


def _moved(states: Tensor) -> Tensor:
    """[T, T] bool of states [T + 1, T, D]: whether that of token i in copy j is another than in the original."""
    distance = (states[1:] - states[:1]).float().norm(dim=-1)  # [j, i]
    return (distance > 1e-5 * states[0].float().norm(dim=-1)).T


def _probe_ids(backbone: PreTrainedModel) -> Tensor:
    """[T + 1, T] ids: a text, and for each j a copy whose token j is another one."""
    vocabulary = backbone.config.get_text_config().vocab_size
    device = next(backbone.parameters()).device
    ids = (torch.arange(PROBE_TOKENS, device=device) * 37 + 11) % (vocabulary - 8) + 4
    batch = ids.repeat(PROBE_TOKENS + 1, 1)
    for j in range(PROBE_TOKENS):
        batch[j + 1, j] = (ids[j] + vocabulary // 2) % (vocabulary - 8) + 4
    return batch


def probe(backbone: PreTrainedModel, is_causal: bool, bi_last: int = 0) -> None:
    """Refuse a decoder whose tokens do not see exactly what the switch says they see; with `bi_last` in each layer."""
    seen = sight(backbone)
    causal = torch.ones_like(seen).tril()
    wanted = causal if is_causal and not bi_last else torch.ones_like(seen)
    if bi_last:
        count = len(parts(backbone)[0])
        each = [causal if layer < count - bi_last else torch.ones_like(seen) for layer in range(count)]
        seen, wanted = torch.stack([*sight_of_layers(backbone), seen]), torch.stack([*each, wanted])
    if not torch.equal(seen, wanted):
        name = f"bi_last attn.layers={bi_last}" if bi_last else "causal" if is_causal else "bi"
        leaks, blind = int((seen & ~wanted).sum()), int((~seen & wanted).sum())
        raise UserError(
            f"attn={name} does not hold for {type(backbone).__name__} with {backbone.config._attn_implementation}: "
            f"{leaks} token pairs see what they must not, {blind} do not see what they must. "
            "Use transformers >= 5.2, model.attn_implementation=unpadded, sdpa or eager and model.sliding_window=false."
        )
