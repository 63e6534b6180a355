"""Training steps that are timed: ours, sentence-transformers' on the same batches, and a dense run without padding.

A step tokenises, embeds, computes InfoNCE with one hard negative a query, goes backward, clips and updates.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from corpora.triples import Triple
from encoders.adapter import add_lora, lora_config
from encoders.attention.pattern import pattern_of
from encoders.attention.switch import set_attention
from encoders.backbone import load_backbone
from encoders.loading import build_tokenizer
from encoders.precision import best_device, resolve_precision
from poolers.shared.base import PAD, TEXT, Pooler, TokenView
from poolers.shared.registry import build_pooler
from records.files import stream_seed
from training.objectives.infonce import Candidates, candidates, contrastive_loss, infonce
from training.set_up import set_up

Config = dict[str, Any]
KERNEL = "sdpa"  # of the others
DENSE_TOKENS = 8192  # of a forward pass without padding


class Step(ABC):
    """A loop around model, loss and optimiser without loggers, callbacks or checkpoints: the same for all."""

    def __init__(self, module: nn.Module, config: Config) -> None:
        self.module, self.config = module.train(), config
        o = config["objective"]
        self.trained = [p for p in module.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=o["lr"], weight_decay=o["weight_decay"])

    @abstractmethod
    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """Add the gradient of the loss on `batch` to the parameters; return the loss and the number of real tokens."""

    def __call__(self, batch: Sequence[Triple]) -> int:
        """Take one full step; return the number of real tokens."""
        loss, tokens = self.backward(batch)
        torch.nn.utils.clip_grad_norm_(self.trained, self.config["trainer"]["gradient_clip"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        loss.item()  # waits for a GPU
        return tokens


class OurStep(Step):
    """The step of `training/module.py`, without Lightning."""

    def __init__(self, config: Config) -> None:
        self.setup = set_up(config)
        self.number = 0
        super().__init__(self.setup.encoder, config)

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`."""
        layout = self.laid_out(batch)
        rows = self.setup.tokenizer.pairs(layout.texts)
        self.number += 1
        loss = self.setup.work.backward(rows, contrastive_loss(layout, self.config["objective"]), self.number)
        return loss, sum(map(len, rows))

    def run_tokens(self, batch: Sequence[Triple]) -> tuple[int, int]:
        """Return the tokens that are run, padding too, and those that GradCache spares."""
        return self.setup.work.run_tokens(self.setup.tokenizer.pairs(self.laid_out(batch).texts))

    def laid_out(self, batch: Sequence[Triple]) -> Candidates:
        """Return which texts of a batch are compared."""
        template = self.setup.tokenizer.template
        return candidates(batch, None, self.config["objective"]["hard_negatives"], template=template)


class OurPooler(nn.Module):
    """A pooler of ours as a module of sentence-transformers, which keeps all hidden states."""

    def __init__(self, pooler: Pooler) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Add sentence_embedding [B, E]."""
        view = TokenView(torch.where(features["attention_mask"].bool(), TEXT, PAD))
        hidden = features["all_layer_embeddings"][1:]  # the first are the token embeddings
        states: Any = hidden[-1]
        if self.pooler.consumes == "layers":
            states = [self.pooler.reduce(layer, hidden[layer], view) for layer in self.pooler.layers]
        return {**features, "sentence_embedding": self.pooler(states, view)}


class PeerStep(Step):
    """sentence-transformers: its model, LoRA, collator, padding, `collect_features` and loss; loop and optimiser are
    the same as for all."""

    def __init__(self, config: Config) -> None:
        from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

        model = sentence_transformer(config)
        self.collate = SentenceTransformerDataCollator(preprocess_fn=model.preprocess)
        self.loss = MultipleNegativesRankingLoss(model, scale=1 / config["objective"]["temperature"])
        super().__init__(model, config)

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`."""
        from sentence_transformers import SentenceTransformerTrainer

        rows = [{"anchor": t.query, "positive": t.positive, "negative": t.negatives[0]} for t in batch]
        trainer: Any = None  # which the method does not use
        features, labels = SentenceTransformerTrainer.collect_features(trainer, self.collate(rows))
        device = next(self.module.parameters()).device
        features = [{key: of.to(device) for key, of in column.items() if hasattr(of, "to")} for column in features]
        tokens = sum(int(column["attention_mask"].sum()) for column in features)
        loss = self.loss(features, labels)
        loss.backward()
        return loss.detach(), tokens


def sentence_transformer(config: Config) -> Any:
    """Return the encoder of `config` as a SentenceTransformer with LoRA, by its own add_adapter.

    EOS, and BOS where we have it, are added by the tokenizer's own template, which truncation leaves room for. Mixed
    precision as its trainer has it from accelerate: autocast round the model's forward, its outputs turned to float32.
    """
    from accelerate.utils import convert_outputs_to_fp32
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Transformer
    from tokenizers.processors import TemplateProcessing

    device = best_device(config["accelerator"])
    precision = resolve_precision(config["precision"], device)
    settings = {"dtype": precision.weights, "attn_implementation": KERNEL}
    first = Transformer(config["model"]["path"], model_kwargs=settings, max_seq_length=config["max_length"])
    tokenizer, backbone = first.tokenizer, first.auto_model
    shape = backbone.config
    eos, bos = (tokenizer.eos_token, tokenizer.eos_token_id), (tokenizer.bos_token, tokenizer.bos_token_id)
    special = [eos] if build_tokenizer(config, shape.max_position_embeddings).bos is None else [bos, eos]
    form = f"{bos[0]} $A {eos[0]}" if bos in special else f"$A {eos[0]}"
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=form, special_tokens=special)
    set_attention(backbone, pattern_of(config["attn"]))
    shape.output_hidden_states = True
    seed = stream_seed(config["seed"], "head")
    pooling = OurPooler(build_pooler(config["pooler"], shape.hidden_size, shape.num_hidden_layers, seed))
    model = SentenceTransformer(modules=[first, pooling], device=str(device))
    backbone.requires_grad_(False)
    model.add_adapter(lora_config(backbone, config["lora"]))
    if precision.compute is not torch.float32 and precision.weights is torch.float32:
        autocast = torch.autocast(device.type, precision.compute)
        model.forward = convert_outputs_to_fp32(autocast(model.forward))  # type: ignore[method-assign]
    return model


class DenseStep(Step):
    """The stock model with the same LoRA on texts of one length, as many real tokens as a batch has.

    No mask, padding or tokenising; ids drawn at random; EOS pooling. It is a limit and no contestant.
    """

    def __init__(self, config: Config) -> None:
        device = best_device(config["accelerator"])
        precision = resolve_precision(config["precision"], device)
        self.device, self.compute = device, precision.compute
        self.backbone = load_backbone(config["model"], precision.weights).to(device)  # type: ignore[arg-type]
        self.backbone.set_attn_implementation(KERNEL)
        set_attention(self.backbone, pattern_of(config["attn"]))
        add_lora(self.backbone, config["lora"], stream_seed(config["seed"], "adapter"))
        self.tokenizer = build_tokenizer(config, self.backbone.config.max_position_embeddings)
        super().__init__(self.backbone, config)

    def backward(self, batch: Sequence[Triple]) -> tuple[Tensor, int]:
        """See `Step`. A third of the texts are queries, a third their positives."""
        tokens = sum(map(len, self.tokenizer(texts_of(batch))))
        texts = 3 * len(batch)
        length = max(1, round(tokens / texts))
        ids = torch.randint(4, self.backbone.config.vocab_size, (texts, length), device=self.device)
        vectors = torch.cat([self._embed(chunk) for chunk in ids.split(max(1, DENSE_TOKENS // length))])
        n = len(batch)
        masked = torch.zeros(n, 2 * n, dtype=torch.bool, device=self.device)
        loss = infonce(vectors[:n], vectors[n:], masked, self.config["objective"]["temperature"])
        loss.backward()
        return loss.detach(), texts * length

    def _embed(self, ids: Tensor) -> Tensor:
        with torch.autocast(self.device.type, self.compute, enabled=self.compute is not torch.float32):
            states = self.backbone(input_ids=ids, use_cache=False).last_hidden_state
        return F.normalize(states[:, -1].float(), dim=-1)


def texts_of(batch: Sequence[Triple]) -> list[str]:
    """Queries, then positives, then negatives."""
    return [*(t.query for t in batch), *(t.positive for t in batch), *(t.negatives[0] for t in batch)]
