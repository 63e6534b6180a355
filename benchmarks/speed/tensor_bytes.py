"""Bytes of tensors that live at once: in encoding, every pooler against eos; in a step with GradCache, by global batch.

    python -m benchmarks.speed.tensor_bytes [--model tiny] [--queries 64] [--max-length 128] [--write]

Exact, not sampled: after each operation the storages that are alive are added up, weights left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.arguments import whole
from benchmarks.page import publish, stamp, table
from benchmarks.speed.step import OurStep, encoder_of
from benchmarks.speed.work import MODELS, Setting, batches, begun, texts_of
from cli.errors import guard
from encoders.text_encoder import TextEncoder

POOLERS = ("mean", "weightedmean", "linear", "lastlayer", "multilayer")
ATTENTIONS = ("causal", "bi")
BATCHES = (16, 32, 64, 128)  # queries, each with a positive and a negative
MIB = 2**20


class LiveBytes(TorchDispatchMode):
    """Within it, `peak` is the largest sum of the bytes of all storages that operations have made and that live."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, then count."""
        out = func(*args, **(kwargs or {}))
        given = {id_of(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and id_of(tensor) not in given:
                storage = tensor.untyped_storage()
                self._live[id_of(tensor)] = StorageWeakRef(storage), storage.nbytes()
        self._live = {key: live for key, live in self._live.items() if not live[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._live.values()))
        return out


def id_of(tensor: torch.Tensor) -> int:
    """The same for all tensors on one storage."""
    return tensor.untyped_storage()._cdata


def main() -> None:
    """Count and print one table."""
    model, queries = {"choices": MODELS, "default": "tiny"}, {"type": whole, "default": 64}
    args = begun("tensor_bytes", "--max-length", model=model, queries=queries)
    taken, rows = stamp(), []
    texts = texts_of(batches("docstrings", args.queries, 1)[0])
    for attn in ATTENTIONS:
        base = Setting(args.model, "eos", attn, args.max_length)
        usual = bytes_of_encoding(base, texts)
        rows.append([base.cell, f"{usual / MIB:.1f}", "1.000"])
        for pooler in POOLERS:
            setting = replace(base, pooler=pooler)
            peak = bytes_of_encoding(setting, texts)
            rows.append([setting.cell, f"{peak / MIB:.1f}", f"{peak / usual:.3f}"])
    encoding = table(["encoding", "MiB of tensors at most", "against eos"], rows)
    base = Setting(args.model, "eos", "causal", args.max_length)
    ways = [replace(base, gradcache=gradcache) for gradcache in (True, False)]
    steps = [[str(size), *(f"{bytes_of_step(way, size) / MIB:,.0f}" for way in ways)] for size in BATCHES]
    step_table = table(["a step's queries", "MiB with GradCache", "MiB without"], steps)
    publish("tensor_bytes", "Bytes of tensors", [taken, encoding, step_table], args.write)


def bytes_of_encoding(setting: Setting, texts: Sequence[str]) -> int:
    """The most that encoding `texts` holds at once, weights left out."""
    encoder, tokenizer = encoder_of(setting.config())
    model = TextEncoder(encoder.eval(), tokenizer, "", setting.config()["token_budget"])
    with LiveBytes() as live:
        model.encode(texts)
    return live.peak


def bytes_of_step(setting: Setting, size: int) -> int:
    """The most that a training step of `size` queries holds at once: forward, loss and backward."""
    (batch,) = batches("docstrings", size, 1)
    step = OurStep(setting.config())
    with LiveBytes() as live:
        step.backward(batch)
    return live.peak


if __name__ == "__main__":
    guard(main)
