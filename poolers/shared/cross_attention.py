"""The trainable head of the study: a few trainable queries attend to keys, an MLP follows, the queries are averaged."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cli.errors import UserError
from cli.limits import Limit, real

LIMITS = {  # of the keys of head.* in conf/encoder.yaml, and of `match_params`
    **dict.fromkeys(("num_queries", "num_latents", "num_heads"), Limit(1)),
    "head_dim": Limit(1, "hidden size / num_heads"),
    "of_width": Limit(1, "the sizes as they stand"),
    "match_params": Limit(1, "as the sizes make it"),
    "mlp_factor": real(1e-6),
    **dict.fromkeys(("query_std", "layer_weights_std"), real(0)),
}
ONE_KEY = "so pooler.query=instruction can move no attention. Give pooler.tokens=all, or pooler.query=fixed."
TOKENS = ("all", "last", "mean")
WORDS = {"start": ("near_mean", "torch"), "query": ("fixed", "instruction")}


def sized(width: int, settings: dict[str, Any], extra: int = 0) -> dict[str, Any]:
    """Return the arguments of `CrossAttentionHead` from the keys of head.* in conf/encoder.yaml.

    of_width: num_queries and head_dim are meant for that hidden size, and scaled in proportion to `width`.
    match_params: the MLP's inner width is chosen so that the pooler has this many parameters, `extra` included, to
    within half of what one inner unit has (1.5 `width` + 1).
    """
    head = dict(settings)
    of, match = head.pop("of_width", None), head.pop("match_params", None)
    mlp, factor = head.pop("mlp"), head.pop("mlp_factor")
    share = width / of if of else 1.0
    head["num_queries"] = max(1, round(head["num_queries"] * share))
    head_dim = head["head_dim"] or (of or width) // head["num_heads"]
    head["head_dim"] = max(1, round(head_dim * share))
    head["mlp_inner"] = max(1, round(width * factor)) if mlp else 0
    if match is None:
        return head
    wanted = match - extra - (width**2 if head.get("query") == "instruction" else 0)
    least = head_parameters(width, **{k: head[k] for k in ("num_queries", "num_heads", "head_dim")}, mlp_inner=1)
    if not mlp or wanted < least:
        raise UserError(
            f"pooler.match_params leaves {wanted:,} parameters for the head, which has at least {least:,} "
            "and is matched by its MLP. Give more, lower pooler.num_queries or num_heads * head_dim, or set "
            "pooler.mlp=true."
        )
    return head | {"mlp_inner": round(1 + (wanted - least) / (3 * width + 2))}


def head_parameters(width: int, num_queries: int, num_heads: int, head_dim: int, mlp_inner: int) -> int:
    """Parameters of `CrossAttentionHead`: queries, two norms, four projections; MLP: norm, 2 x inner, back.

    query="instruction" has width^2 more.
    """
    attention = num_queries * width + 4 * width + 4 * width * num_heads * head_dim
    return attention + (mlp_inner * (3 * width + 2) + 3 * width if mlp_inner else 0)


class GegluMLP(nn.Module):
    """Pre-norm GEGLU feed-forward with residual: x + W2 (a * gelu(b)), (a, b) = W1 norm(x)."""

    def __init__(self, width: int, inner: int, as_identity: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.enter = nn.Linear(width, 2 * inner)
        self.leave = nn.Linear(inner, width)
        if as_identity:
            nn.init.zeros_(self.leave.weight)
            nn.init.zeros_(self.leave.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x: [..., width]; the same shape comes back."""
        return x + self.leave(self._within(x))

    def averaged(self, x: Tensor, average: Callable[[Tensor], Tensor]) -> Tensor:
        """`average(self(x))`, its second product once per text: W2 and its offset may stand before or after a mean.

        average: a mean over some axis but the last, under weights whose sum is one.
        """
        return average(x) + self.leave(average(self._within(x)))

    def _within(self, x: Tensor) -> Tensor:
        value, gate = self.enter(self.norm(x)).chunk(2, dim=-1)
        return value * F.gelu(gate)


class CrossAttentionHead(nn.Module):
    """Trainable queries Q [N, D] over keys and values made from K states a text, then MLP and mean over queries.

    arXiv 2409.02727, "last-layer trainable pooling": attention softmax(Q W_q (X W_k)^T / sqrt(d)) X W_v, then an MLP.
    Everything is float32. The query projection does not depend on the text and is computed once per batch.

    mlp_inner: 0 for no MLP. query_std: the queries start from N(0, query_std^2). residual: whether the queries are
    added to what they attend to, as the published code does. start: "near_mean" or "torch" (torch's own random start).

    query: "fixed", or "instruction": q_n = norm(Q_n) + W norm(u), u the mean state of the instruction's tokens, zero
    without one; W [D, D] starts at zero. It is added after the norm, which scales the small Q_n up: before it, a few
    steps of the optimiser on W would drown them. The residual adds Q_n alone.
    """

    def __init__(
        self,
        width: int,
        *,
        num_queries: int,
        num_heads: int,
        head_dim: int,
        mlp_inner: int,
        query_std: float = 0.02,
        residual: bool = False,
        start: str = "near_mean",
        query: str = "fixed",
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.residual = num_heads, head_dim, residual
        inner = self.num_heads * self.head_dim
        self.queries = nn.Parameter(torch.randn(num_queries, width) * query_std)
        self.norm_queries, self.norm_keys = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query = nn.Linear(width, inner, bias=False)
        self.key = nn.Linear(width, inner, bias=False)
        self.value = nn.Linear(width, inner, bias=False)
        self.output = nn.Linear(inner, width, bias=False)
        if start == "near_mean":  # of the keys, rotated, the MLP the identity: LoRA's learning rate then suffices
            for linear in (self.value, self.output):
                nn.init.orthogonal_(linear.weight)
            for linear in (self.query, self.key):
                nn.init.normal_(linear.weight, std=width**-0.5 * 0.5)
        # made last, so that attention starts alike with and without it
        self.mlp = GegluMLP(width, mlp_inner, as_identity=start == "near_mean") if mlp_inner else None
        self.of_instruction: nn.Linear | None = None  # W, made after all else for the same reason
        if query == "instruction":
            self.of_instruction = nn.Linear(width, width, bias=False)
            nn.init.zeros_(self.of_instruction.weight)

    def forward(self, states: Tensor, mask: Tensor | None = None, asked: Tensor | None = None) -> Tensor:
        """Return [B, D]. states: [B, K, D]; mask: [B, K] bool, the keys that exist (None: all of them).

        asked: u, [B, 1, D] or another for each key [B, K, D]; of use with query="instruction", which needs it.
        """
        return self.finish(self.partial(states, mask, asked)[0])

    def partial(self, states: Tensor, mask: Tensor | None, asked: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Attention over one part of the keys: (result [B, H, N, d], log of the softmax's denominator [B, H, N, 1]).

        Parts combine exactly by `merge`, so the keys of all layers need never be held together.
        """
        x = self.norm_keys(states.float())
        if mask is not None:
            x = x.masked_fill(~mask[..., None], 0.0)  # a NaN in a padded state must not pass through 0 * NaN
        keys, values = self._split(self.key(x)), self._split(self.value(x))
        queries = self._split(self.query(self.norm_queries(self.queries))[None])
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(self.head_dim)
        if self.of_instruction is not None:
            assert asked is not None
            scores = scores + (self.moved(asked) * keys).sum(dim=-1)[:, :, None] / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        return scores.softmax(dim=-1) @ values, scores.logsumexp(dim=-1, keepdim=True)

    def moved(self, asked: Tensor) -> Tensor:
        """[B, H, K, d]: what the instruction adds to every query, projected; asked: u, [B, K, D]."""
        assert self.of_instruction is not None
        return self._split(self.query(self.of_instruction(F.layer_norm(asked, asked.shape[-1:]))))

    @staticmethod
    def merge(parts: list[Tensor], logs: list[Tensor]) -> Tensor:
        """Combine partial attentions into the attention over all keys: their mean under softmax of `logs`."""
        weights = torch.stack(logs).softmax(dim=0)
        return (torch.stack(parts) * weights).sum(dim=0)

    def finish(self, attended: Tensor) -> Tensor:
        """Output projection, MLP, mean over queries: [B, H, N, d] -> [B, D]."""
        out = self.output(attended.transpose(1, 2).flatten(2))
        out = out + self.queries if self.residual else out
        return out.mean(dim=1) if self.mlp is None else self.mlp.averaged(out, lambda x: x.mean(dim=1))

    def _split(self, x: Tensor) -> Tensor:
        """[B, K, H*d] -> [B, H, K, d]."""
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
