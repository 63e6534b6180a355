"""The card's own matrix rate: what utilisation is a share of."""

import torch

from benchmarks.gpu_card.cells import Texts
from benchmarks.gpu_card.model import Card

SIDE, SECONDS = 8192, 0.05  # of the square matrices; of a turn, about
ON_CPU = 256
PRECISION = {"tf32": "high", "fp32": "highest", "bf16": "highest"}  # of float32 products, by format


class Products:
    """Products of large square random matrices. format: bf16, fp32, or tf32: float32 numbers on the TF32 units."""

    def __init__(self, format: str, card: Card) -> None:
        self.format, self.card = format, card
        self.side = SIDE if card.device.type == "cuda" else ON_CPU
        self.times = 1

    def enter(self) -> None:
        """Make the matrices, run once, and see how many products a turn takes; not timed."""
        torch.set_float32_matmul_precision(PRECISION[self.format])
        dtype = torch.bfloat16 if self.format == "bf16" else torch.float32
        self.operands = [torch.randn(self.side, self.side, device=self.card.device).to(dtype) for _ in range(2)]
        self.times = 1
        self(None)
        self.times = max(1, round(SECONDS / self.card.seconds(lambda: self(None))))

    def __call__(self, _texts: Texts | None) -> float:
        """Return the FLOPs done."""
        a, b = self.operands
        for _ in range(self.times):
            _ = a @ b
        self.card.wait()
        return self.times * 2.0 * self.side**3

    def leave(self) -> None:
        """Free the matrices."""
        del self.operands
        torch.set_float32_matmul_precision("highest")
