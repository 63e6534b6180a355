"""`foreign=`: a model of sentence-transformers scored as it stands, a row beside ours that no manifest controls."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from safetensors.torch import load_file
from torch import Tensor

from cli.errors import UserError, reading
from encoders.precision import best_device
from evaluation import results
from evaluation.candidates import Config
from evaluation.mteb_encoder import evaluate_task
from evaluation.scoring import Outcome, score_of
from records.files import of_tensors, of_value


def score_foreign(cfg: Config, tasks: list[Any]) -> Outcome:
    """Score the model that `foreign` names, leaving out tasks that the same weights have finished before.

    It is a hub name or the folder of a model of sentence-transformers, or of a plain one, whose mean
    sentence-transformers pools. No run/manifest.json is written: nothing shows how it was made. Raises `UserError`
    where the model cannot be loaded.
    """
    dtype = "bfloat16" if cfg["precision"] == "bf16" else "float32"
    adapter = ForeignEncoder(cfg["foreign"], cfg["model"]["trust_remote_code"], cfg["accelerator"], dtype)
    place, meta = Path(cfg["results"] or Path(cfg["runs_dir"]) / cfg["study"] / "scores"), adapter.mteb_model_meta
    folder = place / "results" / meta.model_name_as_path() / str(meta.revision)
    outcome = Outcome(f"{meta.name} ({dtype}, no manifest)", folder)
    for task in tasks:
        with outcome.naming(task):
            for part in [*results.parts(task), task]:
                if not results.finished(folder, part):
                    evaluate_task(adapter, part, place, None)
                    outcome.computed += part is task
            outcome.scores[task.metadata.name] = task.metadata.type, score_of(folder, task)
    results.describe_tasks(place, tasks)
    return outcome


def _lora_shapes(tensors: Mapping[str, Tensor]) -> list[list[int]]:
    return sorted(list(tensor.shape) for key, tensor in tensors.items() if ".lora_" in key)


class ForeignEncoder(SentenceTransformerEncoderWrapper):
    """mteb's view of the model: its own prompts and similarity, its weights in `dtype` however they are stored.

    Code in the folder runs only where `trusted`. The revision is a digest of weights and settings.
    """

    def __init__(self, name: str, trusted: bool, accelerator: str, dtype: str = "float32") -> None:
        remedy = "Give a hub name or a folder; code in it runs with model.trust_remote_code=true alone."
        file, device = Path(name, "adapter_model.safetensors"), str(best_device(accelerator))
        if file.is_file():
            remedy = "An adapter needs the base that it was trained on: see adapter_config.json."
        with reading(f"foreign={name}", remedy):
            try:
                super().__init__(name, device=device, trust_remote_code=trusted, model_kwargs={"dtype": dtype})
            except RuntimeError as error:  # transformers names a report that was silenced
                why = "weights have other sizes than the model" if "mismatched" in str(error) else str(error)
                raise ValueError(why) from error
        of = self.model
        if file.is_file() and _lora_shapes(load_file(file)) != _lora_shapes(of.state_dict()):
            raise UserError(f"foreign={name}: its base has other layers than its adapter. {remedy}")
        settings = [repr(of), of.prompts, of.default_prompt_name, of.max_seq_length, of.similarity_fn_name]
        facts = {
            "name": "/".join(["local", *Path(name).parts][-2:] if Path(name).is_dir() else name.split("/")[-2:]),
            "revision": of_value([of_tensors(of.state_dict()), settings])[:12],
            "max_tokens": of.max_seq_length,
            "similarity_fn_name": ScoringFunction(of.similarity_fn_name),
        }
        self.mteb_model_meta = ModelMeta.create_empty(overwrites=facts)

    def encode(self, *args: Any, **settings: Any) -> Any:
        """Return [N, E] float32. Raises `UserError` for NaN."""
        vectors = super().encode(*args, **settings | {"batch_size": 64})
        if not np.isfinite(np.asarray(vectors)).all():
            raise UserError(f"{self.mteb_model_meta.name} gives vectors with NaN. Its scores were not kept.")
        return vectors
