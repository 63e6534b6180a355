"""Our encoder as mteb wants one: batches of dictionaries in, one matrix out."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from mteb.cache import ResultCache
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.types import EncodeKwargs

from encoders.templates import DEFAULT, Template
from evaluation.embeddings.cache import EmbeddingCache
from evaluation.embeddings.store import Encoder
from evaluation.instructions import Instructions
from records.lock import alone_in


def texts_of(batches: Iterable[dict[str, Any]], digest: Any, side: str, instruction: str) -> Iterator[list[str]]:
    """Yield the texts of mteb's batches and hash them for the manifest.
    digest: gets, piece by piece, the bytes of `json.dumps([side, instruction, texts])` over all batches."""
    digest.update(f"{json.dumps([side, instruction])[:-1]}, [".encode())
    between = ""
    for batch in batches:
        texts = list(batch["text"])
        if texts:
            digest.update(f"{between}{json.dumps(texts)[1:-1]}".encode())
            between = ", "
        yield texts
    digest.update(b"]]")


ENCODE_KWARGS: EncodeKwargs = {"batch_size": 4096, "show_progress_bar": False}  # mteb's hand-over only


class MtebEncoder(AbsEncoder):
    """Adapter: looks up the instruction of (task, prompt type), embeds through the cache."""

    def __init__(
        self,
        cache: EmbeddingCache,
        meta: ModelMeta,
        instructions: Instructions,
        on_texts: Callable[[int], None] | None = None,
        template: Template = DEFAULT,
    ) -> None:
        self.model, self.cache, self.mteb_model_meta = cache.encoder, cache, meta
        self.instructions, self.template = instructions, template  # the run's own
        self.on_texts = on_texts  # called with the number of texts done, for a progress bar
        self.seen: Callable[[list[str]], None] | None = None  # called with the texts of each batch
        self.asked: dict[str, Any] = {}  # sha256 of all inputs in their order, for each task, split and subset

    def encode(
        self, inputs: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any = None, **kwargs: Any
    ) -> np.ndarray:
        """Return [N, E] float32 for the `text` column of `inputs`. Raises `UserError` for NaN."""
        side = prompt_type.value if prompt_type else "query"
        instruction = self.instructions.of(task_metadata, side)
        digest = self.asked.setdefault(f"{task_metadata.name} {hf_split} {hf_subset}", hashlib.sha256())
        texts = self._watched(texts_of(inputs, digest, side, instruction))
        return self.cache.stream(texts, self.template.asked(instruction, side), self.on_texts)

    def _watched(self, batches: Iterable[list[str]]) -> Iterator[list[str]]:
        for texts in batches:
            if self.seen:
                self.seen(texts)
            yield texts


def model_meta(name: str, revision: str, encoder: Encoder, use_instructions: bool) -> ModelMeta:
    """Return mteb's description of a model; `name` has the form "study/design"."""
    facts = {
        "name": name,
        "revision": revision,
        "max_tokens": encoder.max_length,
        "embed_dim": encoder.embedding_dim,
        "similarity_fn_name": ScoringFunction.COSINE,
        "framework": ["PyTorch"],
        "use_instructions": use_instructions,
    }
    return ModelMeta.create_empty(overwrites=facts)


class SharedCache(ResultCache):
    """A results folder of several commands: mteb reads its list of settings, adds to it and writes it anew."""

    def save_to_cache(self, task_result: Any, model_name: Any, *rest: Any, **settings: Any) -> None:
        """Save one result while no other command does."""
        place = self.get_task_result_path(task_result.task_name, model_name).parent
        with alone_in(place, wait=True):
            super().save_to_cache(task_result, model_name, *rest, **settings)
