"""The loss of MNTP over a global batch: chunk by chunk, since it is a sum over tokens."""

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from encoders.lm_head import logits_at
from encoders.tokens import Batch
from records.streams import stream_seed
from training.large_batch import LargeBatch, rank, world_size
from training.masking import Masked


class MaskedBatch(LargeBatch):
    """Cross entropy of masked tokens, each predicted from the state of the token before it. Set `head`: [V, D].

    Every text is a sequence of its own in every kernel, so no token sees, or is predicted from, another text.
    """

    head: Tensor

    def masked_backward(self, rows: Sequence[Masked], step: int) -> Tensor:
        """Add the gradient of the mean loss over all masked tokens of `rows` to the parameters; return the loss."""
        total = max(1, sum(len(r.places) for r in rows))
        loss = torch.zeros((), device=self.head.device)
        chunks = self.chunks([r.tokens for r in rows])
        for k in range(rank(), len(chunks), world_size()):
            torch.manual_seed(stream_seed(self.seed, "dropout", step, k))
            chunk = [rows[i] for i in chunks[k]]
            if any(r.places for r in chunk):
                part = F.cross_entropy(self.logits(chunk), self.targets(chunk), reduction="sum") / total
                part.backward()
                loss += part.detach()
        if world_size() > 1:
            dist.all_reduce(loss)
        self._sum_gradients()
        return loss

    def logits(self, rows: Sequence[Masked]) -> Tensor:
        """[M, V] float32 logits for the masked tokens of `rows`, text by text: from the states at i - 1 for token i."""
        batch = self.tokenizer.batch([r.tokens for r in rows]).to(self.head.device)
        states = self.encoder.run_backbone(batch)
        text, place = before(batch, rows)
        with self.encoder.precision(batch):
            return logits_at(states[text, place], self.head)

    def targets(self, rows: Sequence[Masked]) -> Tensor:
        """[M] ids of the masked tokens."""
        return torch.tensor([t for r in rows for t in r.targets], device=self.head.device)

    @torch.no_grad()
    def scores(self, rows: Sequence[Masked]) -> tuple[float, float]:
        """Mean loss (nats) and accuracy over all masked tokens of `rows`, without dropout."""
        training = self.encoder.training
        self.encoder.eval()
        found = list(self._scored(rows))
        self.encoder.train(training)
        total = sum(count for _, _, count in found)
        return sum(loss for loss, _, _ in found) / total, sum(right for _, right, _ in found) / total

    def _scored(self, rows: Sequence[Masked]) -> Iterator[tuple[float, int, int]]:
        for chunk in self.chunks([r.tokens for r in rows]):
            chosen = [rows[i] for i in chunk]
            if any(r.places for r in chosen):
                logits, targets = self.logits(chosen), self.targets(chosen)
                right = int((logits.argmax(dim=-1) == targets).sum())
                yield float(F.cross_entropy(logits, targets, reduction="sum")), right, len(targets)


def before(batch: Batch, rows: Sequence[Masked]) -> tuple[Tensor, Tensor]:
    """(text, column) of the state that predicts each masked token: the token before it, padding on the left counted."""
    starts = batch.attention_mask.argmax(dim=1).tolist()
    places = [(b, starts[b] + i - 1) for b, row in enumerate(rows) for i in row.places]
    pairs = torch.tensor(places, dtype=torch.long, device=batch.roles.device).view(-1, 2)
    return pairs[:, 0], pairs[:, 1]
