"""From a configuration to written pairs: which are kept, their file and its facts."""

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cli.errors import UserError
from cli.limits import DATA, DATA_WORDS, Limit, check_dims, check_limits, real
from corpora.copies import NearCopies, first_words, word_count
from corpora.triples import Triple, described, read_triples
from encoders.limits import ENCODER, ENCODER_WORDS
from records.files import stream_seed
from records.manifest import code, read_manifest
from training.pairs import Ranker, check_out, of_start, open_ranker, write_pairs
from training.specialise.generator import Generator, group, prompt_of, seed_examples, shown

Config = dict[str, Any]
COUNTS = ("pairs", "seeds", "examples", "example_words", "query_tokens", "answer_tokens", "top", "block")
LIMITS = {
    **ENCODER,
    **DATA,
    "data.validation": Limit(0),
    **dict.fromkeys(COUNTS, Limit(1)),
    "query_words": Limit(0),
    "answer_words": Limit(0),
    "attempts": real(1),
    "temperature": real(1e-3),
    "top_p": real(1e-6, largest=1),
    "copies": real(1e-6, largest=1),
    "threads": Limit(1, "one for each core"),
}
WRITTEN = ("seed", "source", "task", "query_name", "answer_name")
NAMES = 16  # tokens at most of the answer's name


def run(cfg: Config) -> Config:
    """Write what `cfg` (conf/specialise.yaml) asks; return the facts. Raises `UserError` for what can be changed."""
    check(cfg)
    model = read_manifest(Path(cfg["run"]))["config"]["model"] if cfg["run"] else cfg["model"]
    if cfg["threads"] is not None:
        torch.set_num_threads(cfg["threads"])
    seeds = seed_examples(read_triples(cfg["data"], cfg["cache_dir"]), cfg)
    instruction = cfg["data"].get("instruction")
    ranker = open_ranker(cfg["run"], instruction) if cfg["run"] else of_start(cfg, instruction)
    work = Specialising(cfg, seeds, Generator(model, cfg["precision"], cfg["accelerator"]), ranker)
    kept = 0
    while kept < cfg["pairs"] and len(work.records) < cfg["pairs"] * cfg["attempts"]:
        work.add()
        kept = len(work.kept())
        print(f"{kept:,} of {cfg['pairs']:,} pairs from {len(work.records):,} records", file=sys.stderr, flush=True)
    return work.close()


def check(cfg: Config) -> None:
    """Refuse numbers and words that are not allowed, before anything is read. Raises `UserError`."""
    check_limits(cfg, LIMITS, {**ENCODER_WORDS, **DATA_WORDS})
    check_dims("evaluation.dims", cfg["evaluation"]["dims"])
    check_out(cfg["out"])


class Specialising:
    """One work of writing. records: those so far, each with its prompt, its seed and what drops it."""

    def __init__(self, cfg: Config, seeds: Sequence[Triple], generator: Generator, ranker: Ranker) -> None:
        self.cfg, self.seeds, self.generator, self.ranker = cfg, seeds, generator, ranker
        self.sieve, self.records, self.vectors = Sieve(seeds, cfg), list[Config](), list[torch.Tensor]()
        self.source = cfg["source"] or cfg["data"]["name"]

    def prompt(self, number: int) -> tuple[Config, list[int]]:
        """Return the beginning of a record and the tokens of its prompt, both by its number alone."""
        cfg = self.cfg
        seed = stream_seed(cfg["seed"], "specialise", number)
        examples = shown(self.seeds, np.random.default_rng(seed), cfg["examples"])
        room = self.generator.positions - cfg["query_tokens"] - cfg["answer_tokens"] - NAMES
        for count in range(len(examples), 0, -1):
            prompt = prompt_of(examples[:count], cfg)
            ids = self.generator.ids(prompt)
            if len(ids) <= room:
                break
        else:
            raise UserError(
                f"A prompt of one example has {len(ids)} tokens, and {room} are left of the model's "
                f"{self.generator.positions}. Lower example_words, query_tokens or answer_tokens."
            )
        record: Config = {"source": self.source, "record": number, "seed": seed, "prompt": prompt}
        of_group = dict(zip(("instruction", "label"), group(examples[0]), strict=True))
        return {**record, **{key: value for key, value in of_group.items() if value is not None}}, ids

    def add(self) -> None:
        """Write a block of records, and judge them in their order."""
        start = len(self.records)
        records = self._written(range(start, start + self.cfg["block"]))
        for record in records:
            record["dropped"] = record["dropped"] or not self.sieve.passes(record["query"], record["positive"])
        self.records += records
        self.vectors.append(self._vectors([triple_of(r) for r in records if not r["dropped"]]))

    def _written(self, numbers: range) -> list[Config]:
        cfg = self.cfg
        records, prompts = zip(*map(self.prompt, numbers), strict=True)
        queries = self._continued("query", numbers.start, prompts)
        rows = [k for k, query in enumerate(queries) if self.sieve.whole(query, False)]
        for record, query in zip(records, queries, strict=True):
            record |= {"query": query or "", "positive": "", "dropped": True}
        if rows:
            asked = [self.generator.ids(f"{records[k]['prompt']} {queries[k]}\n{cfg['answer_name']}:") for k in rows]
            for k, answer in zip(rows, self._continued("answer", numbers.start, asked), strict=True):
                records[k].update({"positive": answer or "", "dropped": not self.sieve.whole(answer, True)})
        return list(records)

    def _continued(self, side: str, start: int, prompts: Sequence[Sequence[int]]) -> list[str | None]:
        seed = stream_seed(self.cfg["seed"], f"specialise {side}", start)
        sampling = {key: self.cfg[key] for key in ("temperature", "top_p")}
        return self.generator.continued(prompts, self.cfg[f"{side}_tokens"], seed, **sampling)

    def _vectors(self, triples: Sequence[Triple]) -> torch.Tensor:
        """[2, N, E] unit vectors of queries and answers."""
        if not triples:
            return torch.zeros(2, 0, self.ranker.width)
        return torch.stack([self.ranker.queries(triples), self.ranker.documents([t.positive for t in triples])])

    @cached_property
    def seed_vectors(self) -> torch.Tensor:
        """[2, S, E] of the seeds, as they are shown."""
        return self._vectors([Triple(*self._shown(t), instruction=t.instruction) for t in self.seeds])

    def _shown(self, seed: Triple) -> tuple[str, str]:
        words = self.cfg["example_words"]
        return first_words(seed.query, words), first_words(seed.positive, words)

    def kept(self) -> list[Config]:
        """Return the records that pass every filter, each with its rank among all new answers and the seeds'."""
        passed = [r for r in self.records if not r["dropped"]]
        queries, answers = torch.cat([*self.vectors, self.seed_vectors], dim=1)
        ranked = [{**r, "rank": int(k)} for r, k in zip(passed, ranks(queries[: len(passed)], answers), strict=True)]
        return [r for r in ranked if r["rank"] <= self.cfg["top"]]

    def close(self) -> Config:
        """Write the pairs, the seeds and the facts, and return the facts. Raises `UserError` where no pair is kept."""
        kept, written_in_all = self.kept(), len(self.records)
        if not kept:
            dropped = sum(record["dropped"] for record in self.records)
            fault = f"{dropped:,} are unfinished, short or copies, the others not among the first top={self.cfg['top']}"
            mend = "Give more seeds, query_tokens and answer_tokens, or fewer query_words and answer_words"
            raise UserError(f"No pair of {written_in_all:,} that were written is kept: {fault}. {mend}.")
        chosen = kept[: self.cfg["pairs"]]
        facts = {
            "generator": self.generator.facts,
            "encoder": self.ranker.facts,
            "seeds": described(self.seeds),
            "settings": {key: self.cfg[key] for key in (*LIMITS, *WRITTEN) if key in self.cfg},
            "generated": written_in_all,
            "share_kept": round(len(kept) / written_in_all, 4),
            "kept": len(chosen),
            "code": code(),
        }
        out = self.cfg["out"]
        write_pairs(f"{out}.seeds.jsonl", map(seed_record, self.seeds))
        write_pairs(out, map(written, chosen), facts)
        print(f"{out}: {len(chosen):,} pairs; {len(kept):,} of {written_in_all:,} that were written pass every filter.")
        return facts


def triple_of(record: Config) -> Triple:
    """Return the pair of a record."""
    return Triple(record["query"], record["positive"], (), record["source"], record.get("instruction"))


def seed_record(seed: Triple) -> Config:
    """Return a seed as a record of pairs; of a class its label, as `written` has it."""
    of_group = {key: v for key, v in zip(("instruction", "label"), group(seed), strict=True) if v is not None}
    return {"query": seed.query, "positive": seed.positive, "source": seed.source, **of_group}


def written(record: Config) -> Config:
    """Return a record as the file has it: the pair first."""
    pair = {key: record[key] for key in ("query", "positive")}
    return {**pair, **{key: value for key, value in record.items() if key not in (*pair, "dropped")}}


class Sieve:
    """Judges pairs in their order: what one copies must have come before it."""

    def __init__(self, seeds: Sequence[Triple], cfg: dict[str, Any]) -> None:
        self.least, self.threshold = (cfg["query_words"], cfg["answer_words"]), cfg["copies"]
        self.known = NearCopies(self.threshold)
        for text in (text for t in seeds for text in (t.query, t.positive)):
            self.known.keep(text)

    def whole(self, text: str | None, of_answer: bool) -> bool:
        """Whether a text has ended (None: it did not) and is long enough."""
        return text is not None and word_count(text) >= self.least[of_answer]

    def passes(self, query: str, answer: str) -> bool:
        """Whether a pair copies no seed, no earlier pair, and its answer not its query; then none may copy it."""
        own = NearCopies(self.threshold)
        own.keep(query)
        if answer in own or query in self.known or answer in self.known:
            return False
        self.known.keep(query)
        self.known.keep(answer)
        return True


def ranks(queries: Tensor, answers: Tensor, block: int = 1024) -> Tensor:
    """Return [N] the rank of answer i for query i among all answers by cosine, from 1; equal ones share the best rank.

    queries: [N, E], answers: [M, E], unit vectors, the first N of the queries. Round-trip consistency: Alberti et al.
    2019, arXiv 1906.05416, by rank as in Dai et al. 2022 (Promptagator, arXiv 2209.11755).
    """
    parts = []
    for start in range(0, len(queries), block):
        scores = queries[start : start + block] @ answers.T
        places = torch.arange(start, start + len(scores), device=scores.device)
        parts.append((scores > scores.gather(1, places[:, None])).sum(1) + 1)
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long)
