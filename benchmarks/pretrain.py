"""`python -m benchmarks.pretrain`: a bundled base from random weights, by next-token prediction on the docstrings.

    python -m benchmarks.pretrain model=tiny_moe_scratch export=assets/tiny_moe max_steps=1100

Tokenizer and packed batches come with it; keys and remarks are in conf/pretrain.yaml.
"""

import hashlib
import sys
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from cli.compose import composed, plain, readable
from cli.errors import UserError, guard, quieten
from cli.limits import Limit, check_limits, real
from corpora.docstring_pairs import training_side
from encoders.encoder import experts_of
from encoders.precision import be_deterministic, best_device
from records.files import replacing, write_json
from training.held_out import of_percent
from training.large_batch import refuse_step
from training.loop import LINES
from training.set_up import check_devices

PAD, EOS, MASK = "<|pad|>", "<|endoftext|>", "<|mask|>"
# GPT-4's splitting by words, with numbers cut into single digits as in Llama and Qwen2
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

Config = dict[str, Any]
LIMITS = {
    "seed": Limit(0),
    "max_steps": Limit(1),
    "threads": Limit(1, "one for each core"),
    "sequence_length": Limit(2),  # a token is predicted from those before it
    "batch": Limit(1),
    "lr": real(0),
    "warmup": Limit(0),
    "held_out_percent": Limit(1, largest=99),
    "model.vocab_size": Limit(259),  # bytes and the three special tokens
}


def main() -> None:
    """Pretrain the base that the words describe."""
    quieten()
    pretrain(plain(composed("pretrain", readable(sys.argv[1:]))))


def check(config: Config) -> None:
    """Refuse weights to start from, other data than docstrings, and sequences beyond the positions."""
    check_limits(config, LIMITS, {})
    model, length = config["model"], config["sequence_length"]
    if model.get("path") or not {"architecture", "vocab_size"} <= model.keys():
        raise UserError(f"Pretraining needs an architecture; model={model['name']} has weights.")
    if "packages" not in config["data"]:
        raise UserError(f"Pretraining reads docstrings, not data={config['data']['name']}. Give data=docstrings.")
    if length > (positions := model["architecture"]["max_position_embeddings"]):
        raise UserError(f"sequence_length={length} is more than the {positions} positions of the model.")


def pretrain(config: Config) -> None:
    """Train tokenizer and decoder and export them to `export`, in one go. Raises `UserError`."""
    check(config)
    check_devices(1, best_device(config["accelerator"]))
    if config["threads"]:
        torch.set_num_threads(config["threads"])
    pl.seed_everything(config["seed"], verbose=False)
    be_deterministic(config["deterministic"])
    model, steps, percent = config["model"], config["max_steps"], config["held_out_percent"]
    whole = [d.text for d in training_side(config["data"], config["cache_dir"])]
    texts, held_out = ([t for t in whole if of_percent(t, percent) == held] for held in (False, True))
    fingerprint = hashlib.sha256("\x1e".join(whole).encode()).hexdigest()
    if not (texts and held_out):
        raise UserError(f"{len(texts)} docstrings to train on, {len(held_out)} held out. Give more data.packages.")
    tokenizer = train_bpe(texts, model["vocab_size"], model["architecture"]["max_position_embeddings"])
    documents = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    eos, length = tokenizer.eos_token_id, config["sequence_length"]
    ends = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": eos, "bos_token_id": None}
    shape = AutoConfig.for_model(**model["architecture"], vocab_size=len(tokenizer), **ends)
    decoder = AutoModelForCausalLM.from_config(shape)

    batches = PackedBatches(documents, eos, length, config["batch"], config["seed"])
    _fit(decoder, batches, config)
    figures = {
        "steps": steps,
        "tokens_seen": steps * config["batch"] * length,
        "tokens_distinct": batches.tokens_an_epoch,
        "parameters": sum(p.numel() for p in decoder.parameters()),
        "data_sha256": fingerprint,
        "held_out_documents": len(held_out),
    }
    with replacing(Path(config["export"])) as draft:
        decoder.to(torch.bfloat16).save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        write_json(draft / "pretraining.json", {"figures": figures, "config": config})
    print(f"{config['export']}: objective=next_token trainer.max_steps=0 measures its bits per byte.")


class PackedBatches:
    """Batches of [batch, length] token ids; each document ends with EOS, and documents follow one another.

    Their order is a permutation drawn from (seed, epoch); the step's number alone decides which batch it sees.
    """

    def __init__(self, documents: Sequence[Sequence[int]], eos: int, length: int, batch: int, seed: int) -> None:
        self.documents = [np.asarray([*d, eos], dtype=np.int32) for d in documents]
        self.length, self.size, self.seed = length, batch, seed
        self.tokens_an_epoch = sum(map(len, self.documents))
        self.steps_an_epoch = self.tokens_an_epoch // (batch * length)
        if not self.steps_an_epoch:
            raise UserError(f"The text has {self.tokens_an_epoch:,} tokens; a step takes {batch * length:,}.")

    @lru_cache(maxsize=1)  # noqa: B019  (one object a run)
    def epoch(self, number: int) -> Tensor:
        """Return the batches of one epoch, [steps, batch, length]; the incomplete last one is left out."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.documents))
        tokens = np.concatenate([self.documents[i] for i in order])
        whole = self.steps_an_epoch * self.size * self.length
        return torch.from_numpy(tokens[:whole].astype(np.int64)).view(-1, self.size, self.length)

    def batch(self, step: int) -> Tensor:
        """Return the [batch, length] ids of step `step`, counted from zero over all epochs."""
        number, place = divmod(step, self.steps_an_epoch)
        return self.epoch(number)[place]


def _fit(decoder: Any, batches: PackedBatches, config: Config) -> None:
    """Run all steps. AdamW, norms and biases not decayed; the gradient's norm is at most 1; bf16 but for fp32."""
    steps, device = config["max_steps"], best_device(config["accelerator"])
    decoder.to(device).train()
    groups: list[Config] = [
        {"params": [p for p in decoder.parameters() if p.ndim > 1], "weight_decay": config["weight_decay"]},
        {"params": [p for p in decoder.parameters() if p.ndim <= 1], "weight_decay": 0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=config["lr"], betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(step, steps, config))
    compiled = torch.compile(loss_of)  # sequences have one shape, so one compilation pays back
    start = time.perf_counter()
    for step in range(steps):
        ids = batches.batch(step).to(device)
        with torch.autocast(device.type, torch.bfloat16, config["precision"] != "fp32", cache_enabled=False):
            nats, balance = compiled(decoder, ids)
            loss = nats + config["balance"] * balance
        loss.backward()
        norm = clip_grad_norm_([p for group in groups for p in group["params"]], 1.0)
        refuse_step({"loss": loss, "gradient norm": norm}, step)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % max(1, steps // LINES) == 0:
            left = (time.perf_counter() - start) / (step + 1) * (steps - step - 1)
            print(f"step {step} of {steps}, {nats.item():.3f} nats a token, {left:.0f} s left", flush=True)
    decoder.to("cpu")


def loss_of(decoder: PreTrainedModel, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Nats a token, and how uneven the experts are in use (zero in a dense model). ids: [B, L]."""
    mixture = bool(experts_of(decoder))
    routed = {"output_router_logits": True} if mixture else {}
    outputs = decoder.model(input_ids=ids, use_cache=False, **routed)
    logits = decoder.lm_head(outputs.last_hidden_state[:, :-1])
    nats = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
    if not mixture:
        return nats, nats.new_zeros(())
    return nats, balance_loss(outputs.router_logits, decoder.config.num_experts_per_tok)


def learning_rate_factor(step: int, steps: int, config: Config) -> float:
    """Warm-up over `warmup` steps, plateau, then linear decay over the last `decay` share of the steps."""
    warm = min(1.0, (step + 1) / max(1, min(config["warmup"], steps)))
    return warm * min(1.0, max(0.0, (steps - step) / max(1.0, config["decay"] * steps)))


def train_bpe(texts: Iterable[str], vocab_size: int, max_length: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE of `vocab_size` tokens, three of them special; any text can be encoded."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(WORDS), behavior="isolated")
    in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, in_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    special, alphabet = [PAD, EOS, MASK], sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, mask_token=MASK, model_max_length=max_length
    )


def balance_loss(logits: Sequence[Tensor], top_k: int) -> Tensor:
    """Mean over layers of E sum_e f_e p_e: Switch Transformers (arXiv 2101.03961), equations 4 to 6, for top-k.

    f_e: share of the tokens that have expert e among their top k, over k; p_e: mean routing weight. 1 where all
    experts are used alike, E where one takes everything with k = 1. logits: [tokens, E] of each layer, before top-k.
    """
    losses = []
    for weights in (of_layer.float().softmax(dim=-1) for of_layer in logits):
        experts = weights.shape[-1]
        chosen = F.one_hot(weights.topk(top_k, dim=-1).indices, experts).float().sum(dim=1)
        losses.append(experts * (chosen.mean(dim=0) / top_k * weights.mean(dim=0)).sum())
    return torch.stack(losses).mean()


if __name__ == "__main__":
    guard(main)
