"""One setting that is measured: model, cell, data, batch, number format; and its configuration."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.arguments import Parser, whole
from benchmarks.speed.work import SOURCES
from cli.compose import composed, plain
from cli.quiet import quieten
from records.streams import stream_seed

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
        """The composed configuration of train.py, one hard negative a query."""
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
