"""Growth of the cost with data, length, model, benchmark and the number of cells."""

from itertools import product
from typing import Any

from benchmarks.cost.study import CELLS, NEWER, PAPER, Inputs, base_config, coefficients, times
from benchmarks.gpu_card.model import MODELS
from benchmarks.page import table
from training.cost.flops import Work

SHOWN = ("m1", "m2", "m5")  # cells with coefficients of their own; those of m3 and m4 are nearly m5's and m2's
FORMULA = """
    GPU seconds of a cell = training FLOPs / speed + scoring FLOPs / speed
    training FLOPs = texts (B_text + F_text) + tokens (B_token + F_token) + squares (B_square + F_square)
    scoring FLOPs  = texts F_text + tokens F_token + squares F_square
    texts of training = steps x queries x (2 + hard negatives);  squares: the sum over texts of length^2
    speed = utilisation x matrix rate: of bf16 for the FLOPs of m1, of float32 for what another cell adds to them

F: forward, B: forward and backward. GradCache runs F once more. What a chunk costs once is left out here."""


def growth_text(inputs: Inputs) -> str:
    """Cases side by side, the formula, its coefficients."""
    large, rows, first = MODELS[1], list[list[str]](), list[float]()
    for name, model, work, how in _cases(inputs):
        by_cell = [inputs.hours(model, cell, work, **how) for cell in CELLS]
        hours = [sum(part.hours for part in parts) for parts in zip(*by_cell, strict=True)]
        hours.append(sum(hours))
        first = first or hours
        rows.append([name, *(f"{h:,.1f} (x {h / f:.2f})" for h, f in zip(hours, first, strict=True))])
    plain, headed = (sum(h.hours for h in inputs.hours(large, cell, inputs.works(large))) for cell in ("m1", "m5"))
    count, length = coefficients(large, "m1").forward, base_config(large)["max_length"]
    square = count.square * length / (count.token + count.square * length)
    cells = f"""Cells and seeds add up: one more on {large} costs {plain:,.1f} h without a trained head and
{headed:,.1f} h with one; three seeds of the five cells {3 * first[2]:,.0f} h. Hours are linear in data, and in length
but for attention's square, which at 512 tokens is {square:.1%} of the backbone's FLOPs. The head's cost
goes by texts, not by tokens."""
    head = ["five cells", "training, GPU h", "scoring, GPU h", "together"]
    return "\n\n".join([table(head, rows), cells, FORMULA.strip("\n"), _coefficients()])


def _cases(inputs: Inputs) -> list[tuple[str, str, dict[str, Work], dict[str, Any]]]:
    """(name, base, work, how it is counted); the first is what the others are compared with."""
    small, large = MODELS
    work = inputs.works(large)
    double = {**work, "training": times(work["training"], 2)}
    newer = f"{NEWER} ({inputs.sets[NEWER].tasks} tasks) for {PAPER} ({inputs.sets[PAPER].tasks})"
    return [
        (f"{large}, as published", large, work, {}),
        ("twice the steps", large, double, {}),
        ("training texts twice as long, cut at 512", large, inputs.works(large, longer=2.0), {}),
        ("all training texts of 512 tokens", large, inputs.works(large, full=True), {}),
        (newer, large, inputs.works(large, NEWER), {}),
        ("without GradCache's second forward pass", large, work, {"once": True}),
        (f"{small} for {large}", small, inputs.works(small), {}),
    ]


def _coefficients() -> str:
    rows = []
    for model, cell in product(MODELS, SHOWN):
        count = coefficients(model, cell)
        figures = [f"{v:.3g}" for p in (count.forward, count.both) for v in (p.text, p.token, p.square)]
        rows.append([f"{model}, {cell}", *figures])
    return table(["FLOPs", "F_text", "F_token", "F_square", "B_text", "B_token", "B_square"], rows)
