"""Our encoder as mteb wants one, batches of dictionaries in, one matrix out, and how it is handed a task."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from mteb.cache import ResultCache
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.types import EncodeKwargs

from cli.errors import UserError, reading
from encoders.templates import DEFAULT, Template
from evaluation.embeddings import Embeddings
from evaluation.instructions import Instructions
from evaluation.items import write_items
from records.files import alone_in

FETCH = "Connect to the network, or fill HF_HOME on a machine that has it."
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
        """Return [N, E] float32 for the `text` column of `inputs`. Raises `UserError` for NaN.

        An empty text, as FiQA2018 and TRECCOVID have some, gets zeros: similarity 0 in retrieval, 0.5 by
        mteb's formula for pairs.
        """
        side = prompt_type.value if prompt_type else "query"
        instruction = self.instructions.of(task_metadata, side)
        texts = [text for batch in inputs for text in batch["text"]]
        digest = self.asked.setdefault(f"{task_metadata.name} {hf_split} {hf_subset}", hashlib.sha256())
        digest.update(json.dumps([side, instruction, texts]).encode())
        written = [text for text in texts if text.strip()]
        if self.seen:
            self.seen(written)
        vectors = self.embeddings.embed(written, self.template.asked(instruction, side), self.on_texts)
        if len(written) == len(texts):
            return vectors
        rows = np.zeros((len(texts), self.embeddings.embedding_dim), np.float32)
        rows[[bool(text.strip()) for text in texts]] = vectors
        return rows


def model_meta(name: str, revision: str, embeddings: Embeddings, use_instructions: bool) -> ModelMeta:
    """Return mteb's description of a model; `name` has the form "study/design"."""
    facts = {
        "name": name,
        "revision": revision,
        "max_tokens": embeddings.encoder.max_length,
        "embed_dim": embeddings.embedding_dim,
        "similarity_fn_name": ScoringFunction.COSINE,
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


def evaluate_task(adapter: Any, task: Any, folder: Path, predictions: Path | None) -> None:
    """Have mteb score the task. predictions: folder of the model's predictions and items, one file per task.

    Raises `UserError` for a data set that cannot be loaded, and for a main score that mteb lacks.
    """
    reseed(task)
    name, score = task.metadata.name, task.metadata.main_score
    try:
        if not task.is_aggregate:
            with reading(f"The data set of {name}", FETCH):
                task.load_data()  # before mteb, which would put it away again: the items need the truth
        mteb.evaluate(
            adapter,
            task,
            cache=SharedCache(folder),
            overwrite_strategy="only-missing",
            encode_kwargs=ENCODE_KWARGS,
            prediction_folder=predictions,
            show_progress_bar=False,
            co2_tracker=False,
        )
        if predictions:
            write_items(predictions, task)
    except KeyError as error:
        if error.args != (score,):
            raise
        raise UserError(f"mteb computes no {score} for {name}. Correct main_score in its task.json.") from error
    finally:
        if not task.is_aggregate and task.data_loaded:
            task.unload_data()


def reseed(task: Any) -> None:
    """Put the task's random streams at their start, as mteb does only when it makes the task.

    Else the second model of a command would be clustered on other samples.
    """
    task.rng_state, task.np_rng = random.Random(task.seed), np.random.default_rng(task.seed)
    random.seed(task.seed)
    np.random.seed(task.seed)
