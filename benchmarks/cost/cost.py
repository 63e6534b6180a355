"""The cost of the published study in GPU hours and on disk: docs/tables/cost.md.

python -m benchmarks.cost.cost                      # prints the page
python -m benchmarks.cost.cost --write              # puts it into docs/tables/cost.md
... --rate 800 --utilisation 0.5               # what is assumed where benchmarks/measured holds no measurement
"""

import argparse
from pathlib import Path

from benchmarks.cost.inputs import Inputs
from benchmarks.cost.page import page
from benchmarks.cost.study import Assumed
from benchmarks.gpu_card.results import MEASURED, read_records
from benchmarks.page import ROOT
from cli.errors import guard
from cli.quiet import quieten
from evaluation.plan.work import CHARACTERS_A_TOKEN
from records.atomic import write_text

PAGE = ROOT / "docs" / "tables" / "cost.md"
TERA = 1e12


def main() -> None:
    """Compute the page; print it or write it."""
    quieten()
    args = arguments()
    assumed = Assumed(args.rate * TERA, args.fp32_rate * TERA, args.tf32_rate * TERA, args.utilisation)
    text = page(Inputs(read_records(args.measured), assumed, args.characters, args.gpus))
    if args.write:
        write_text(PAGE, text)
        print(f"{PAGE.relative_to(ROOT)} is written.")
    else:
        print(text)


def arguments() -> argparse.Namespace:
    """Assumptions in place of what was not measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost.cost", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rate", type=float, default=800, help="TFLOP/s of large bf16 products, where not measured")
    parser.add_argument("--fp32-rate", type=float, default=50, help="the same in float32 (a trained head's products)")
    parser.add_argument("--tf32-rate", type=float, default=400, help="the same in TF32")
    parser.add_argument("--utilisation", type=float, default=0.5, help="share of these rates that is reached")
    parser.add_argument("--characters", type=float, default=CHARACTERS_A_TOKEN, help="of a token")
    parser.add_argument("--gpus", type=int, default=8, help="for the time by the clock")
    parser.add_argument("--measured", type=Path, default=MEASURED, help="folder of gpu.json")
    parser.add_argument("--write", action="store_true", help="into docs/tables/cost.md")
    return parser.parse_args()


if __name__ == "__main__":
    guard(main)
