"""Our encoder as mteb wants one: batches of dictionaries in, one matrix out."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from mteb.cache import ResultCache
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.types import EncodeKwargs

from encoders.tokens import DEFAULT, Template
from evaluation.embeddings import Embeddings
from evaluation.instructions import Instructions
from records.files import alone_in

ENCODE_KWARGS: EncodeKwargs = {"batch_size": 4096, "show_progress_bar": False}  # mteb's hand-over only


class MtebEncoder(AbsEncoder):
    """Adapter: looks up the instruction of (task, prompt type), and the vectors.

    template: the run's own. on_texts: called with the number of texts done, for a progress bar.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        meta: ModelMeta,
        instructions: Instructions,
        on_texts: Callable[[int], None] | None = None,
        template: Template = DEFAULT,
    ) -> None:
        self.model, self.embeddings, self.mteb_model_meta = embeddings.encoder, embeddings, meta
        self.instructions, self.template, self.on_texts = instructions, template, on_texts
        self.seen: Callable[[list[str]], None] | None = None  # called with all texts
        self.asked: dict[str, Any] = {}  # sha256 of all inputs in their order, for each task, split and subset

    def encode(
        self, inputs: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, prompt_type: Any = None, **kwargs: Any
    ) -> np.ndarray:
        """Return [N, E] float32 for the `text` column of `inputs`. Raises `UserError` for NaN."""
        side = prompt_type.value if prompt_type else "query"
        instruction = self.instructions.of(task_metadata, side)
        texts = [text for batch in inputs for text in batch["text"]]
        digest = self.asked.setdefault(f"{task_metadata.name} {hf_split} {hf_subset}", hashlib.sha256())
        digest.update(json.dumps([side, instruction, texts]).encode())
        if self.seen:
            self.seen(texts)
        return self.embeddings.embed(texts, self.template.asked(instruction, side), self.on_texts)


def model_meta(name: str, revision: str, embeddings: Embeddings, use_instructions: bool) -> ModelMeta:
    """Return mteb's description of a model; `name` has the form "study/design"."""
    facts = {
        "name": name,
        "revision": revision,
        "max_tokens": embeddings.encoder.max_length,
        "embed_dim": embeddings.embedding_dim,
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
