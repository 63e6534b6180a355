"""The cost of the published study in GPU hours and on disk: docs/tables/cost.md.

python -m benchmarks.cost.cost                      # prints the page
python -m benchmarks.cost.cost --write              # puts it into docs/tables/cost.md
... --rate 800 --utilisation 0.5               # what is assumed where benchmarks/measured holds no measurement
"""

import argparse
from pathlib import Path

from benchmarks.cost.page import TERA, page
from benchmarks.cost.study import Assumed, Inputs
from benchmarks.gpu_card.figures import MEASURED, read_records
from benchmarks.page import ROOT
from cli.errors import guard
from cli.quiet import quieten
from evaluation.plan.work import CHARACTERS_A_TOKEN
from records.atomic import write_text

PAGE = ROOT / "docs" / "tables" / "cost.md"
ASSUMPTIONS = (
    ("--rate", 800, "TFLOP/s of large bf16 products, where not measured"),
    ("--fp32-rate", 50, "the same in float32 (a trained head's products)"),
    ("--tf32-rate", 400, "the same in TF32"),
    ("--utilisation", 0.5, "share of these rates that is reached"),
    ("--characters", CHARACTERS_A_TOKEN, "of a token"),
)


def main() -> None:
    """Compute the page; print it or write it."""
    quieten()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost.cost", description=(__doc__ or "").split("\n")[0])
    for flag, default, meaning in ASSUMPTIONS:
        parser.add_argument(flag, type=float, default=default, help=meaning)
    parser.add_argument("--gpus", type=int, default=8, help="for the time by the clock")
    parser.add_argument("--measured", type=Path, default=MEASURED, help="folder of gpu.json")
    parser.add_argument("--write", action="store_true", help="into docs/tables/cost.md")
    args = parser.parse_args()
    assumed = Assumed(args.rate * TERA, args.fp32_rate * TERA, args.tf32_rate * TERA, args.utilisation)
    text = page(Inputs(read_records(args.measured), assumed, args.characters, args.gpus))
    if args.write:
        write_text(PAGE, text)
        print(f"{PAGE.relative_to(ROOT)} is written.")
    else:
        print(text)


if __name__ == "__main__":
    guard(main)
