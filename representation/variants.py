"""One checkpoint read by several poolers, as evaluate.py variants=[...] does: vectors, scores, means by task type."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.scores.tasks import sort_types
from cli.errors import UserError
from encoders.encoder import experts_of
from encoders.text_encoder import TextEncoder
from encoders.tokens import Batch
from encoders.variants import Variants
from evaluation.candidates import Candidate
from evaluation.instructions import read_instructions
from evaluation.scoring import Options, score
from evaluation.tasks.chosen import TaskSet
from evaluation.variants import VariantCandidate, pooler_config
from poolers.shared.registry import build_pooler
from representation.encoders_studied import Studied
from representation.sections import each
from representation.texts import Arrays, gathered


def variants_of(
    studied: Studied, names: Mapping[str, str], *, normalize: bool | None = None, **changed: Any
) -> Variants:
    """Return the variants `names` (name -> as in evaluate.py variants=) of an encoder.

    normalize: whether vectors have length 1; None: as the encoder's. changed: keys of the poolers' configuration.
    Raises `UserError` for routers that cannot be read.
    """
    device, encoder = studied.encoder().device, studied.encoder().encoder
    experts, pooler = experts_of(encoder.backbone), encoder.pooler
    variants = {}
    for name, word in names.items():
        config = {**pooler_config(word, studied.config), **changed}
        built = build_pooler(config, pooler.hidden_size, pooler.num_layers, studied.seed, experts)
        variants[name] = built.to(device).eval()
    return Variants(encoder, variants, encoder.normalize if normalize is None else normalize)


def arrays(variants: Variants) -> Callable[[Batch], Arrays]:
    """Return the function of a batch that gives variant -> [B, E] on the CPU."""
    return lambda batch: {name: vectors.cpu().numpy() for name, vectors in variants(batch).items()}


def encode(variants: Variants, encoder: TextEncoder, texts: Sequence[str], instruction: str = "") -> Arrays:
    """Return variant -> [N, E] float32 in the order of `texts`, which are distinct."""
    return gathered(encoder.run(texts, instruction, arrays(variants)), len(texts))


def score_variants(
    variants: Sequence[Candidate], tasks: TaskSet, settings: dict[str, Any]
) -> Iterator[tuple[VariantCandidate, str, str, float]]:
    """Yield (variant, type, task, score); what was scored before is not scored again.

    settings: cache_dir and progress of the command.
    """
    for variant in each(variants, "scored", settings, lambda variant: variant.title):
        assert isinstance(variant, VariantCandidate)
        mode = variant.manifest["config"]["evaluation"]["instructions"]
        outcome = score(variant, tasks.tasks, Options(read_instructions(mode), cache_dir=Path(settings["cache_dir"])))
        for task, why in outcome.failed.items():
            raise UserError(f"{task}: {why}")
        yield from ((variant, kind, task, value) for task, (kind, value) in outcome.scores.items())


def type_means(scores: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return one row per value of `by`, one column per type: the mean over seeds, then over the type's tasks."""
    tasks = scores.groupby([*by, "type", "task"], sort=False)["score"].mean()
    return tasks.groupby(level=[*by, "type"], sort=False).mean().unstack("type")[sort_types(set(scores["type"]))]
