"""From a configuration to mined pairs: sentence-transformers mines, with the encoder of a run."""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers.util import mine_hard_negatives
from torch import Tensor

from cli.errors import UserError
from cli.limits import DATA, DATA_WORDS, Limit, check_limits, real
from corpora.triples import Triple, described, read_triples
from encoders.precision import best_device
from records.files import stream_seed
from records.manifest import code
from training.pairs import Ranker, check_out, open_ranker, write_pairs

Config = dict[str, Any]
RULES = {"percent": "relative_margin", "margin": "absolute_margin", "threshold": "max_score"}  # ours: the library's
SETTINGS = ("first_rank", "last_rank", *RULES, "negatives", "sample", "seed", "threads")
LIMITS = {
    **{key: Limit(1) for key in ("first_rank", "last_rank", "negatives", "block")},
    "percent": real(0, "no such rule", largest=1),
    "margin": real(0, "no such rule", largest=2),
    "threshold": real(-1, "no such rule", largest=1),
    "seed": Limit(0),
    "data.validation": Limit(0),
    **DATA,
    "threads": Limit(1, "one for each core"),
}
WORDS = DATA_WORDS | {"sample": ("top", "random")}
Query = tuple[str | None, str]  # instruction and text


def check(cfg: Config) -> None:
    """Refuse numbers and words that are not allowed or do not fit one another, before anything is read."""
    check_limits(cfg, LIMITS, WORDS)
    if not cfg["run"]:
        raise UserError("run= is empty. Give the folder of a finished run.")
    if cfg["first_rank"] + cfg["negatives"] - 1 > cfg["last_rank"]:
        raise UserError(
            f"last_rank={cfg['last_rank']} leaves fewer than negatives={cfg['negatives']} from first_rank="
            f"{cfg['first_rank']} on. Raise it."
        )
    check_out(cfg["out"])


def run(cfg: Config) -> Config:
    """Mine what `cfg` (conf/mine.yaml) asks; return the facts. Raises `UserError` for what the user can change."""
    check(cfg)
    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    triples = read_triples(cfg["data"], cfg["cache_dir"])
    odd = {t.kind for t in triples} - {"pairs"}
    if odd:
        raise UserError(f"data={cfg['data']['name']} holds {min(odd)}; hard negatives are mined for pairs. Give pairs.")
    ranker = open_ranker(cfg["run"], cfg["data"].get("instruction"))
    sides = Sides(ranker, triples, cfg)
    rows = [record(sides, t, negatives) for t, negatives in mined(sides, triples, cfg)]
    counts = [len(row["negative"]) for row in rows]
    if not any(counts):
        raise UserError("No query keeps a negative under percent=, margin= and threshold=. Loosen them.")
    facts = {
        "encoder": ranker.facts,
        "data": described(triples),
        "settings": {key: cfg[key] for key in SETTINGS},
        "documents": len(sides.place),
        "queries": len(rows),
        "negatives": sum(counts),
        "queries_with_fewer": sum(count < cfg["negatives"] for count in counts),
        "code": code(),
    }
    write_pairs(cfg["out"], rows, facts)
    print(
        f"{cfg['out']}: {len(rows):,} queries with {sum(counts) / len(rows):.2f} negatives on average among "
        f"{len(sides.place):,} documents; {facts['queries_with_fewer']:,} have fewer than negatives={cfg['negatives']}."
    )
    return facts


class Sides:
    """The model as the library calls it: queries by their number, documents by their text, unit vectors of both.

    A query is a text with its instruction, so that each is worded as in training. queries: number -> one of its
    triples; vectors: [Q, E] and [K, E] once they are encoded.
    """

    def __init__(self, ranker: Ranker, triples: Sequence[Triple], cfg: Config) -> None:
        self.ranker, self.cfg, self.device = ranker, cfg, best_device("auto")
        self.number: dict[Query, int] = {}
        for t in triples:
            self.number.setdefault((t.instruction, t.query), len(self.number))
        of_number = {self.number[t.instruction, t.query]: t for t in triples}
        self.queries = [of_number[k] for k in range(len(of_number))]
        texts = [t.positive for t in triples] + [n for t in triples for n in t.negatives]
        self.place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        self.taken: dict[str, list[int]] = defaultdict(list)  # query -> documents that are no negatives of it
        for t in triples:
            self.taken[t.query] += [self.place[text] for text in (t.positive, t.query) if text in self.place]
        self.compared = 0  # queries so far

    def encode_query(self, numbers: Sequence[str], **_: Any) -> Tensor:
        """Return [Q, E] unit vectors of the queries of these numbers, all of them in order."""
        self.of_queries = self._encoded("queries", [self.queries[int(k)] for k in numbers])
        return self.of_queries

    def encode_document(self, texts: Sequence[str], **_: Any) -> Tensor:
        """Return [K, E] unit vectors of the texts, which are all documents in order."""
        self.of_documents = self._encoded("documents", texts)
        return self.of_documents

    def _encoded(self, side: str, items: Sequence[Any]) -> Tensor:
        block, encode = self.cfg["block"], getattr(self.ranker, side)
        starts = range(0, len(items), block)
        return torch.cat([encode(items[start : start + block]).to(self.device) for start in starts])

    def similarity(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Return [B, K] cosines of the next B queries; -inf below `last_rank`, and of what is no negative of a query.

        The library counts ranks with these, and as many for each query as one of them has positives.
        """
        cosines, block = queries @ documents.T, self.queries[self.compared : self.compared + len(queries)]
        self.compared += len(queries)
        for row, t in enumerate(block):
            cosines[row, self.taken[t.query]] = -torch.inf
        least = cosines.topk(min(self.cfg["last_rank"], len(documents)), dim=1).values[:, -1:]
        return cosines.masked_fill(cosines < least, -torch.inf)

    @staticmethod
    def similarity_pairwise(queries: Tensor, documents: Tensor) -> Tensor:
        """Return [N] cosines of unit vectors, row by row."""
        return (queries * documents).sum(dim=-1)

    def cosines(self, t: Triple, negatives: Sequence[str]) -> list[float]:
        """Return the cosines of the query with its positive and with each of the negatives."""
        places = [self.place[text] for text in (t.positive, *negatives)]
        found = self.of_documents[places] @ self.of_queries[self.number[t.instruction, t.query]]
        return [round(float(c), 6) for c in found]


def mined(sides: Sides, triples: Sequence[Triple], cfg: Config) -> list[tuple[Triple, list[str]]]:
    """Return each triple with its hard negatives, the highest cosine first.

    A query's own text and all its positives are none of them. NV-Retriever (Moreira et al. 2024, arXiv 2407.15831):
    `percent` is TopK-PercPos, `margin` TopK-MarginPos, `threshold` TopK-Abs; of several positives the one of lowest
    cosine decides.
    """
    positives: dict[str, dict[str, None]] = defaultdict(dict)
    for t in triples:
        positives[t.query][t.positive] = None
    pairs = [(str(k), text) for k, t in enumerate(sides.queries) for text in positives[t.query]]
    rules = {theirs: cfg[ours] for ours, theirs in RULES.items()}
    rules["relative_margin"] = None if cfg["percent"] is None else 1 - cfg["percent"]
    model: Any = sides  # the library calls these methods alone
    random.seed(stream_seed(cfg["seed"], "mine"))
    found = mine_hard_negatives(
        Dataset.from_dict(dict(zip(("query", "positive"), map(list, zip(*pairs, strict=True)), strict=True))),
        model,
        corpus=list(sides.place),
        range_min=cfg["first_rank"] - 1,
        range_max=cfg["last_rank"],
        num_negatives=cfg["negatives"],
        sampling_strategy=cfg["sample"],
        faiss_batch_size=cfg["block"],
        output_format="labeled-list",
        verbose=False,
        **rules,
    )
    of_query = {row["query"]: row["positive"][1:] for row in found}
    return [(t, of_query.get(str(sides.number[t.instruction, t.query]), [])) for t in triples]


def record(sides: Sides, t: Triple, negatives: list[str]) -> Config:
    """Return a pair with its negatives as data=jsonl reads it."""
    row: Config = {"query": t.query, "positive": t.positive, "negative": negatives, "source": t.source}
    row |= {} if t.instruction is None else {"instruction": t.instruction}
    return {**row, "scores": sides.cosines(t, negatives)}
