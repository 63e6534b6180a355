"""FLOPs of encoding and bytes of its tensors on a device, before weights are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from encoders.attention.kernels import kernel_of
from encoders.attention.unpadded import UNPADDED
from encoders.backbone import shape_of
from encoders.chunking import by_token_budget
from encoders.cost.flops import Work, forward_flops
from encoders.cost.memory import chunk_bytes, weight_bytes
from encoders.loading import empty_loaded
from encoders.precision import best_device
from evaluation.candidates.candidates import Candidate
from evaluation.plan.work import Forecast
from poolers.shared.registry import reads_padding
from records.fingerprint import of_value

OF_COST = ("model", "attn", "pooler", "precision", "accelerator", "evaluation", "backbone", "lora", "adapter")
MOST = 100_000  # texts that are laid out in chunks


@dataclass(frozen=True)
class Cost:
    """An encoder's work. flops: with padding as it is run. weights, chunk: bytes of tensors, those of a chunk while it
    runs; of all chunks the largest, of so many `texts` and, with padding where it is run, `tokens`."""

    flops: float
    weights: int
    chunk: int
    texts: int
    tokens: int

    @property
    def memory(self) -> int:
        """Bytes of all tensors while texts are encoded."""
        return self.weights + self.chunk


def costs(works: Sequence[tuple[Candidate, Forecast]]) -> list[Cost]:
    """Return the cost of each encoder; those of one shape with the same to do are counted once."""
    known: dict[str, Cost] = {}
    encoder_costs = []
    for candidate, work in works:
        config = candidate.manifest["config"]
        values = [config.get(name) for name in (*OF_COST, "token_budget")]
        key = of_value([*values, candidate.trained, sorted(work.lengths.items())])
        known[key] = known.get(key) or cost_of(candidate, work)
        encoder_costs.append(known[key])
    return encoder_costs


def cost_of(candidate: Candidate, work: Forecast) -> Cost:
    """Count the cost of an encoder on its device, or on the CPU where there is none."""
    config = candidate.manifest["config"]
    model, budget = config["model"], config["token_budget"]
    kernel = kernel_of(model, shape_of(model), reads_padding(config["pooler"]))
    real, counted = (
        empty_loaded({**config, "model": {**model, "attn_implementation": name}}, candidate.trained)
        for name in (kernel, "eager")
    )
    chunks, share = _chunks(work, budget, padded=kernel != UNPADDED)
    longest = chunks[0] if chunks[0][0] == work.longest else [work.longest] * max(1, budget // work.longest)
    extremes = [longest, max(chunks, key=len)]  # attention grows with the length of texts, a head with their number
    weights = weight_bytes(real, model.get("quantise"))
    peaks = chunk_bytes(real, extremes, kernel, best_device(config.get("accelerator", "auto")))
    chunk, lengths = max(zip(peaks, extremes, strict=True))
    return Cost(forward_flops(counted)(Work().plus(chunks)) / share, weights, chunk, len(lengths), sum(lengths))


def _chunks(work: Forecast, budget: int, padded: bool) -> tuple[list[list[int]], float]:
    """The lengths of the texts of each chunk as they are run, as if all texts were there at once.

    Of more than `MOST` texts a part, whose share of the tokens is the second value.
    """
    part = min(1.0, MOST / work.texts)
    lengths = [ceil(n) for n, many in work.lengths.items() for _ in range(max(1, round(many * part)))]
    chunks = by_token_budget(lengths, budget, padded=padded)
    run = [[lengths[chunk[0] if padded else i] for i in chunk] for chunk in chunks]
    return run, sum(lengths) / work.tokens
