"""sentence-transformers, from its installed package: the same function of the same weights, trained its own way."""

from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import convert_outputs_to_fp32
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn

from benchmarks.speed.step import CPU, Step, lora_config
from corpora.triples import Triple
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.precision import resolve_precision
from poolers.shared.base import PAD, TEXT, Pooler, TokenView
from poolers.shared.registry import build_pooler
from records.streams import stream_seed

PEER = "sentence-transformers"  # in tables


class OurPooler(nn.Module):
    """A pooler of ours as a module of theirs, which keeps all hidden states (`all_layer_embeddings`)."""

    def __init__(self, pooler: Pooler) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add sentence_embedding [B, E]."""
        view = TokenView(torch.where(features["attention_mask"].bool(), TEXT, PAD))
        hidden = features["all_layer_embeddings"][1:]  # the first are the token embeddings
        states = [self.pooler.reduce(layer, hidden[layer], view) for layer in self.pooler.layers]
        return {**features, "sentence_embedding": self.pooler(states, view)}


def sentence_transformer(config: dict[str, Any], kernel: str, adapted: bool) -> SentenceTransformer:
    """The encoder of `config` as a SentenceTransformer; `adapted`: with LoRA, by its own add_adapter.

    EOS is added by the tokenizer's own template, which truncation leaves room for. Mixed precision as its trainer has
    it from accelerate: autocast round the model's forward, its outputs turned to float32.
    """
    precision = resolve_precision(config["precision"], CPU)
    settings = {"dtype": precision.weights, "attn_implementation": kernel}
    first = Transformer(config["model"]["path"], model_kwargs=settings, max_seq_length=config["max_length"])
    tokenizer, backbone = first.tokenizer, first.auto_model
    eos = (tokenizer.eos_token, tokenizer.eos_token_id)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=f"$A {eos[0]}", special_tokens=[eos])
    set_attention(backbone, pattern_of(config["attn"]))
    shape = backbone.config
    pooling: nn.Module = Pooling(shape.hidden_size, "lasttoken")
    if config["pooler"]["name"] != "eos":
        backbone.config.output_hidden_states = True
        seed = stream_seed(config["seed"], "head")
        pooling = OurPooler(build_pooler(config["pooler"], shape.hidden_size, shape.num_hidden_layers, seed))
    model = SentenceTransformer(modules=[first, pooling], device="cpu")
    backbone.requires_grad_(False)
    if adapted:
        model.add_adapter(lora_config(config["lora"]))
    if precision.compute is not torch.float32 and precision.weights is torch.float32:
        autocast = torch.autocast("cpu", precision.compute)
        model.forward = convert_outputs_to_fp32(autocast(model.forward))  # type: ignore[method-assign]
    return model


class PeerStep(Step):
    """Its collator, its trainer's `collect_features` and its loss; loop and optimiser are the same as for all.

    mini_batch: arguments of CachedMultipleNegativesRankingLoss (GradCache); None: MultipleNegativesRankingLoss.
    """

    def __init__(self, config: dict[str, Any], kernel: str, mini_batch: dict[str, Any] | None = None) -> None:
        model = sentence_transformer(config, kernel, adapted=True)
        scale = 1 / config["objective"]["temperature"]
        self.collate = SentenceTransformerDataCollator(preprocess_fn=model.preprocess)
        self.loss: nn.Module = MultipleNegativesRankingLoss(model, scale=scale)
        if mini_batch is not None:
            self.loss = CachedMultipleNegativesRankingLoss(model, scale=scale, **mini_batch)
        super().__init__(model, config)

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`."""
        rows = [{"anchor": t.query, "positive": t.positive, "negative": t.negatives[0]} for t in batch]
        trainer: Any = None  # which the method does not use
        features, labels = SentenceTransformerTrainer.collect_features(trainer, self.collate(rows))
        tokens = sum(int(column["attention_mask"].sum()) for column in features)
        loss = self.loss(features, labels)
        loss.backward()
        return loss.detach(), tokens
