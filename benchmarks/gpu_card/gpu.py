"""Training and encoding at the published sizes on one GPU: random weights of Qwen2-0.5B and Mistral-7B, bf16, LoRA.

    python -m benchmarks.gpu_card.gpu                         # all, within eight minutes: benchmarks/measured/gpu.json
    python -m benchmarks.gpu_card.gpu --models mistral_7b --part training --poolers eos lastlayer --minutes 4
    python -m benchmarks.gpu_card.gpu --quick --device cpu    # a smoke test with two narrow layers
    python -m benchmarks.gpu_card.gpu --write                 # no measurement: records into docs/tables/performance.md

After each round the record is written, so that a run that is cut loses one round.
"""

import argparse
import gc
import time
from pathlib import Path

import torch

from benchmarks.gpu_card.figures import MEASURED, keep_record, read_records, taken
from benchmarks.gpu_card.heat import PARTS, POOLERS, Plan, run_heat
from benchmarks.gpu_card.model import MODELS, Card, card_config, random_backbone
from benchmarks.gpu_card.section import write_section
from cli.errors import UserError, guard
from cli.quiet import quieten
from encoders.precision import best_device

QUICK_OUT = Path("cache", "benchmarks", "gpu")
TOKENS = {"qwen2_0_5b": 131_072, "mistral_7b": 16_384}  # of a turn, about; seconds on a card of 800 TFLOP/s
QUICK_TOKENS = 256


def main() -> None:
    """Run the chosen heats, or write the page."""
    quieten()
    args = arguments()
    out = args.out or (QUICK_OUT if args.quick else MEASURED)
    if args.write:
        write_section(read_records(out))
        return
    if args.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda, but torch finds no GPU here. Give --device cpu --quick.")
    card = Card(torch.device("cpu") if args.device == "cpu" else best_device())
    if card.device.type == "cpu" and not args.quick:
        raise UserError("There is no GPU here, and on a CPU these sizes take days. Give --quick, or use a GPU.")
    end, left = time.monotonic() + 60 * args.minutes, len(args.models) * len(args.part)
    for model in args.models:
        backbone = random_backbone(card_config(model, "eos", "causal", args.quick), card)
        tokens = QUICK_TOKENS if args.quick else args.tokens or TOKENS[model]
        for part in args.part:
            begun = time.monotonic()
            plan = Plan(model, part, tuple(args.poolers), tokens, args.rounds, (end - begun) / left, args.quick)
            run_heat(plan, backbone, card, lambda record: keep_record(out, {**taken(card), **record}))
            print(f"{model}, {part}: {time.monotonic() - begun:.0f} s", flush=True)
            left -= 1
        del backbone
        gc.collect()
        card.forget_peak()


def arguments() -> argparse.Namespace:
    """The measurements to take, and the place to keep them."""
    summary = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_card.gpu", description=summary)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--poolers", nargs="+", choices=POOLERS, default=POOLERS)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--rounds", type=int, default=5, help="at most")
    parser.add_argument("--minutes", type=float, default=8, help="no round is begun that would end later")
    parser.add_argument("--tokens", type=int, help=f"of a turn, about; default: {TOKENS}")
    place = f"folder of gpu.json; default: benchmarks/measured, with --quick {QUICK_OUT}"
    parser.add_argument("--out", type=Path, help=place)
    parser.add_argument("--quick", action="store_true", help="two narrow layers: does it run?")
    parser.add_argument("--write", action="store_true", help="measure nothing; put the records into the page")
    return parser.parse_args()


if __name__ == "__main__":
    guard(main)
