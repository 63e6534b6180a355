"""MiXSE: LoRA experts side by side in every layer, weighed for each token by a linear router (Self-MoE)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from cli.errors import UserError
from encoders.attention.switch import parts
from encoders.fused_lora import fuse_lora

LEARNED = ("shared", "layer")  # routers that can be trained
ROUTERS = (*LEARNED, "random", "uniform")
START = 0.02  # standard deviation of a router's weights at the start, as in transformers' mixtures


@dataclass(frozen=True)
class Mixing:
    """The weighing of experts: conf/adapter/mixse.yaml. top_k: None for all."""

    experts: int
    top_k: int | None
    router: str
    always: bool

    @property
    def routed(self) -> int:
        """Experts that the router chooses among."""
        return self.experts - self.always

    @property
    def active(self) -> int:
        """Experts that a token meets."""
        return min(self.top_k or self.routed, self.routed) + self.always

    @property
    def constant(self) -> list[float] | None:
        """The experts' weights where all tokens have the same, so that they can be merged into the base."""
        return [1.0] * self.always + [1 / self.routed] * self.routed if self.router == "uniform" else None

    @property
    def chooses(self) -> bool:
        """Return whether weights differ between tokens."""
        return self.constant is None and self.routed > 1


class Mixture(nn.Module):
    """The router of a decoder's experts and the sublayers that it weighs them for, in the order of the layers.

    router: [1 or layers, routed experts, D] float32; None where the weights are constant. balance: weight of the loss
    whose gradient `_Balanced` adds. texts: the text of each token of the batch (-1: padding), and how many texts the
    batch and the whole step have; None outside training.
    """

    router: nn.Parameter | None

    def __init__(self, mixing: Mixing, layers: int, hidden_size: int) -> None:
        super().__init__()
        self.mixing = mixing
        self.sublayers: list[Sublayer] = []
        self.balance = 0.0
        self.texts: tuple[Tensor, int, int] | None = None
        shape = (layers if mixing.router == "layer" else 1, mixing.routed, hidden_size)
        drawn = None if mixing.constant else nn.Parameter(torch.randn(shape) * START, mixing.router in LEARNED)
        self.register_parameter("router", drawn)

    @property
    def routers(self) -> list["Sublayer"]:
        """The sublayers whose logits say something: none where there is no choice among experts."""
        return self.sublayers if self.mixing.chooses else []

    def theta(self, layer: int) -> Tensor:
        """Return [routed experts, D], the router's weights in `layer`."""
        assert self.router is not None
        return self.router[layer if len(self.router) > 1 else 0]

    def forward(self, x: Tensor, layer: int) -> tuple[Tensor | None, Tensor]:
        """Return [..., routed] logits and [..., n], the weights of the experts for states x: [..., D] that enter a
        sublayer of `layer`; None and [1, n] where they are constant.

        Kang et al. 2024 (arXiv 2406.12034): alpha = top-k(softmax(theta x)), in float32; not divided by its sum, or
        with k = 1 the router would have no gradient.
        """
        if self.router is None:
            return None, torch.tensor([self.mixing.constant], dtype=torch.float64, device=x.device)
        with torch.autocast(x.device.type, enabled=False):
            theta = self.theta(layer)
            logits = x.to(theta.dtype) @ theta.T
            weights = logits.softmax(dim=-1)
        top_k, chosen = self.mixing.top_k or self.mixing.routed, torch.ones_like(weights)
        if top_k < self.mixing.routed:
            chosen = torch.zeros_like(weights).scatter(-1, weights.topk(top_k, dim=-1).indices, 1.0)
        if self.balance and self.texts and self.training and torch.is_grad_enabled():
            texts, count, of_step = self.texts
            gradient = self.balance / (of_step * len(self.sublayers)) * balance_gradient(chosen, texts, count)
            weights = _Balanced.apply(weights, gradient)
        if top_k < self.mixing.routed:
            weights = weights * chosen
        always = [torch.ones_like(weights[..., :1])] * self.mixing.always
        return logits, torch.cat([*always, weights], dim=-1) if always else weights


def balance_gradient(chosen: Tensor, texts: Tensor, count: int) -> Tensor:
    """Return [..., n], the gradient of a load-balancing loss, summed over texts, with respect to routing weights.

    The loss of a text is n sum over i of f_i P_i: f_i the share of its choices that fall on expert i, which has no
    gradient, P_i the mean weight of i over its tokens (Fedus et al. 2021, arXiv 2101.03961, equations 4 to 6, there
    over a batch). It is 1 where all are used alike. chosen: [..., n] of zeros and ones, as many ones for each token;
    texts: [N], which of `count` texts each of the N tokens is of; -1 for those that do not count.
    """
    flat, experts = chosen.flatten(0, -2), chosen.shape[-1]
    places = texts % (count + 1)  # the last one is that of -1
    sums = flat.new_zeros(count + 1, experts).index_add_(0, places, flat)
    lengths = flat.new_zeros(count + 1).index_add_(0, places, torch.ones_like(flat[:, 0])).clamp(min=1)
    of_texts = experts * sums / sums.sum(dim=1, keepdim=True).clamp(min=1) / lengths[:, None]
    return (of_texts[places] * (texts >= 0)[:, None]).view(chosen.shape)


class _Balanced(torch.autograd.Function):
    """Routing weights as they are; to their gradient that of the balance loss is added, so that chunks know nothing."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return weights.view_as(weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0] + ctx.saved_tensors[0], None


class Sublayer(nn.Module):
    """Attention or MLP of a decoder layer: the experts in all its linear layers have the weights of its input.

    weights: [..., n] of the last forward pass. name: "0 self_attn", the layer's number and the module.
    """

    mixture: Mixture

    def __init__(self, mixture: Mixture, layer: int, name: str) -> None:
        super().__init__()
        self.__dict__["mixture"] = mixture  # no child of this module: its router would have further names
        self.layer, self.name = layer, f"{layer} {name}"
        self.weights: Tensor | None = None

    @property
    def weight(self) -> Tensor:
        """[routed experts, D], as a router of transformers has it."""
        return self.mixture.theta(self.layer)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Weigh the experts for the input x: [..., D]; return its logits [N, routed], as transformers' routers do."""
        logits, self.weights = self.mixture(x, self.layer)
        return () if logits is None else (logits.flatten(0, -2),)

    def before(self, _module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Hook of the sublayer's module."""
        self(args[0] if args else kwargs["hidden_states"])

    def __getstate__(self) -> dict[str, Any]:
        """A copy has no weights yet: those of a forward pass with gradients cannot be copied."""
        return {**vars(self), "weights": None}


def mix(backbone: PreTrainedModel, mixing: Mixing, names: Sequence[str], seed: int) -> Mixture:
    """Let the LoRA adapters `names` of `backbone` be experts: each token's sum of them has the router's weights.

    The router stands at `backbone.mixture`, drawn by `seed`. Raises `UserError` where an expert stands in no sublayer
    of a decoder layer, or in no plain linear layer.
    """
    layers, _ = parts(backbone)
    width = backbone.config.get_text_config().hidden_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        mixture = Mixture(mixing, len(layers), width).to(backbone.device)
    adapted = sum(hasattr(m, "lora_A") for m in backbone.modules())
    for number, layer in enumerate(layers):
        for name, module in layer.named_children():
            sublayer = Sublayer(mixture, number, name)
            if fused := fuse_lora(module, names, sublayer):
                adapted -= fused
                mixture.sublayers.append(sublayer)
                module.register_forward_pre_hook(sublayer.before, with_kwargs=True)
    if adapted:
        raise UserError(
            f"adapter=mixse: {adapted} of the layers that lora.targets names in {type(backbone).__name__} are no "
            "linear layers within the attention or MLP of a decoder layer. Name others, or give adapter=lora."
        )
    backbone.mixture = mixture
    return mixture


def mixture_of(backbone: PreTrainedModel) -> Mixture | None:
    """Return the mixture that `mix` has set; None where there is none."""
    mixture: Mixture | None = getattr(backbone, "mixture", None)
    return mixture
