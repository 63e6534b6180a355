"""The encoder that ranks: a finished run, or a sentence-transformers model, each with its own wording of queries."""

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from corpora.hub import hub_reachable
from corpora.triples import Triple
from encoders.finite import refuse_nonfinite
from encoders.loading import load_run, untrained
from encoders.templates import INSTRUCT, TEXT_FIELD
from encoders.text_encoder import TextEncoder
from encoders.tokens import by_instruction
from records.fingerprint import of_tensors
from records.manifest import check_code, read_manifest
from training.batches import query_side
from training.validation import encoded

LIBRARY = "sentence_transformers"


class Ranker(Protocol):
    """An encoder of both sides. facts: which one it is, by digest; width: E."""

    facts: dict[str, Any]
    width: int

    def queries(self, triples: Sequence[Triple]) -> np.ndarray:
        """Return [N, E] float32 of the queries of `triples`, each with its instruction."""

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return [N, E] float32 of `texts`."""


class OfEncoder:
    """An encoder with its template. instruction: of queries that bring none. facts: which encoder it is."""

    def __init__(self, encoder: TextEncoder, instruction: str | None, facts: dict[str, Any]) -> None:
        self.encoder, self.instruction, self.width = encoder, instruction, encoder.embedding_dim
        self.facts = {**facts, "instruction": instruction}

    def queries(self, triples: Sequence[Triple]) -> np.ndarray:
        template = self.encoder.tokenizer.template
        return encoded(self.encoder, [(query_side(t, self.instruction, template), t.query) for t in triples])

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        return self.encoder.encode(texts, self.encoder.tokenizer.template.asked("", "document"))


def of_run(folder: Path, instruction: str | None) -> OfEncoder:
    """Return the encoder of a finished run. instruction: of queries that bring none; None: the run's own."""
    manifest = read_manifest(folder)
    if manifest["status"] != "finished":
        raise UserError(f"run={folder} is not finished. Give its train.py command again to continue it.")
    check_code(folder, manifest)
    instruction = instruction or manifest["config"].get("data", {}).get("instruction")
    name = "/".join(folder.absolute().parts[-3:])
    facts = {"run": name, "manifest_sha256": manifest["manifest_sha256"]}
    return OfEncoder(load_run(folder, manifest["config"]), instruction, facts)


def of_start(cfg: dict[str, Any], instruction: str | None) -> OfEncoder:
    """Return the untrained encoder that `cfg` describes."""
    encoder = untrained(cfg)
    facts = {"untrained": f"{cfg['pooler']['name']}-{cfg['attn']['name']}", "fingerprint": encoder.fingerprint}
    return OfEncoder(encoder, instruction, facts)


class OfLibrary:
    """A sentence-transformers model with its own prompts; an instruction of the data is worded as by E5-Mistral.

    Raises `UserError` where the library is not installed, or `name` is no such model or cannot be reached.
    """

    def __init__(self, name: str, instruction: str | None) -> None:
        if find_spec(LIBRARY) is None:
            raise UserError(
                f"run={name} has no manifest.json; a sentence-transformers model needs its library: "
                "pip install sentence-transformers."
            )
        import sentence_transformers

        try:
            local = Path(name).is_dir() or not hub_reachable()
            self.model: Any = sentence_transformers.SentenceTransformer(
                name, local_files_only=local, trust_remote_code=False, model_kwargs={"use_safetensors": True}
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise UserError(
                f"run={name} is neither a run folder (it has no manifest.json) nor a sentence-transformers model that "
                f"can be loaded: {(str(error).splitlines() or [type(error).__name__])[0][:200]}"
            ) from error
        self.instruction, self.width = instruction, len(self.model.encode_document(LIBRARY))
        weights = of_tensors(self.model.state_dict())
        facts = {"model": name, "weights_sha256": weights, "prompts": self.model.prompts, "instruction": instruction}
        self.facts = {**facts, "sentence_transformers": version(LIBRARY)}

    def queries(self, triples: Sequence[Triple]) -> np.ndarray:
        vectors = np.empty((len(triples), self.width), dtype=np.float32)
        asked = [(t.instruction or self.instruction or "", t.query) for t in triples]
        for instruction, places in by_instruction(asked).items():
            prompt = {"prompt": INSTRUCT.filled(instruction).removesuffix(TEXT_FIELD)} if instruction else {}
            vectors[places] = self.model.encode_query([asked[k][1] for k in places], show_progress_bar=False, **prompt)
        return vectors

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.encode_document(list(texts), show_progress_bar=False)


def open_ranker(name: str, instruction: str | None) -> Ranker:
    """Return the encoder that `run=` names. Raises `UserError` where it is neither a finished run nor a model."""
    folder = Path(name)
    if (folder / "manifest.json").is_file():
        return of_run(folder, instruction)
    if not folder.is_dir() and (name.count("/") > 1 or name.startswith((".", "/", "~"))):
        raise UserError(
            f"run={name}: there is no such folder. Give a finished run's, or a sentence-transformers model."
        )
    return OfLibrary(name, instruction)


def unit_vectors(texts: Sequence[str], vectors: np.ndarray, name: str) -> Tensor:
    """Return the vectors [N, E] of `texts` at length 1. Raises `UserError`, naming text and encoder, for a NaN."""
    refuse_nonfinite(texts, vectors, name)
    return F.normalize(torch.from_numpy(vectors).float(), dim=-1)
