"""Objective `next_token`: train an adapter of a given base by next-token prediction, scored in bits per byte."""

import csv
import hashlib
import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import numpy as np
from torch import Tensor

from cli.errors import UserError
from cli.limits import Limit
from corpora.raw_text import read_texts
from corpora.triples import Triple
from encoders.tokens import TextTokenizer, Tokens
from poolers.shared.base import BOS, EOS, TEXT
from records.files import write_text
from records.manifest import HELD_OUT
from training.held_out import of_percent
from training.objectives.masking import TOKENIZED, Masked, MaskedLoss, lm_head, refuse_untrained
from training.objectives.objective import Config, Objective, Scores
from training.set_up import SetUp

ALL, MEAN = "bits per byte", "mean of domains"


@dataclass
class Document:
    """A held-out document. size: `bytes_read`; rows: its windows; per_byte: bits, as last scored."""

    text: str
    size: int
    rows: list[Masked]
    per_byte: float = math.nan


def mean_per_byte(documents: Sequence[Document]) -> float:
    """Return bits per byte of documents together: each counts by its bytes."""
    return math.fsum(d.per_byte * d.size for d in documents) / sum(d.size for d in documents)


class NextToken(Objective):
    """Each token from those before it, by the base's own frozen language-model head. An example is a window of a
    document; the domain of a document is its source."""

    limits: ClassVar = {"objective.held_out_percent": Limit(1, largest=99)}
    read = staticmethod(read_texts)

    def __init__(self, setup: SetUp, examples: list[Triple], held_out: list[Triple]) -> None:
        self.work, self.counts = setup.work, {"predicted": 0}
        self.loss = MaskedLoss(setup.work, lm_head(setup.encoder.backbone, setup.config["model"]))
        of_examples = document_windows([t.query for t in examples], setup.tokenizer)
        parts = [
            (t, window)
            for t, of_text in zip(examples, of_examples, strict=True)
            for window in of_text
            if len(window) > 1
        ]
        self.examples, self.windows = [t for t, _ in parts], [window for _, window in parts]
        self.documents, self.last = defaultdict[str, list[Document]](list), Scores()
        for t, of_text in zip(held_out, document_windows([t.query for t in held_out], setup.tokenizer), strict=True):
            rows = [self._predicted(window) for window in of_text]
            self.documents[t.source].append(Document(t.query, bytes_read(t.query, setup.tokenizer), rows))

    @staticmethod
    def check(config: Config) -> None:
        """Refuse what MNTP refuses, and attention to later tokens."""
        refuse_untrained(config)
        if config["attn"]["name"] != "causal":
            raise UserError(f"objective=next_token: attn={config['attn']['name']} shows the token. Give attn=causal.")

    @staticmethod
    def split(examples: list[Triple], config: Config) -> tuple[list[Triple], list[Triple]]:
        """Hold documents of every domain out by hash; keep of the others those of the domains that are trained on.

        Raises `UserError` where nothing is left on either side.
        """
        o = config["objective"]
        kept, held_out = list[Triple](), list[Triple]()
        for t in examples:
            (held_out if of_percent(t.query, o["held_out_percent"]) else kept).append(t)
        kept = [t for t in kept if not o["domains"] or t.source in o["domains"]]
        if not (kept and held_out):
            counts = f"{len(kept)} texts to train on and {len(held_out)} held out"
            raise UserError(f"{counts}. Give more data, or another objective.held_out_percent.")
        return kept, held_out

    def _predicted(self, window: np.ndarray) -> Masked:
        """All tokens of a window but the first as targets; none is masked."""
        bos, eos, ids = self.work.tokenizer.bos, self.work.tokenizer.eos, window.tolist()
        roles = [TEXT] * len(ids)
        roles[0] = BOS if ids[0] == bos else TEXT
        roles[-1] = EOS if ids[-1] == eos else roles[-1]
        return Masked(Tokens(ids, roles), list(range(1, len(ids))), ids[1:])

    def lay_out(self, numbers: Sequence[int], step: int) -> tuple[list[Masked], list[Tokens]]:
        layout = [self._predicted(self.windows[i]) for i in numbers]
        return layout, [row.tokens for row in layout]

    def backward(self, layout: list[Masked], rows: list[Tokens], step: int) -> Tensor:
        """Add the gradient of the mean loss over the predicted tokens (nats per token); return the loss."""
        self.counts["predicted"] += sum(len(row.places) for row in layout)
        return self.loss.backward(layout, step)

    def held_out_rows(self) -> list[Tokens]:
        return [row.tokens for documents in self.documents.values() for d in documents for row in d.rows]

    def held_out_scores(self) -> Scores:
        """Bits per byte of all held-out documents, the mean over the domains, and each domain's own."""
        for documents in self.documents.values():
            nats = iter(self.loss.nats([row for d in documents for row in d.rows]))
            for d in documents:
                unpredicted = sum(row.tokens.roles[0] != BOS for row in d.rows)  # log2 V bits each
                of_document = sum(islice(nats, len(d.rows))) + unpredicted * math.log(len(self.loss.head))
                d.per_byte = of_document / math.log(2) / d.size
        scores = {domain: mean_per_byte(documents) for domain, documents in self.documents.items()}
        every = mean_per_byte([d for documents in self.documents.values() for d in documents])
        self.last = {ALL: every, MEAN: fmean(scores.values()), **scores}
        return self.last

    def write_held_out(self, folder: Path, scores: Scores) -> list[str]:
        """Write domain, document, bytes and bits per byte of every held-out document, which analysis reads."""
        if self.last != scores:  # of a run that was killed after they were scored
            self.held_out_scores()
        table = [["domain", "document", "bytes", "bits_per_byte"]]
        for domain, documents in self.documents.items():
            for k, d in enumerate(documents):
                name = f"{k}-{hashlib.sha256(d.text.encode()).hexdigest()[:12]}"
                table.append([domain, name, str(d.size), repr(d.per_byte)])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(table)
        write_text(folder / HELD_OUT, [text.getvalue()])
        return [HELD_OUT]

    def facts(self, steps: Config) -> Config:
        """Predicted tokens, windows and held-out documents of each domain, FLOPs with those of the frozen head."""
        predicted, flops, trained = self.counts["predicted"], steps["flops"], Counter(t.source for t in self.examples)
        domains = {
            domain: {"windows": trained[domain], "held_out_documents": len(self.documents[domain])}
            for domain in sorted(trained.keys() | self.documents.keys())
        }
        flops = None if flops is None else flops + 4 * predicted * self.loss.head.numel()
        return {"predicted_tokens": predicted, "domains": domains, "flops": flops}


def document_windows(texts: Sequence[str], tokenizer: TextTokenizer) -> Iterator[list[np.ndarray]]:
    """Yield the windows of each document: at most `max_length` ids each, BOS first where the tokenizer puts one, and
    EOS after the document's last token."""
    start = [] if tokenizer.bos is None else [tokenizer.bos]
    for k in range(0, len(texts), TOKENIZED):
        for ids in tokenizer.plain_ids(texts[k : k + TOKENIZED]):
            room, whole = tokenizer.max_length - len(start), [*ids, tokenizer.eos]
            cut = (whole[i : i + room] for i in range(0, len(whole), room))  # they do not see one another
            yield [np.array([*start, *window], dtype=np.int32) for window in cut]


def bytes_read(text: str, tokenizer: TextTokenizer) -> int:
    """Return the bytes of UTF-8 that the tokenizer sees of `text`: those after its normalisation, such as NFC.

    SentencePiece's marks of spaces count as the spaces that they stand for, one put before the text not at all.
    """
    normalizer = getattr(getattr(tokenizer.tokenizer, "backend_tokenizer", None), "normalizer", None)
    seen = text if normalizer is None else normalizer.normalize_str(text).replace("\u2581", " ")
    before = len(text) - len(text.lstrip(" "))
    return len(seen.removeprefix(" " * (before + 1)).encode()) + (before if seen.startswith(" " * (before + 1)) else 0)
