"""The work that speed is measured on: a setting (model, cell, number format), and docstrings or real pairs."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.arguments import Parser, whole
from cli.compose import composed, plain
from cli.errors import UserError
from cli.quiet import quieten
from corpora.docstrings import read_docstrings
from corpora.readers import read_triples
from corpora.triples import Triple
from encoders.tokens import TextTokenizer
from records.streams import stream_seed

PAIRS = Path(__file__).resolve().parents[3] / "shared" / "data" / "pairs"
SOURCES = ("docstrings", "pairs")
TEXTS = 48  # of `mixed_docstrings`
MODELS = ("tiny", "random")  # 256 x 6, the embedded base; 512 x 12 of the same family, random weights
FLAGS: dict[str, dict[str, Any]] = {  # those of several benchmarks of speed
    "--models": {"nargs": "+", "choices": MODELS, "default": MODELS},
    "--data": {"nargs": "+", "choices": SOURCES, "default": SOURCES},
    "--rounds": {"type": whole, "default": 7},
    "--max-length": {"type": whole, "default": 128},
    "--precision": {"default": "mixed", "choices": ("fp32", "mixed", "bf16")},
    "--threads": {"type": whole, "default": 2},
    "--quick": {"action": "store_true", "help": "a smoke test"},
    "--write": {"action": "store_true", "help": "put the tables into docs/tables/performance.md"},
}


def begun(program: str, *flags: str, **further: dict[str, Any]) -> Namespace:
    """Silence the libraries, read the words after benchmarks.speed.<program>, and take as many threads as they say.

    The words: `flags` of `FLAGS`, --write, and further ones (max_length: {...}).
    """
    quieten()
    parser = Parser(prog=f"python -m benchmarks.speed.{program}")
    for name, settings in further.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    for flag in (*flags, "--write"):
        parser.add_argument(flag, **FLAGS[flag])
    args = parser.parse_args()
    if "--threads" in flags:
        torch.set_num_threads(args.threads)
    return args


@dataclass(frozen=True)
class Setting:
    """precision: fp32, mixed or bf16. dropout: LoRA's. gradcache: chunks run twice, memory of one."""

    model: str = "tiny"
    pooler: str = "eos"
    attn: str = "causal"
    max_length: int = 128
    precision: str = "mixed"
    dropout: float = 0.1
    gradcache: bool = False
    head: str = "small"

    @property
    def cell(self) -> str:
        """pooler x attn."""
        return f"{self.pooler} x {self.attn}" + ("" if self.head == "small" else f", head={self.head}")

    def config(self) -> dict[str, Any]:
        """The composed configuration of train.py, one hard negative per query."""
        words = [f"pooler={self.pooler}", f"attn={self.attn}", f"head={self.head}", f"max_length={self.max_length}"]
        words += [f"precision={self.precision}", f"lora.dropout={self.dropout}", "objective.hard_negatives=1"]
        words += [f"trainer.gradcache={str(self.gradcache).lower()}", "accelerator=cpu"]
        cfg = plain(composed("train", words))
        if self.model != "tiny":
            cfg["model"]["path"] = str(random_model(cfg["model"]["path"], Path(cfg["cache_dir"])))
        return cfg


def random_model(base: str, cache_dir: Path) -> Path:
    """The folder of a decoder of the family of `base`, twice as wide and twice as deep, with random weights."""
    from transformers import AutoModel

    from encoders.backbone import load_config, load_tokenizer

    folder = cache_dir.resolve() / "benchmarks" / "random_512x12"
    if not (folder / "model.safetensors").exists():
        model = {"path": base, "trust_remote_code": False, "sliding_window": False}
        config = load_config(model)
        for name in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"):
            setattr(config, name, 2 * getattr(config, name))
        config.num_hidden_layers *= 2
        config.layer_types = ["full_attention"] * config.num_hidden_layers
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(stream_seed(0, "random model"))
            AutoModel.from_config(config, dtype=torch.float32).save_pretrained(folder)
        load_tokenizer(model).save_pretrained(folder)
    return folder


def missing(source: str) -> str | None:
    """Return why `source` cannot be measured here; None where it can."""
    if source == "pairs" and not sorted(PAIRS.glob("*.jsonl.gz")):
        return "there is no ../shared/data/pairs/*.jsonl.gz beside the checkout"
    return None


def batches(source: str, size: int, count: int) -> list[list[Triple]]:
    """Return `count` batches of `size` triples with one hard negative each, drawn without replacement.

    No text occurs twice in a batch: there, leaving out repeats and masking false negatives change nothing, so that
    every trainer computes the same loss. Raises `UserError` where `source` holds too few.
    """
    pool = _triples(source)
    full, chosen, seen = list[list[Triple]](), list[Triple](), set[str]()
    for i in np.random.default_rng(0).permutation(len(pool)):
        texts = set(texts_of([pool[i]]))
        if len(texts) == 3 and seen.isdisjoint(texts):
            chosen.append(pool[i])
            seen |= texts
        if len(chosen) == size:
            full.append(chosen)
            chosen, seen = [], set()
        if len(full) == count:
            return full
    raise UserError(f"{source} holds {len(full)} batches of {size}, not {count}. Lower the batch or the rounds.")


def texts_of(batch: Sequence[Triple]) -> list[str]:
    """Queries, then positives, then negatives."""
    return [*(t.query for t in batch), *(t.positive for t in batch), *(t.negatives[0] for t in batch)]


def described(tokenizer: TextTokenizer, batch: Sequence[Triple]) -> str:
    """Real tokens of a batch, and how many places three padded forward passes have for them."""
    n = len(batch)
    lengths = np.array([len(row) for row in tokenizer(texts_of(batch))]).reshape(3, n)
    padded = int((lengths.max(axis=1) * n).sum())
    return (
        f"{lengths.sum():,} real tokens ({lengths.mean():.0f} a text, median {np.median(lengths):.0f}, "
        f"longest {lengths.max()}), {padded / lengths.sum():.2f} places per token in three padded passes"
    )


def mixed_docstrings() -> list[str]:
    """48 summaries and docstrings of polars, in turn: of many lengths, so that a batch of them has padding."""
    docstrings = read_docstrings(["polars"])
    chosen = docstrings[:: max(1, len(docstrings) // TEXTS)][:TEXTS]
    return [d.text if k % 2 else d.summary for k, d in enumerate(chosen)]


@cache
def _triples(source: str) -> list[Triple]:
    words = ["data=docstrings"] if source == "docstrings" else ["data=jsonl", f"data.path='{PAIRS}/*.jsonl.gz'"]
    cfg = plain(composed("train", words))
    return [t for t in read_triples(cfg["data"], cfg["cache_dir"]) if t.negatives and _ordinary(t)]


def _ordinary(triple: Triple) -> bool:
    """Return whether no text spells a special token: trainers treat one differently."""
    return not any("<|" in text for text in texts_of([triple]))
