"""From a configuration to mined pairs: the forecast, blocks that survive a kill, the file and its facts."""

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor

from cli.errors import UserError
from cli.limits import DATA, DATA_WORDS, SWITCH, Limit, check_groups, check_limits, real
from corpora.readers import read_triples
from corpora.triples import Triple, described
from encoders.precision import best_device
from records.atomic import replacing, write_json
from records.blocks import Blocks, check_out
from records.fingerprint import remember_below
from records.manifest import code
from records.streams import stream_seed
from training.mine.encoder import Ranker, open_ranker, unit_vectors
from training.mine.ranks import Rules, chosen, ranked, report, shares

Config = dict[str, Any]
RULES = ("percent", "margin", "threshold")
SETTINGS = ("first_rank", "last_rank", *RULES, "negatives", "sample", "seed", "scores", "block", "threads")
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
WORDS = DATA_WORDS | {"sample": ("top", "random"), "scores": SWITCH, "progress": SWITCH}
SAMPLE = 64  # texts and rows of the forecast


def run(cfg: Config) -> Config:
    """Mine what `cfg` (conf/mine.yaml) asks; return the facts. Raises `UserError` for what the user can change."""
    check(cfg)
    remember_below(cfg["cache_dir"])
    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    triples = read_triples(cfg["data"], cfg["cache_dir"])
    odd = {t.kind for t in triples} - {"pairs"}
    if odd:
        raise UserError(f"data={cfg['data']['name']} holds {min(odd)}; hard negatives are mined for pairs. Give pairs.")
    mining = Mining(cfg, triples, open_ranker(cfg["run"], cfg["data"].get("instruction")))
    done = mining.blocks.finished()
    if done:
        return done
    mining.blocks.begin()
    print(mining.forecast(), flush=True)
    steps = {"documents": (mining.encode, len(mining.documents)), "queries": (mining.rank, len(triples))}
    with Progress(console=Console(stderr=True), disable=not cfg["progress"]) as bar:
        for what, (step, count) in steps.items():
            for start in bar.track(range(0, count, cfg["block"]), description=what):
                step(start)
    facts = mining.close()
    print(report(mining.blocks.out, facts))
    return facts


def check(cfg: Config) -> None:
    """Refuse numbers and words that are not allowed or do not fit one another, before anything is read."""
    check_groups(cfg, ("data",))
    check_limits(cfg, LIMITS, WORDS)
    if not cfg["run"]:
        raise UserError("run= is empty. Give a finished run's folder, or a sentence-transformers model.")
    check_out(cfg["out"])
    first, last = cfg["first_rank"], cfg["last_rank"]
    if last - first + 1 < cfg["negatives"]:
        raise UserError(f"Ranks {first} to {last} do not hold negatives={cfg['negatives']}. Raise last_rank.")


class Mining:
    """One mining. documents: distinct positives and negatives of the data."""

    def __init__(self, cfg: Config, triples: list[Triple], ranker: Ranker) -> None:
        self.cfg, self.triples, self.ranker = cfg, triples, ranker
        texts = [t.positive for t in triples] + [n for t in triples for n in t.negatives]
        self.place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        self.documents = list(self.place)
        self.positives: dict[str, set[int]] = defaultdict(set)
        for t in triples:
            self.positives[t.query].add(self.place[t.positive])
        settings = {key: cfg[key] for key in SETTINGS}
        identity = {"encoder": ranker.facts, "data": described(triples), "settings": settings}
        self.blocks = Blocks(cfg["out"], "mining", identity)
        self.rules, self.device = Rules(*(cfg[rule] for rule in RULES)), best_device("auto")

    def forecast(self) -> str:
        """Return what is to do and how long that takes. Raises `UserError` where the disk lacks the room."""
        block, width, count = self.cfg["block"], self.ranker.width, len(self.documents)
        left = sum(not self.vectors_file(k).exists() for k in range(0, count, block)) * block
        to_rank = sum(not self.part_file(k).exists() for k in range(0, len(self.triples), block)) * block
        left, to_rank = min(left, count), min(to_rank, len(self.triples))
        sample = self.documents[:: max(1, count // SAMPLE)][:SAMPLE]
        self.ranker.documents(sample[:1])  # what is compiled or loaded late
        start = time.perf_counter()
        vectors = self._unit(sample, self.ranker.documents(sample))
        each, start = (time.perf_counter() - start) / len(sample), time.perf_counter()
        some = vectors.repeat(-(-min(block, count) // len(vectors)), 1)
        zero = torch.zeros(len(vectors), dtype=torch.long, device=self.device)
        ranked(vectors, [(0, some)], zero, zero.new_zeros(0, 2), min(self.cfg["last_rank"], len(some)))
        pair = (time.perf_counter() - start) / len(vectors) / len(some)
        need, parts = left * width * 4, self.blocks.parts
        free = shutil.disk_usage(parts).free
        if need > free:
            raise UserError(
                f"The vectors need {need / 2**30:.2f} GiB and {parts} has {free / 2**30:.2f} GiB free. Free some "
                "disk, or give out=<file on a larger disk>."
            )
        minutes = (each * (left + to_rank) + pair * to_rank * count) / 60
        return (
            f"{self.blocks.out}: negatives of {len(self.triples):,} queries among {count:,} documents, ranks "
            f"{self.cfg['first_rank']} to {self.cfg['last_rank']}. To encode: {left + to_rank:,} texts; to compare: "
            f"{to_rank * count:,} pairs; about {minutes:.1f} min, as just measured on {len(sample)} texts; "
            f"{need / 2**20:,.0f} MiB on disk meanwhile."
        )

    def vectors_file(self, start: int) -> Path:
        """The vectors of the documents from `start` on."""
        return self.blocks.parts / f"documents-{start}.npy"

    def part_file(self, start: int) -> Path:
        """The lines and counts of the queries from `start` on."""
        return self.blocks.parts / f"queries-{start}.json"

    def encode(self, start: int) -> None:
        """Write the unit vectors of one block of documents, unless they are there."""
        if not self.vectors_file(start).exists():
            texts = self.documents[start : start + self.cfg["block"]]
            with replacing(self.vectors_file(start)) as draft:
                np.save(draft, self._unit(texts, self.ranker.documents(texts)).cpu().numpy())

    def _unit(self, texts: list[str], vectors: np.ndarray) -> Tensor:
        return unit_vectors(texts, vectors, f"run={self.cfg['run']}").to(self.device)

    def _blocks(self) -> Iterator[tuple[int, Tensor]]:
        for start in range(0, len(self.documents), self.cfg["block"]):
            yield start, torch.from_numpy(np.load(self.vectors_file(start))).to(self.device)

    def rank(self, start: int) -> None:
        """Write the mined lines and the counts of one block of queries, unless they are there."""
        if self.part_file(start).exists():
            return
        triples = self.triples[start : start + self.cfg["block"]]
        queries = self._unit([t.query for t in triples], self.ranker.queries(triples))
        own_places = [self.positives[t.query] | {self.place.get(t.query, -1)} for t in triples]
        known = torch.tensor(
            [(row, p) for row, places in enumerate(own_places) for p in sorted(places)], device=self.device
        )
        positives = torch.tensor([self.place[t.positive] for t in triples], device=self.device)
        parts = ranked(queries, self._blocks(), positives, known, self.cfg["last_rank"])
        of_positive, scores, places = (part.cpu().numpy() for part in parts)

        first, count = self.cfg["first_rank"], self.cfg["negatives"]
        there = np.isfinite(scores)
        by_rule = self.rules.suspected(of_positive, scores)
        dropped = np.any([np.zeros_like(there), *by_rule.values()], axis=0)
        lines, taken = [], []
        for row, t in enumerate(triples):
            left = np.flatnonzero(there[row] & ~dropped[row])
            drawn = [stream_seed(self.cfg["seed"], "mine"), start + row] if self.cfg["sample"] == "random" else None
            ranks = chosen(left[left >= first - 1], count, drawn)
            taken.append(len(ranks))
            each = [of_positive[row], *scores[row, ranks]]
            lines.append(self._line(t, [self.documents[p] for p in places[row, ranks]], each))
        counts = {
            "queries": len(triples),
            "negatives": sum(taken),
            "queries_with_fewer": sum(n < count for n in taken),
            "queries_without": sum(not n for n in taken),
            "positive_first": int((of_positive >= scores[:, 0]).sum()),
            "by_rank": {
                name: (there & mask).sum(axis=0)[first - 1 :].tolist()
                for name, mask in (("candidates", there), ("dropped", dropped), *by_rule.items())
            },
        }
        write_json(self.part_file(start), {"lines": lines, "counts": counts})

    def _line(self, triple: Triple, negatives: list[str], scores: list[float]) -> str:
        row: Config = {"query": triple.query, "positive": triple.positive, "negative": negatives}
        row["source"] = triple.source
        if triple.instruction is not None:
            row["instruction"] = triple.instruction
        if self.cfg["scores"]:
            row["scores"] = [round(float(s), 6) for s in scores]
        return json.dumps(row, ensure_ascii=False) + "\n"

    def close(self) -> Config:
        """Write `out` and its facts, remove the blocks, return the facts."""
        files = [self.part_file(start) for start in range(0, len(self.triples), self.cfg["block"])]
        counts = [json.loads(file.read_text(encoding="utf-8"))["counts"] for file in files]
        totals = {key: sum(c[key] for c in counts) for key in counts[0] if key != "by_rank"}
        by_rank = {name: np.sum([c["by_rank"][name] for c in counts], axis=0) for name in counts[0]["by_rank"]}
        facts = {
            "documents": len(self.documents),
            **totals,
            "suspected": shares(by_rank, self.cfg["first_rank"]),
            "code": code(),
        }
        lines = (line for file in files for line in json.loads(file.read_text(encoding="utf-8"))["lines"])
        return self.blocks.close(facts, lines)
