"""The encoder that ranks: a finished run, or a sentence-transformers model, each with its own wording of queries."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError, reading
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


class Ranker:
    """An encoder with its template. instruction: of queries that bring none. facts: which encoder it is."""

    def __init__(self, encoder: TextEncoder, instruction: str | None, facts: dict[str, Any]) -> None:
        self.encoder, self.instruction, self.width = encoder, instruction, encoder.embedding_dim
        self.facts = {**facts, "instruction": instruction}

    def queries(self, triples: Sequence[Triple]) -> Tensor:
        """Return [N, E] unit vectors of the queries of `triples`, each with its instruction."""
        template = self.encoder.tokenizer.template
        texts = [(query_side(t, self.instruction, template), t.query) for t in triples]
        return self._unit([t.query for t in triples], encoded(self.encoder, texts))

    def documents(self, texts: Sequence[str]) -> Tensor:
        """Return [N, E] unit vectors of `texts`."""
        return self._unit(texts, self.encoder.encode(texts, self.encoder.tokenizer.template.asked("", "document")))

    def _unit(self, texts: Sequence[str], vectors: np.ndarray) -> Tensor:
        refuse_nonfinite(list(texts), vectors, "the encoder")
        return F.normalize(torch.from_numpy(vectors).float(), dim=-1)


class OfLibrary(Ranker):
    """A sentence-transformers model with its own prompts; an instruction of the data is worded as by E5-Mistral."""

    def __init__(self, name: str, instruction: str | None) -> None:
        from sentence_transformers import SentenceTransformer

        with reading(f"run={name}", "It has no manifest.json, so it must be a model of sentence-transformers."):
            self.model: Any = SentenceTransformer(name, model_kwargs={"use_safetensors": True})
        width: Any = self.model.get_embedding_dimension()
        self.instruction, self.width = instruction, width
        weights = of_tensors(self.model.state_dict())
        facts = {"model": name, "weights_sha256": weights, "prompts": self.model.prompts, "instruction": instruction}
        self.facts = {**facts, "sentence_transformers": version("sentence-transformers")}

    def queries(self, triples: Sequence[Triple]) -> Tensor:
        vectors = np.empty((len(triples), self.width), dtype=np.float32)
        asked = [(t.instruction or self.instruction or "", t.query) for t in triples]
        for instruction, places in by_instruction(asked).items():
            prompt = {"prompt": INSTRUCT.filled(instruction).removesuffix(TEXT_FIELD)} if instruction else {}
            vectors[places] = self.model.encode_query([asked[k][1] for k in places], show_progress_bar=False, **prompt)
        return self._unit([t.query for t in triples], vectors)

    def documents(self, texts: Sequence[str]) -> Tensor:
        return self._unit(texts, self.model.encode_document(list(texts), show_progress_bar=False))


def open_ranker(name: str, instruction: str | None) -> Ranker:
    """Return the encoder of a finished run's folder or, where that is none, a sentence-transformers model.

    instruction: of queries that bring none; None: the run's own. Raises `UserError` for a run that is not finished.
    """
    folder = Path(name)
    if not (folder / "manifest.json").is_file():
        return OfLibrary(name, instruction)
    manifest = read_manifest(folder)
    if manifest["status"] != "finished":
        raise UserError(f"run={folder} is not finished. Give its train.py command again to continue it.")
    check_code(folder, manifest)
    instruction = instruction or manifest["config"].get("data", {}).get("instruction")
    facts = {"run": "/".join(folder.absolute().parts[-3:]), "manifest_sha256": manifest["manifest_sha256"]}
    return Ranker(load_run(folder, manifest["config"]), instruction, facts)


def of_start(cfg: dict[str, Any], instruction: str | None) -> Ranker:
    """Return the untrained encoder that `cfg` describes."""
    encoder = untrained(cfg)
    facts = {"untrained": f"{cfg['pooler']['name']}-{cfg['attn']['name']}", "fingerprint": encoder.fingerprint}
    return Ranker(encoder, instruction, facts)
