"""FLOPs of a published model, counted on one layer and on two: the others cost what the second one does."""

from dataclasses import astuple
from typing import Any

from encoders.chunking import by_token_budget
from training.cost.flops import Polynomial, TrainingFlops, Work, training_flops


def counted(config: dict[str, Any]) -> TrainingFlops:
    """Return `training_flops(config)` in a fraction of its time; all layers of `model.architecture` are alike."""
    one, two = (training_flops(_with_layers(config, n)) for n in (1, 2))
    more = config["model"]["architecture"]["num_hidden_layers"] - 1

    def all_layers(a: Polynomial, b: Polynomial) -> Polynomial:
        return Polynomial(*(x + more * (y - x) for x, y in zip(astuple(a), astuple(b), strict=True)))

    return TrainingFlops(all_layers(one.forward, two.forward), all_layers(one.both, two.both), one.again)


def real_work(lengths: list[int], budget: int, most: int | None) -> Work:
    """The work of texts of `lengths` without any padding, in as many chunks as padded execution has."""
    chunks = len(by_token_budget(lengths, budget, most))
    return Work(chunks, len(lengths), sum(lengths), sum(n * n for n in lengths))


def places_a_token(lengths: list[int], budget: int, most: int | None) -> float:
    """Padded places over real tokens."""
    chunks = by_token_budget(lengths, budget, most)
    return sum(len(c) * max(lengths[i] for i in c) for c in chunks) / sum(lengths)


def _with_layers(config: dict[str, Any], layers: int) -> dict[str, Any]:
    model = config["model"]
    return {**config, "model": {**model, "architecture": {**model["architecture"], "num_hidden_layers": layers}}}
