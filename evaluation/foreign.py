"""`foreign=`: a model of sentence-transformers scored as it stands, a row beside ours that no manifest controls."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from mteb.models.abs_encoder import AbsEncoder, get_prompt_name
from mteb.models.model_meta import ModelMeta, ScoringFunction
from sentence_transformers import SentenceTransformer
from transformers import PreTrainedModel

from cli.errors import UserError
from cli.quiet import quiet
from encoders.backbone import model_path
from encoders.identity import OF_THE_FILE
from encoders.precision import best_device
from encoders.templates import SIDES
from evaluation import results
from evaluation.candidates import Config
from evaluation.scoring import Outcome, evaluate_task, score_of
from records.fingerprint import of_tensors, of_value

BATCH = 64


def score_foreign(cfg: Config, tasks: list[Any]) -> Outcome:
    """Score the model that `foreign` names, leaving out tasks that the same weights have finished before.

    It is a hub name or the folder of a model of sentence-transformers, of a plain one (whose mean sentence-transformers
    pools) or of a PEFT adapter, which names its base. No run/manifest.json is written: nothing shows how it was made.
    Raises `UserError` where the model cannot be loaded.
    """
    adapter = ForeignEncoder(cfg["foreign"], cfg["model"]["trust_remote_code"], cfg["accelerator"])
    place, meta = Path(cfg["results"] or Path(cfg["runs_dir"]) / cfg["study"] / "scores"), adapter.meta
    folder = place / "results" / meta.model_name_as_path() / str(meta.revision)
    outcome, started = Outcome(f"{meta.name} (no manifest)", folder), time.perf_counter()
    results.drop_cut_lines(folder)
    for task in tasks:
        for part in [*results.parts(task), task]:
            if not results.finished(folder, part):
                evaluate_task(adapter, part, place, None)
                outcome.computed += part is task
        outcome.scores[task.metadata.name] = task.metadata.type, score_of(folder, task)
    results.describe_tasks(place, tasks)
    outcome.seconds = time.perf_counter() - started
    outcome.texts, outcome.encoding = adapter.texts, adapter.seconds
    return outcome


class ForeignEncoder(AbsEncoder):
    """mteb's view of the model: its own prompts for queries and documents, in float32, unless it says otherwise.

    Code in the folder runs only where `trusted`. texts, seconds: what was encoded, and how long that took.
    """

    def __init__(self, name: str, trusted: bool, accelerator: str) -> None:
        device = str(best_device(accelerator))
        try:
            with quiet():
                self.model = SentenceTransformer(_base(name), device=device, trust_remote_code=trusted)
                if _base(name) != name:
                    self.model.load_adapter(name)
        except (OSError, ValueError, ImportError) as error:
            why = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            raise UserError(
                f"foreign={name} cannot be loaded by sentence-transformers: {why} Give a hub name or a folder; "
                "code in it runs with model.trust_remote_code=true alone."
            ) from error
        self.texts, self.seconds = 0, 0.0
        digest = of_value([of_tensors(self.model.state_dict()), _facts(self.model)])
        facts = {
            "name": "/".join(["local", *Path(name).parts][-2:] if Path(name).is_dir() else name.split("/")[-2:]),
            "revision": digest[:12],
            "max_tokens": self.model.max_seq_length,
            "embed_dim": self.model.get_embedding_dimension(),
            "similarity_fn_name": ScoringFunction(self.model.similarity_fn_name),
            "framework": ["Sentence Transformers", "PyTorch"],
            "use_instructions": any(self.model.prompts.values()),
        }
        self.mteb_model_meta = self.meta = ModelMeta.create_empty(overwrites=facts)

    def encode(self, inputs: Any, *, task_metadata: Any = None, prompt_type: Any = None, **settings: Any) -> np.ndarray:
        """Return [N, E] float32 for the `text` column of `inputs`. Raises `UserError` for NaN.

        A prompt that the model names after the task or its type, perhaps with a side, comes before that of the side.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        name = task_metadata and get_prompt_name(self.model.prompts, task_metadata, prompt_type)
        prompt = None if name in (None, *SIDES) else self.model.prompts[name]
        side = prompt_type.value if prompt_type else ""
        encode = {"query": self.model.encode_query, "document": self.model.encode_document}.get(side, self.model.encode)
        started = time.perf_counter()
        vectors: np.ndarray = encode(texts, prompt=prompt, batch_size=BATCH, show_progress_bar=False).astype(np.float32)
        self.texts, self.seconds = self.texts + len(texts), self.seconds + time.perf_counter() - started
        if not np.isfinite(vectors).all():
            raise UserError(f"{self.meta.name} gives vectors with NaN. Its scores were not kept.")
        return vectors

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return [N, M], by the model's own function: cosine, dot, euclidean or manhattan."""
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return [N] of texts at the same place, by the same function."""
        return self.model.similarity_pairwise(embeddings1, embeddings2)


def _facts(model: SentenceTransformer) -> list[Any]:
    """Return all but the weights that vectors and scores depend on, as far as the model itself shows it."""
    decoders = [module for module in model.modules() if isinstance(module, PreTrainedModel)][:1]
    configs = [
        {k: v for k, v in of.config.to_dict().items() if k not in OF_THE_FILE and k[0] != "_"} for of in decoders
    ]
    adapters = [_text(vars(config)) for of in decoders for config in getattr(of, "peft_config", {}).values()]
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    tokens = tokenizer.to_str() if tokenizer is not None else sorted(model.tokenizer.get_vocab().items())
    asked = [model.prompts, model.default_prompt_name, model.max_seq_length, model.similarity_fn_name]
    return [repr(model), *asked, configs, adapters, of_value(tokens)]


def _text(settings: dict[str, Any]) -> str:
    """The settings of an adapter, whatever order its sets have, without the place of its base."""
    kept = {key: value for key, value in settings.items() if key != "base_model_name_or_path"}
    return json.dumps(kept, default=lambda value: sorted(value) if isinstance(value, set) else str(value))


def _base(name: str) -> str:
    """The base of an adapter in a folder that PEFT wrote, which has no tokenizer; else the name itself."""
    settings = Path(name) / "adapter_config.json"
    if not settings.is_file() or (settings.parent / "modules.json").is_file():
        return name
    return model_path(json.loads(settings.read_text(encoding="utf-8"))["base_model_name_or_path"])
