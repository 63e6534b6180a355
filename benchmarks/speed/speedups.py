"""The worth of each speed-up: a step with all of them, and with one taken away; and the cost of GradCache.

    python -m benchmarks.speed.speedups [--data docstrings] [--batch 64] [--rounds 7] [--threads 1] [--write]

In turn in one process, on the same batches; the loss is the same in all (tests/contract holds them to it).
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.arguments import whole
from benchmarks.page import publish, stamp, table
from benchmarks.rounds import in_turn, ratio, spread
from benchmarks.speed.setting import Setting, speed_parser
from benchmarks.speed.step import OurStep
from benchmarks.speed.work import SOURCES, batches, described
from cli.errors import guard
from cli.quiet import quieten
from encoders.fast.dropout import QuickDropout

WARM_UP = 16  # queries
ALL = "all means"
HEAD = ["a step with", "tokens/s", "all means / this"]


def main() -> None:
    """Measure and print one table."""
    quieten()
    args = arguments()
    torch.set_num_threads(args.threads)
    taken = stamp()
    setting = Setting(max_length=args.max_length)
    steps = {name: make(setting.config()) for name, make in CONTESTANTS.items()}
    work = batches(args.data, args.batch, args.rounds)
    rates = in_turn(steps, work, work[0][:WARM_UP])
    rows = [[name, f"{spread(rates[name]).median:,.0f}", str(ratio(rates, ALL, name))] for name in steps]
    text = f"{setting.cell}, {args.data}, batch {args.batch}: {described(steps[ALL].tokenizer, work[0])}."
    publish(
        f"means_{args.threads}",
        f"Means, {args.threads} threads",
        f"{taken}\n\n{text}\n\n{table(HEAD, rows)}",
        args.write,
    )


def changed(key: str, value: Any) -> Callable[[dict[str, Any]], OurStep]:
    """The step of a configuration with another value of `key`."""

    def make(config: dict[str, Any]) -> OurStep:
        *parents, last = key.split(".")
        owner = config
        for parent in parents:
            owner = owner[parent]
        owner[last] = value
        return OurStep(config)

    return make


def by_peft(config: dict[str, Any], dropout: type[nn.Module] = QuickDropout) -> OurStep:
    """The step with LoRA layers that compute as PEFT wrote them, and with a kind of dropout."""
    step = OurStep(config)
    for module in step.module.modules():
        module.__dict__.pop("forward", None)  # what encoders/fast/fused_lora.py put there
        for name, old in getattr(module, "lora_dropout", {}).items():
            module.lora_dropout[name] = dropout(old.p)  # type: ignore[operator, assignment]
    return step


CONTESTANTS: dict[str, Callable[[dict[str, Any]], OurStep]] = {
    ALL: OurStep,
    "padding (eager kernel, chunks of 4,096 places)": changed("model.attn_implementation", "eager"),
    "padding and sdpa": changed("model.attn_implementation", "sdpa"),
    "chunks of 1,024 tokens": changed("token_budget", 1024),
    "chunks of 2,048 tokens": changed("token_budget", 2048),
    "chunks of 8,192 tokens": changed("token_budget", 8192),
    "LoRA by PEFT": by_peft,
    "LoRA by PEFT, dropout by torch": lambda config: by_peft(config, nn.Dropout),
    "GradCache": changed("trainer.gradcache", True),
    "GradCache that keeps the graphs of 6,000 tokens": lambda config: changed("trainer.gradcache", True)(
        {**config, "trainer": {**config["trainer"], "graph_tokens": 6000}}
    ),
}


def arguments() -> argparse.Namespace:
    """The batches to measure on, and the settings."""
    data, batch = {"choices": SOURCES, "default": "docstrings"}, {"type": whole, "default": 64}
    return speed_parser("speedups", "--rounds", "--max-length", "--threads", data=data, batch=batch).parse_args()


if __name__ == "__main__":
    guard(main)
