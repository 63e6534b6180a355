"""A decoder as it runs: its layers, the kernel and the pattern of their attention, the layout of a batch for it."""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import MODEL_MAPPING, PreTrainedModel

from cli.errors import UserError
from encoders.attention.pattern import Pattern, earlier, whole_text
from encoders.attention.prepending import PLACES, placeholders
from encoders.attention.unpadded import UNPADDED, Segments
from encoders.tokens import Batch
from poolers.shared.base import TEXT
from poolers.shared.packed import Packed

TAKE_ANY = ("eager", "sdpa", UNPADDED)  # kernels that take any pattern; others know causal and bidirectional alone
# Families that run without any window. The others build a window's mask always, and in Gemma 3 the kind of a layer also
# decides its rotary base, so kinds must stay.
WINDOWLESS = ("mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe")
ROWS = (*WINDOWLESS, "llama", "olmo2", "olmoe", "qwen2_moe")  # tests/encoders/test_families.py


def kernel_of(model: dict[str, Any], config: Any, padding: bool = False) -> str:
    """The attention kernel; "auto" takes what is fast on short texts (the result is the same).

    padding: whether a pooler reads states of padding. Raises `UserError` for `unpadded` where it cannot be had.
    """
    kernel = model["attn_implementation"]
    refuse_unpadded(kernel, padding)
    window = getattr(config, "sliding_window", None)  # texts share a row where attention is over all tokens of a text
    takes_rows = config.model_type in ROWS and (window is None or window > config.max_position_embeddings)
    if kernel == UNPADDED and not takes_rows:
        raise UserError(
            f"model.attn_implementation=unpadded is not made for {config.model_type} with a sliding window or another "
            "kind of attention than softmax over all tokens. Give sdpa or eager, or model.sliding_window=false."
        )
    if kernel != "auto":
        return kernel
    if takes_rows and not padding:
        return UNPADDED
    return "sdpa" if torch.cuda.is_available() and knows_sdpa(config) else "eager"


def refuse_unpadded(kernel: str, padding: bool) -> None:
    """Raise `UserError` for the kernel without padding where a pooler reads states of padding, which were zeros."""
    if kernel == UNPADDED and padding:
        raise UserError(
            "model.attn_implementation=unpadded has no states of padding, which the pooler reads with last_real=false "
            "or mask_padding=false. Give auto, sdpa or eager, or leave these keys at true."
        )


def knows_sdpa(config: Any) -> bool:
    """Return whether sdpa computes this family's attention; soft-capped scores and sinks it cannot."""
    return bool(getattr(MODEL_MAPPING.get(type(config), None), "_supports_sdpa", False))


def is_unpadded(backbone: PreTrainedModel) -> bool:
    """Return whether the decoder takes its texts as one row (`model.attn_implementation=unpadded`)."""
    return backbone.config._attn_implementation == UNPADDED


def set_attention(backbone: PreTrainedModel, pattern: Pattern) -> None:
    """Let the tokens of each layer see what `pattern` says.

    A decoder with causal layers keeps transformers' causal mask (`config.is_causal`), others mostly get the
    bidirectional one; layers that are to see otherwise have it replaced. Raises `UserError` where the pattern does not
    fit the decoder or its kernel.
    """
    layers, _ = parts(backbone)
    of_layers = pattern.of_layers(len(layers))
    chunked = getattr(backbone.config, "attention_chunk_size", None)  # Llama 4's mask of chunks is causal always
    usual = earlier if earlier in of_layers or chunked else whole_text
    kernel = backbone.config._attn_implementation
    if kernel not in TAKE_ANY and set(of_layers) - {earlier, whole_text}:
        raise UserError(
            f"{pattern} is neither causal nor bidirectional, which is all that {kernel} computes. "
            "Give model.attn_implementation=auto, unpadded, sdpa or eager."
        )
    backbone.config.is_causal = usual is earlier
    for module in attentions(backbone):
        module.is_causal = usual is earlier  # type: ignore[assignment]
    for layer, mask_fn in zip(layers, of_layers, strict=True):
        if mask_fn is not usual and not attentions(layer):
            raise UserError(
                f"attn={pattern.name} cannot switch single layers of {type(backbone).__name__}, whose attention does "
                "not say whether it is causal. Give attn=causal or attn=bi."
            )
        for module in attentions(layer):
            module.mask_fn, module.is_causal = mask_fn, mask_fn is earlier  # type: ignore[assignment]
            if mask_fn is not usual and not any(hook is replace_mask for hook in module._forward_pre_hooks.values()):
                module.register_forward_pre_hook(replace_mask, with_kwargs=True)
    backbone.pattern = pattern  # type: ignore[assignment]


def attention_of(backbone: PreTrainedModel) -> Pattern:
    """Return the pattern that `set_attention` has set."""
    return cast(Pattern, backbone.pattern)


def attentions(module: nn.Module) -> list[nn.Module]:
    """Return the attention modules in `module`: those that say whether they are causal."""
    return [m for m in module.modules() if isinstance(getattr(m, "is_causal", None), bool)]


def replace_mask(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Hook of an attention module: put the mask of what its tokens may see in the place of transformers' own.

    The keys that are real tokens stand in the last row of either mask, [B, 1, 1, T] of [B, 1, T, T]. Without a mask
    bidirectional attention is left to `is_causal`. Another kernel's mask stays, and a row without padding has none.
    """
    if module.mask_fn is earlier:
        return None
    mask = kwargs.get("attention_mask")
    if mask is None and module.mask_fn is not whole_text and "segments" not in kwargs:
        states = args[0] if args else kwargs["hidden_states"]
        empty = torch.ones if module.config._attn_implementation == "sdpa" else torch.zeros
        kind = torch.bool if empty is torch.ones else states.dtype
        mask = empty(len(states), 1, 1, states.shape[1], dtype=kind, device=states.device)
    if isinstance(mask, Tensor) and mask.dim() == 4:
        last = mask[:, :, -1:]
        mask = last.expand_as(mask) if module.mask_fn is whole_text else _narrowed(last, module.mask_fn)
        kwargs = {**kwargs, "attention_mask": mask}
    return args, {**kwargs, "is_causal": False} if "is_causal" in kwargs else kwargs


def _narrowed(mask: Tensor, mask_fn: Any) -> Tensor:
    """[B, 1, T, T] of a mask of real keys [B, 1, 1, T], bool or additive, with what `mask_fn` forbids taken out."""
    real = (mask if mask.dtype is torch.bool else mask == 0)[:, 0, 0]
    positions = (real.cumsum(dim=-1) - 1).clamp(min=0)  # padding has no place in its text; no state of it is read
    may = (mask_fn(positions[:, :, None], positions[:, None]) & real[:, None])[:, None]
    return may if mask.dtype is torch.bool else torch.zeros_like(mask).masked_fill(~may, torch.finfo(mask.dtype).min)


def parts(backbone: PreTrainedModel) -> tuple[list[nn.Module], nn.Module]:
    """Return the decoder layers and the final norm.

    They are the one list of as many modules as there are layers, and the last norm beside it. The probe of attention
    proves that states pass through them in this order. Raises `UserError` for what is no such decoder.
    """
    inner: Any = backbone.get_decoder()
    count = backbone.config.get_text_config().num_hidden_layers
    children = list(inner.children())
    lists = [m for m in children if isinstance(m, nn.ModuleList) and len(m) == count]
    norms = [m for m in children if "Norm" in type(m).__name__]
    if len(lists) != 1 or not norms or backbone.config.is_encoder_decoder:
        raise UserError(
            f"{type(backbone).__name__} is no decoder of {count} layers in a row with a norm after the last. "
            "Give a base of another family, such as Llama, Qwen, Mistral, Gemma, GPT-2 or Phi."
        )
    return list(lists[0]), norms[-1]


@dataclass(frozen=True)
class Rows:
    """A batch as a decoder's inputs, and the way back. places: [N] of the row's tokens in [B * T]; None: padded."""

    inputs: dict[str, Any]
    shape: tuple[int, int]
    places: Tensor | None

    @property
    def texts(self) -> Tensor:
        """[N], the text of each token as the decoder has them, from 0; -1 at padding."""
        count, width = self.shape
        if self.places is not None:
            return self.places // width
        mask: Tensor = self.inputs["attention_mask"]
        return torch.where(mask.bool(), torch.arange(count, device=mask.device)[:, None], -1).flatten()

    def packed(self, states: Tensor) -> Tensor | Packed:
        """The states without padding where the decoder has none."""
        return states if self.places is None else Packed(states[0], self.places, self.shape)

    def padded(self, states: Tensor) -> Tensor:
        """[B, T, D] of the decoder's own [1, N, D] or [B, T, D]; zeros stand at padding that was left out."""
        if self.places is None:
            return states
        count, width = self.shape
        empty = states.new_zeros(count * width, states.shape[-1])
        return empty.index_copy(0, self.places, states[0]).view(count, width, -1)


def arranged(backbone: PreTrainedModel, batch: Batch) -> Rows:
    """`batch` as `backbone` wants it."""
    shape, packed = (batch.roles.shape[0], batch.roles.shape[1]), is_unpadded(backbone)
    held = {PLACES: placeholders(batch.view, packed)} if hasattr(backbone, "prepended") else {}
    if not packed:
        positions = {"attention_mask": batch.attention_mask, "position_ids": batch.position_ids}
        return Rows({"input_ids": batch.input_ids, **positions, "use_cache": False, **held}, shape, None)
    places, lengths = batch.real
    row = {name: getattr(batch, name).flatten()[places][None] for name in ("input_ids", "position_ids")}
    return Rows({**row, "use_cache": False, "segments": Segments(lengths, places.device), **held}, shape, places)


def one_text_each(ids: Tensor) -> Batch:
    """[B, T] ids without any padding as a batch of plain text."""
    return Batch(ids, torch.full_like(ids, TEXT), torch.arange(ids.shape[1], device=ids.device).expand_as(ids))
