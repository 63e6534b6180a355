"""The reference trainer's step, re-created: three padded forward passes, all hidden states kept, its own head's way."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from peft import get_peft_model
from torch import Tensor

from benchmarks.speed.step import Step, encoder_of, lora_config
from corpora.triples import Triple
from encoders.encoder import Encoder
from encoders.tokens import Batch
from poolers.multilayer import MultiLayerTrainable
from training.objectives.infonce import infonce


class ReferenceStep(Step):
    """Model 3 or 5 as the published code of arXiv 2409.02727 runs it, for one micro-batch that is the whole batch.

    Queries, positives and negatives go through the model one after the other, each padded to its own longest text
    (the kinder reading). `output_hidden_states` keeps L x B x T x D, which are stacked before they are reduced. The
    head's queries are copied to every text and projected there. Dropout is torch's. Not re-created, because they would
    change the loss: losses over micro-batches of eight, bf16 cosines, unmasked padding.
    """

    def __init__(self, config: dict[str, Any], kernel: str) -> None:
        encoder, self.tokenizer = encoder_of(config)
        encoder.backbone.set_attn_implementation(kernel)
        get_peft_model(encoder.backbone, lora_config(config["lora"]))
        self.encoder: Encoder = encoder
        super().__init__(encoder, config)

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`."""
        columns = [[t.query for t in batch], [t.positive for t in batch], [t.negatives[0] for t in batch]]
        rows = [self.tokenizer(texts) for texts in columns]
        vectors = [self._embed(self.tokenizer.batch(column)) for column in rows]
        masked = torch.zeros(len(batch), 2 * len(batch), dtype=torch.bool)
        loss = infonce(vectors[0], torch.cat(vectors[1:]), masked, self.config["objective"]["temperature"])
        loss.backward()
        return loss.detach(), sum(len(row) for column in rows for row in column)

    def _embed(self, batch: Batch) -> Tensor:
        compute = self.encoder.compute
        with torch.autocast("cpu", compute, enabled=compute is not torch.float32):
            inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
            output = self.encoder.backbone(**inputs, use_cache=False, output_hidden_states=True)
        states = torch.stack(output.hidden_states[1:], dim=1).float()  # [B, L, T, D]
        mask = batch.attention_mask[:, None, :, None]
        pooler = self.encoder.pooler
        assert isinstance(pooler, MultiLayerTrainable)
        if pooler.tokens == "last":
            last = batch.view.last()[:, None, None, None].expand(-1, states.shape[1], 1, states.shape[3])
            keys = states.gather(2, last).squeeze(2)
        else:
            keys = (states * mask).sum(dim=2) / mask.sum(dim=2)
        return _attend(pooler, keys)


def _attend(pooler: MultiLayerTrainable, keys: Tensor) -> Tensor:
    """The head on keys [B, L, D], every text with its own copy of the queries."""
    head = pooler.head
    if pooler.layer_weights is not None:
        keys = keys + pooler.layer_weights
    queries = head.queries.expand(len(keys), -1, -1).contiguous()
    keys = head.norm_keys(keys)
    q = head._split(head.query(head.norm_queries(queries)))
    k, v = head._split(head.key(keys)), head._split(head.value(keys))
    attended = ((q @ k.transpose(-1, -2)) / math.sqrt(head.head_dim)).softmax(dim=-1) @ v
    out = head.output(attended.transpose(1, 2).flatten(2))
    out = out + queries if head.residual else out
    return out.mean(dim=1) if head.mlp is None else head.mlp(out).mean(dim=1)
