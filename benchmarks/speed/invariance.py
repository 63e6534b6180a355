"""Movement of an embedding with padding side and batch mates, and of a gradient with GradCache, measured per cell.

python -m benchmarks.speed.invariance [model.path=<folder>] [precision=fp32]
"""

import sys
from itertools import product

import torch

from benchmarks.speed.step import encoder_of
from benchmarks.speed.work import mixed_docstrings
from cli.compose import composed, plain
from cli.errors import guard
from cli.quiet import quieten
from encoders.backbone import empty_backbone
from encoders.loading import build_tokenizer
from encoders.lora import add_lora
from encoders.routers import experts_of
from encoders.tokens import TextTokenizer
from poolers.shared.registry import pooler_class, pooler_names
from records.streams import stream_seed
from training.checks import check_sizes
from training.large_batch import ChunkPlan, LargeBatch


def main() -> None:
    """Print one table: largest difference over texts and dimensions of unit vectors, and relative gradient error."""
    quieten()
    words = sys.argv[1:] or ["precision=fp32"]
    usual = plain(composed("train", words))
    check_sizes(usual)
    mixture = experts_of(empty_backbone(usual["model"], torch.float32))  # without, no pooler can read routers
    poolers = [name for name in pooler_names() if mixture or pooler_class(name).consumes != "routers"]
    texts = mixed_docstrings()
    print(f"{len(texts)} docstrings of polars, {' '.join(words)}\n")
    print("| pooler | attn | left, padded vs alone | right, padded vs alone | GradCache vs one batch, gradient |")
    print("|---|---|---|---|---|")
    for pooler, attn in product(poolers, ("causal", "bi")):
        cfg = plain(composed("train", [f"pooler={pooler}", f"attn={attn}", *words]))
        if attn == "causal" and pooler_class(pooler).takes_first(cfg["pooler"]):
            continue
        left, right = padding_errors(cfg, texts)
        print(f"| {pooler} | {attn} | {left:.1e} | {right:.1e} | {gradient_error(cfg, texts):.1e} |", flush=True)


def padding_errors(cfg: dict, texts: list[str]) -> list[float]:
    """Largest entry of (batch of all texts) - (each text alone), for left and right padding."""
    encoder, tokenizer = encoder_of(cfg)
    encoder.eval()
    errors = []
    with torch.no_grad():
        rows = tokenizer(texts)
        alone = torch.cat([encoder(tokenizer.batch([row])) for row in rows])
        for side in ("left", "right"):
            sided = TextTokenizer(tokenizer.tokenizer, tokenizer.max_length, side)
            errors.append(float((encoder(sided.batch(rows)) - alone).abs().max()))
    return errors


def gradient_error(cfg: dict, texts: list[str]) -> float:
    """Largest difference of a gradient entry, GradCache in chunks of 7 against one plain batch, over the largest."""

    def gradients(plan: ChunkPlan | None) -> dict[str, torch.Tensor]:
        encoder = encoder_of(cfg)[0].train()
        add_lora(encoder.backbone, {**cfg["lora"], "dropout": 0.0}, stream_seed(0, "adapter"))
        torch.manual_seed(0)
        for name, p in encoder.backbone.named_parameters():
            if "lora_B" in name:  # zero at the start, which would leave A without gradient
                p.data.normal_(std=0.02)
        work = LargeBatch(encoder, build_tokenizer(cfg, 1 << 20), plan or ChunkPlan(1 << 20, None, False), seed=0)
        rows = work.tokenizer.pairs([("", t) for t in texts])
        if plan:
            work.backward(rows, contrast, step=0)
        else:
            contrast(encoder(work.tokenizer.batch(rows))).backward()
        return {n: p.grad for n, p in encoder.named_parameters() if p.grad is not None}

    whole, cached = gradients(None), gradients(ChunkPlan(1 << 20, 7, gradcache=True))
    largest = max(float(g.abs().max()) for g in whole.values())
    return max(float((whole[n] - cached[n]).abs().max()) for n in whole) / largest


def contrast(vectors: torch.Tensor) -> torch.Tensor:
    """Each text against the next: every vector is in every term."""
    logits = vectors @ vectors.roll(1, 0).T / 0.05
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(vectors)))


if __name__ == "__main__":
    guard(main)
