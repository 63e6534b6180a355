"""One true batch of any size: chunked passes, one loss over all texts, the full batch's gradient, which is finite."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import torch
import torch.distributed as dist
from torch import Tensor

from cli.errors import UserError
from encoders.attention.switch import is_unpadded
from encoders.encoder import Encoder
from encoders.text_encoder import by_token_budget
from encoders.tokens import TextTokenizer, Tokens
from records.files import stream_seed

NEXT = "Checkpoints are from before it: once the cause is mended, the same command goes on from the last one."
TRY = "Lower objective.lr, or give precision=fp32."


@dataclass(frozen=True)
class ChunkPlan:
    """The cut of texts into forward passes: padded tokens and texts of a chunk at most, and whether graphs are kept.

    gradcache: False keeps the graph of every chunk; True runs all chunks but the last twice, and keeps one graph at a
    time (Gao et al. 2021, arXiv 2101.06983): memory does not depend on the batch. sync: False leaves each process with
    the gradient of its own chunks, as a trainer whose loss goes round DDP.
    """

    token_budget: int
    chunk_size: int | None
    gradcache: bool
    sync: bool = True


class LargeBatch:
    """Embeds the distinct texts of a global batch and sends the loss's gradient back through all of them.

    Chunks are dealt out over the processes, each of which then holds all vectors and computes the same loss. The
    dropout of a chunk is drawn from (seed, step, chunk) alone: the second pass of GradCache replays the first.
    """

    def __init__(self, encoder: Encoder, tokenizer: TextTokenizer, plan: ChunkPlan, seed: int) -> None:
        self.encoder, self.tokenizer, self.plan, self.seed = encoder, tokenizer, plan, seed

    def resize(self, tokens: int) -> None:
        """Cut into chunks of that many tokens from now on; of several processes, of the fewest that one of them has."""
        if world_size() > 1:
            least = torch.tensor(tokens, device=next(self.encoder.parameters()).device)
            dist.all_reduce(least, op=dist.ReduceOp.MIN)
            tokens = int(least)
        self.plan = replace(self.plan, token_budget=tokens)

    def chunks(self, rows: Sequence[Tokens]) -> list[list[int]]:
        """The rows of each forward pass, those of all processes."""
        plan, padded = self.plan, not is_unpadded(self.encoder.backbone)
        return by_token_budget([len(r) for r in rows], plan.token_budget, plan.chunk_size, padded)

    def run_tokens(self, rows: Sequence[Tokens]) -> tuple[int, int]:
        """Tokens of all processes, padding as it is run, and how many of them GradCache runs once alone."""
        chunks = self.chunks(rows)
        sizes = [sum(len(rows[i]) for i in chunk) for chunk in chunks]
        if not is_unpadded(self.encoder.backbone):
            sizes = [len(chunk) * max(len(rows[i]) for i in chunk) for chunk in chunks]
        return sum(sizes), sum(sizes[-world_size() :]) if self.plan.gradcache else 0

    def backward(self, rows: Sequence[Tokens], loss_of: Callable[[Tensor], Tensor], step: int) -> Tensor:
        """Add the gradient of `loss_of(vectors)` to the parameters; vectors: [N, E] float32 in the order of `rows`.

        Returns the loss. With several processes the gradients are summed over them here.
        """
        chunks, self.encoder.texts_of_step = self.chunks(rows), len(rows)
        mine = range(rank(), len(chunks), world_size())
        keeps = mine[-1:] if self.plan.gradcache else mine  # chunks whose graphs stay after the first pass
        device = next(self.encoder.parameters()).device
        kept: dict[int, Tensor] = {}

        vectors = torch.zeros(len(rows), self.encoder.pooler.embedding_dim, device=device)
        for k in mine:
            with torch.set_grad_enabled(k in keeps):
                out = self._run(rows, chunks[k], step, k)
            vectors[chunks[k]] = out.detach()
            if k in keeps:
                kept[k] = out
        if world_size() > 1:
            dist.all_reduce(vectors)
        vectors.requires_grad_(True)

        loss = loss_of(vectors)
        (gradient,) = torch.autograd.grad(loss, vectors)
        for k in sorted(mine, key=lambda k: k not in keeps):  # what is kept first, so that its memory is free again
            out = kept.pop(k) if k in kept else self._run(rows, chunks[k], step, k)
            out.backward(gradient[chunks[k]])
        self.sum_gradients()
        return loss.detach()

    @torch.no_grad()
    def vectors(self, rows: Sequence[Tokens], step: int | None) -> Tensor:
        """[N, E] vectors in the order of `rows`, without gradient; under the dropout of `step`; None: without any."""
        training = self.encoder.training
        self.encoder.train(step is not None)
        vectors = torch.zeros(len(rows), self.encoder.pooler.embedding_dim)
        for k, chunk in enumerate(self.chunks(rows)):
            vectors[chunk] = self._run(rows, chunk, step or 0, k).cpu()
        self.encoder.train(training)
        return vectors

    def seed_chunk(self, step: int, number: int) -> None:
        """Put torch's generator where the masks of a chunk begin."""
        torch.manual_seed(stream_seed(self.seed, "dropout", step, number))

    def _run(self, rows: Sequence[Tokens], texts: list[int], step: int, number: int) -> Tensor:
        self.seed_chunk(step, number)
        batch = self.tokenizer.batch([rows[i] for i in texts])
        vectors = self.encoder(batch.to(next(self.encoder.parameters()).device))
        found, wanted = list(vectors.shape), [len(texts), self.encoder.pooler.embedding_dim]
        if found != wanted:  # an assignment would repeat [N, 1] without a word
            what = f"{type(self.encoder.pooler).__name__} returned {found} for {len(texts)} texts"
            raise UserError(f"The pooler {what}. Return [B, E], here {wanted} (docs/extend.md).")
        return vectors

    def sum_gradients(self) -> None:
        """One all-reduce of all trainable gradients, flattened (LoRA and head are small)."""
        if world_size() == 1 or not self.plan.sync:
            return
        trainable = [p for p in self.encoder.parameters() if p.requires_grad]
        for p in trainable:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        grads = [p.grad for p in trainable if p.grad is not None]
        flat = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(flat)
        for g, part in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
            g.copy_(part.view_as(g))


def world_size() -> int:
    """Number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Number of this process, from zero."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def refuse_step(figures: Mapping[str, Tensor], step: int, where: str = "") -> None:
    """Raise `UserError` in every process where a figure of this step is not finite in any.

    figures: {"loss": ..., "gradient norm": ...}, scalars; where: what was trained on, for the message.
    """
    numbers = {name: float(value.detach()) for name, value in figures.items()}
    finite = all(map(isfinite, numbers.values()))
    fault = torch.tensor(float(not finite), device=next(iter(figures.values())).device)
    if world_size() > 1:
        dist.all_reduce(fault, op=dist.ReduceOp.MAX)
    if fault:
        what = ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())
        whose = "another process" if finite else "this process"
        raise UserError(f"Step {step} is not finite in {whose} ({what}{where}). {TRY} {NEXT}")
