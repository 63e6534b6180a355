"""Latent attention (NV-Embed): every token attends to trainable latents, an MLP follows, the tokens are averaged."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from cli.limits import Limit
from poolers.shared.base import Pooler, States, TokenView, weighted_mean, which_tokens
from poolers.shared.cross_attention import LIMITS, WORDS, GegluMLP, sized


class LatentAttention(Pooler):
    """Queries are the last layer's token states, keys and values R trainable latents (arXiv 2405.17428, section 3.1).

    y = h + W_o softmax(W_q norm(h) (W_k norm(z))^T / sqrt(d)) W_v norm(z), head by head; then y + GEGLU(norm(y)), and
    the mean over the pooled tokens: without the instruction unless `pool_instruction`. Norms, residuals and the
    latents z [R, D] as in the published model. All float32. Tokens do not see one another here.

    head: sizes and start, head.* of conf/ and `sized`, num_latents in the place of num_queries. start:
    "near_mean" makes the pooler the plain mean at first (attention and MLP add zero); "torch" is torch's own start.
    """

    needs_training: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = LIMITS
    words: ClassVar[Mapping[str, Sequence[Any]]] = WORDS

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        *,
        num_latents: int,
        query_std: float = 0.02,
        start: str = "near_mean",
        **settings: Any,
    ) -> None:
        super().__init__(hidden_size, num_layers, **which_tokens(settings))
        size = sized(hidden_size, {"num_queries": num_latents, **settings})
        self.num_heads, self.head_dim = size["num_heads"], size["head_dim"]
        inner = self.num_heads * self.head_dim
        self.latents = nn.Parameter(torch.randn(size["num_queries"], hidden_size) * query_std)
        self.norm_tokens, self.norm_latents = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.query = nn.Linear(hidden_size, inner, bias=False)
        self.key = nn.Linear(hidden_size, inner, bias=False)
        self.value = nn.Linear(hidden_size, inner, bias=False)
        self.output = nn.Linear(inner, hidden_size, bias=False)
        if start == "near_mean":
            nn.init.zeros_(self.output.weight)
        near, mlp_inner = start == "near_mean", size["mlp_inner"]  # the MLP last: attention starts alike without it
        self.mlp = GegluMLP(hidden_size, mlp_inner, as_identity=near) if mlp_inner else None

    def forward(self, states: States, tokens: TokenView) -> Tensor:
        """Return [B, D]."""
        assert isinstance(states, Tensor)
        pooled = self.pooled(tokens)
        hidden = states.float().masked_fill(~pooled[..., None], 0.0)  # a NaN in padding must reach no gradient
        states = hidden + self.attended(hidden)
        average = partial(weighted_mean, weights=pooled)
        return average(states) if self.mlp is None else self.mlp.averaged(states, average)

    def attended(self, hidden: Tensor) -> Tensor:
        """[B, T, D] of hidden [B, T, D]: what each token reads of the latents."""
        latents = self.norm_latents(self.latents)
        projected = (self.query(self.norm_tokens(hidden)), self.key(latents), self.value(latents))
        queries, keys, values = (x.unflatten(-1, (self.num_heads, self.head_dim)) for x in projected)
        scores = torch.einsum("bthd,rhd->bthr", queries, keys) / math.sqrt(self.head_dim)
        read = torch.einsum("bthr,rhd->bthd", scores.softmax(dim=-1), values)
        return self.output(read.flatten(2))
