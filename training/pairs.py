"""What mining and specialising share: the encoder that ranks, and the file of pairs with its facts beside it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cli.errors import UserError
from corpora.triples import Triple
from encoders.loading import load_run, untrained
from encoders.text_encoder import TextEncoder, refuse_nonfinite
from records.files import write_json, write_text
from records.manifest import check_code, read_manifest
from training.batches import query_side
from training.validation import encoded

Config = dict[str, Any]


def check_out(out: Any) -> None:
    """Refuse a file that is there, or that is not named as JSON lines. Raises `UserError`."""
    if not str(out).endswith(".jsonl"):
        raise UserError(f"out={out or ''} must be a file that ends with .jsonl.")
    if Path(out).exists():
        raise UserError(f"out={out} is there. Delete it, or choose another out=.")


def write_pairs(out: str, rows: Iterable[Config], facts: Config | None = None) -> None:
    """Write <out>.json, where there are facts, then <out>, whose being there says that all is done."""
    if facts is not None:
        write_json(Path(f"{out}.json"), facts)
    write_text(Path(out), (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


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


def open_ranker(name: str, instruction: str | None) -> Ranker:
    """Return the encoder of a run's folder. Raises `UserError` where it is none, or not finished.

    instruction: of queries that bring none; None: the run's own.
    """
    folder = Path(name)
    manifest = read_manifest(folder)
    if manifest["status"] != "finished":
        raise UserError(f"run={folder} is not finished. Give its train.py command again to continue it.")
    check_code(folder, manifest)
    instruction = instruction or manifest["config"].get("data", {}).get("instruction")
    facts = {"run": "/".join(folder.absolute().parts[-3:]), "manifest_sha256": manifest["manifest_sha256"]}
    config = {**manifest["config"], "accelerator": "auto"}  # this machine may lack what the run had
    return Ranker(load_run(folder, config), instruction, facts)


def of_start(cfg: dict[str, Any], instruction: str | None) -> Ranker:
    """Return the untrained encoder that `cfg` describes."""
    encoder = untrained(cfg)
    facts = {"untrained": f"{cfg['pooler']['name']}-{cfg['attn']['name']}", "fingerprint": encoder.fingerprint}
    return Ranker(encoder, instruction, facts)
