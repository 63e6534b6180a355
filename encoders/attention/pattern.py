"""The attention switch and the probe that proves it took: which token's state moves when another token changes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cli.errors import UserError
from encoders.attention.layout import last_states, one_text_each
from encoders.backbone import parts

PROBE_TOKENS = 6


def set_attention(backbone: PreTrainedModel, is_causal: bool, bi_last: int = 0) -> None:
    """Make the decoder causal or bidirectional through transformers' own mask (`config.is_causal`, >= 5.2).

    Setting `is_causal` on the attention modules alone would be a silent confound: the mask would stay causal.
    bi_last: so many layers, counted from the last, are bidirectional above causal ones. Raises `UserError` where the
    decoder has fewer, or where their attention cannot be switched layer by layer.
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
        if not _attentions(layer):
            raise UserError(
                f"attn=bi_last cannot switch single layers of {type(backbone).__name__}, whose attention does not say "
                "whether it is causal. Give attn=causal or attn=bi."
            )
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
    states = last_states(backbone.eval(), one_text_each(probe_ids(backbone)))
    backbone.train(training)
    return _moved(states)


@torch.no_grad()
def sight_of_layers(backbone: PreTrainedModel) -> Tensor:
    """Return [L, T, T] bool: entry (l, i, j) tells whether layer l alone lets token i see token j."""
    return _sight_of_layers(backbone, probe_ids(backbone)[0], range(PROBE_TOKENS))


@torch.no_grad()
def far_sight(backbone: PreTrainedModel, width: int) -> Tensor:
    """Return [L, T, 2] bool of a text of T = `width` tokens: whether each of them sees the first, and the last one.

    All tokens are alike, so that every weight of attention is about 1 / T and no distance hides one in rounding.
    """
    return _sight_of_layers(backbone, probe_ids(backbone)[0, :1].repeat(width), (0, width - 1))


def _sight_of_layers(backbone: PreTrainedModel, ids: Tensor, changed: Sequence[int]) -> Tensor:
    """[L, T, C] bool for ids [T]: whether layer l alone lets token i see the token at the place `changed[c]`.

    Where one layer sees all, all states above do, so the states of the last one cannot tell. Here every layer is
    given its own original and C copies of it, in each one token with its features rolled by one place; what its
    attention makes of them is compared.
    """
    layers, _ = parts(backbone)
    moved: list[Tensor] = []
    count, width = len(changed) + 1, len(ids)
    copies, places = torch.arange(1, count, device=ids.device), torch.tensor(changed, device=ids.device)

    def disturb(_layer: nn.Module, args: Any) -> Any:
        rows = args[0].view(count, width, -1)[:1].repeat(count, 1, 1)
        rows[copies, places] = rows[copies, places].roll(1, dims=-1)
        return rows.view_as(args[0]), *args[1:]

    def compare(_module: nn.Module, _args: Any, output: Any) -> None:
        moved.append(_moved(output[0].view(count, width, -1)))

    handles = [layer.register_forward_pre_hook(disturb) for layer in layers]
    handles += [_attentions(layer)[0].register_forward_hook(compare) for layer in layers]
    training = backbone.training
    try:
        last_states(backbone.eval(), one_text_each(ids.repeat(count, 1)))
    finally:
        for handle in handles:
            handle.remove()
        backbone.train(training)
    return torch.stack(moved)


def _moved(states: Tensor) -> Tensor:
    """[T, C] bool of states [C + 1, T, D]: whether that of token i in copy c is another than in the original."""
    distance = (states[1:] - states[:1]).float().norm(dim=-1)  # [c, i]
    return (distance > 1e-5 * states[0].float().norm(dim=-1)).T


def probe_ids(backbone: PreTrainedModel) -> Tensor:
    """[T + 1, T] ids: a text, and for each j a copy whose token j is another one."""
    vocabulary = backbone.config.get_text_config().vocab_size
    device = next(backbone.parameters()).device
    ids = (torch.arange(PROBE_TOKENS, device=device) * 37 + 11) % (vocabulary - 8) + 4
    batch = ids.repeat(PROBE_TOKENS + 1, 1)
    for j in range(PROBE_TOKENS):
        batch[j + 1, j] = (ids[j] + vocabulary // 2) % (vocabulary - 8) + 4
    return batch


@torch.no_grad()
def check_order(backbone: PreTrainedModel) -> None:
    """Refuse a decoder whose states do not pass from layer to layer, then through the norm, and out, as they are."""
    layers, norm = parts(backbone)
    given: list[Tensor] = []
    made: list[Tensor] = []

    def keep(_module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        given.append(args[0] if args else kwargs["hidden_states"])
        made.append(output[0] if isinstance(output, tuple) else output)

    handles = [site.register_forward_hook(keep, with_kwargs=True) for site in (*layers, norm)]
    training = backbone.training
    try:
        out = last_states(backbone.eval(), one_text_each(probe_ids(backbone)[:1]))
    except (AttributeError, TypeError, IndexError) as error:  # of the family's own code
        raise UserError(
            f"{type(backbone).__name__} does not run with attn.is_causal={backbone.config.is_causal} and "
            f"{backbone.config._attn_implementation}: {error}. Give another attention, or a base of another family."
        ) from error
    finally:
        for handle in handles:
            handle.remove()
        backbone.train(training)
    passed = zip([*given[1:], out], made, strict=True)
    if len(made) != len(layers) + 1 or not all(torch.equal(a.flatten(0, -2), b.flatten(0, -2)) for a, b in passed):
        raise UserError(
            f"The states of {type(backbone).__name__} do not pass through {len(layers)} layers and one norm in a row, "
            "so no layer of it can be pooled. Give a base of another family, such as Llama, Qwen or GPT-2."
        )


def probe(backbone: PreTrainedModel, is_causal: bool, bi_last: int = 0, longest: int | None = None) -> None:
    """Refuse a decoder whose tokens do not see exactly what the switch says they see; with `bi_last` in each layer.

    longest: tokens of a text at most; None: as many as the decoder has positions. Where the configuration names a
    window or a chunk of attention that is shorter, each layer is tried on a text that is longer than that: "bi" and
    "causal" speak of whole texts, so a window that a text fits into is allowed, and any other refused. A decoder whose
    layers are not those that `parts` finds is refused too.
    """
    check_order(backbone)
    count = len(parts(backbone)[0])
    is_blind = [is_causal and layer < count - bi_last for layer in range(count)]
    near, width = range(PROBE_TOKENS), _beyond_windows(backbone.config.get_text_config(), longest)
    found, wanted = [sight(backbone)], [_allowed(PROBE_TOKENS, near, all(is_blind))]
    if bi_last:
        found += sight_of_layers(backbone)
        wanted += [_allowed(PROBE_TOKENS, near, blind) for blind in is_blind]
    if width > PROBE_TOKENS:
        found += far_sight(backbone, width)
        wanted += [_allowed(width, (0, width - 1), blind) for blind in is_blind]
    pairs = [(seen.cpu(), may) for seen, may in zip(found, wanted, strict=True)]
    leaks, lacking = (sum(int((x & ~y).sum()) for x, y in both) for both in (pairs, [(y, x) for x, y in pairs]))
    if leaks or lacking:
        name = f"bi_last attn.layers={bi_last}" if bi_last else "causal" if is_causal else "bi"
        raise UserError(
            f"attn={name} does not hold for {type(backbone).__name__} with {backbone.config._attn_implementation}: "
            f"{leaks} token pairs see what they must not, {lacking} do not see what they must. Use transformers >= "
            "5.2, model.attn_implementation=unpadded, sdpa or eager and model.sliding_window=false, or a max_length "
            "that the window holds."
        )


def _allowed(width: int, changed: Sequence[int], is_causal: bool) -> Tensor:
    """[T, C] bool: whether token i of T = `width` may see the token at the place `changed[c]`."""
    may = torch.arange(width)[:, None] >= torch.tensor(changed)
    return may if is_causal else torch.ones_like(may)


def _beyond_windows(config: Any, longest: int | None) -> int:
    """Tokens of a text that no window fits of those that `config` names and that a text of `longest` would not fit.

    0: there is none. A number that is no window (Qwen's `max_window_layers`) makes the proof longer, and no weaker.
    """
    longest = min(longest or config.max_position_embeddings, config.max_position_embeddings)
    named = [v for key, v in config.to_dict().items() if "window" in key or "chunk" in key]
    shorter = [v for v in named if type(v) is int and v < longest]
    return min(longest, max(shorter) + 2) if shorter else 0
