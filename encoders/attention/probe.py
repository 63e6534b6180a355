"""The leak probe: which token's state moves when another token changes, against what the pattern says it sees."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from cli.errors import UserError
from encoders.attention.pattern import MaskFn, Pattern, earlier, whole_text
from encoders.attention.switch import arranged, attentions, one_text_each, parts

PROBE_TOKENS = 6


def probe(backbone: PreTrainedModel, pattern: Pattern, longest: int | None = None) -> None:
    """Refuse a decoder whose tokens do not see exactly what `pattern` says they see.

    The states of the last layer are proved, and each layer by itself unless all are causal.
    longest: tokens of a text at most; None: as many as the decoder has positions. Where the configuration names a
    shorter window, each layer is tried on a longer text; under a pattern of another kind, on one of `longest` tokens.
    """
    config = backbone.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    for of in (rope, *filter(lambda value: isinstance(value, dict), rope.values())):  # for all layers, or by their type
        if of.get("rope_type") == "longrope" and (most := of["original_max_position_embeddings"]) < (longest or 0):
            raise UserError(f"Above {most} tokens a batch decides LongRoPE's angles of a text. Give max_length={most}.")
    _check_order(backbone, pattern)
    of_layers = pattern.of_layers(len(parts(backbone)[0]))
    other = bool(set(of_layers) - {earlier, whole_text})
    near, width = range(PROBE_TOKENS), _far_width(config, longest, other)
    allowed = [_allowed(mask_fn, PROBE_TOKENS, near) for mask_fn in of_layers]
    reached = torch.eye(PROBE_TOKENS)  # the tokens that a state depends on, over all layers and past them
    for may in allowed:
        reached = ((may.float() + torch.eye(PROBE_TOKENS)) @ reached > 0).float()
    found, wanted = [visible(backbone)], [reached.bool()]
    if set(of_layers) != {earlier}:
        found += visible_in_layers(backbone)
        wanted += allowed
    if width > PROBE_TOKENS:
        far = (0, width // 2, width - 1) if other else (0, width - 1)
        found += visible_in_layers(backbone, probe_ids(backbone)[0, :1].repeat(width), far)
        wanted += [_allowed(mask_fn, width, far) for mask_fn in of_layers]
    pairs = [(state.cpu(), may) for state, may in zip(found, wanted, strict=True)]
    leaks, lacking = (sum(int((x & ~y).sum()) for x, y in both) for both in (pairs, [(y, x) for x, y in pairs]))
    if leaks or lacking:
        raise UserError(
            f"{pattern} does not hold for {type(backbone).__name__} with {backbone.config._attn_implementation}: "
            f"{leaks} token pairs see what they must not, {lacking} do not see what they must. Use transformers >= "
            "5.2, model.attn_implementation=unpadded, sdpa or eager and model.sliding_window=false, a max_length "
            "that the window holds, or attn=causal for a hybrid of attention and other layers."
        )


def _allowed(mask_fn: MaskFn, width: int, changed: Sequence[int]) -> Tensor:
    """[T, C] bool: whether token i of T = `width` may see the token at the place `changed[c]`."""
    return mask_fn(torch.arange(width)[:, None], torch.tensor(changed)[None])


def _far_width(config: Any, longest: int | None, other: bool) -> int:
    """Tokens of a text that no window fits of those that `config` names below `longest`; 0 where it names none.

    other: whether the pattern itself may see less than the text; then it is `longest`, window or not.
    """
    longest = min(longest or config.max_position_embeddings, config.max_position_embeddings)
    named = [v for key, v in config.to_dict().items() if "window" in key or "chunk" in key]
    shorter = [v for v in named if type(v) is int and v < longest]
    return longest if other else min(longest, max(shorter) + 2) if shorter else 0


@torch.no_grad()
def probed(backbone: PreTrainedModel, ids: Tensor, hooks: Iterable[RemovableHandle] = ()) -> Tensor:
    """[B, T, D] states of the last layer for plain texts `ids` [B, T], without dropout; `hooks` are then removed."""
    training = backbone.training
    try:
        rows = arranged(backbone.eval(), one_text_each(ids))
        return rows.padded(backbone(**rows.inputs).last_hidden_state)
    finally:
        for hook in hooks:
            hook.remove()
        backbone.train(training)


def visible(backbone: PreTrainedModel) -> Tensor:
    """Return [T, T] bool: entry (i, j) is whether the last layer's state of token i depends on token j."""
    return _moved(probed(backbone, probe_ids(backbone)))


def visible_in_layers(
    backbone: PreTrainedModel, ids: Tensor | None = None, changed: Sequence[int] = range(PROBE_TOKENS)
) -> Tensor:
    """Return [L, T, C] bool: whether layer l alone lets token i of `ids` [T] see the token at the place `changed[c]`.

    Every layer gets its own original and C copies of it, in each one token with its features rolled by one place; what
    its attention makes of them is compared, or the layer where none says that it is attention, as in a hybrid.
    """
    layers, _ = parts(backbone)
    moved: list[Tensor] = []
    ids = probe_ids(backbone)[0] if ids is None else ids
    count, width = len(changed) + 1, len(ids)
    copies, places = torch.arange(1, count, device=ids.device), torch.tensor(changed, device=ids.device)

    def disturb(_layer: nn.Module, args: Any) -> Any:
        rows = args[0].view(count, width, -1)[:1].repeat(count, 1, 1)
        rows[copies, places] = rows[copies, places].roll(1, dims=-1)
        return rows.view_as(args[0]), *args[1:]

    def compare(_module: nn.Module, _args: Any, output: Any) -> None:
        moved.append(_moved((output[0] if isinstance(output, tuple) else output).view(count, width, -1)))

    hooks = [layer.register_forward_pre_hook(disturb) for layer in layers]
    hooks += [(attentions(layer) or [layer])[0].register_forward_hook(compare) for layer in layers]
    probed(backbone, ids.repeat(count, 1), hooks)
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


def _check_order(backbone: PreTrainedModel, pattern: Pattern) -> None:
    """Refuse a decoder whose states do not pass from layer to layer, then through the norm, and out, as they are."""
    layers, norm = parts(backbone)
    sites = [*layers, norm]
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []

    def keep(_module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        inputs.append(args[0] if args else kwargs["hidden_states"])
        outputs.append(output[0] if isinstance(output, tuple) else output)

    hooks = [site.register_forward_hook(keep, with_kwargs=True) for site in sites]
    try:
        out = probed(backbone, probe_ids(backbone)[:1], hooks)
    except (AttributeError, TypeError, IndexError) as error:  # of the family's own code
        raise UserError(
            f"{type(backbone).__name__} does not run with {pattern} and {backbone.config._attn_implementation}: "
            f"{error}. Give another attention, or a base of another family."
        ) from error
    passed = zip([*inputs[1:], out], outputs, strict=True)
    if len(outputs) != len(sites) or not all(torch.equal(a.flatten(0, -2), b.flatten(0, -2)) for a, b in passed):
        raise UserError(
            f"The states of {type(backbone).__name__} do not pass through {len(layers)} layers and one norm in a row, "
            "so no layer of it can be pooled. Give a base of another family, such as Llama, Qwen or GPT-2."
        )
