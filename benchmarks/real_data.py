"""Real texts of the studies: 20,000 pairs, eight tasks cut to about 120,000 tokens at 48 a text, four domains of text.

    python -m benchmarks.real_data from=<folder> to=cache/real

<folder>/pairs/<source>.jsonl.gz holds what data=jsonl reads, <folder>/tasks/<task>/ what tasks_dir= does, each with its
origin and licence (docs/first-study.md). Pairs and domains are drawn with seed 0; of tasks the first records are kept.
"""

import gzip
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cli.errors import UserError, guard, nearest, reading
from records.files import replacing, write_text

PAIRS = {"squad": 8000, "wordnet": 8000, "medquad": 4000}
FIRST = {
    "STSBenchmark": 600,
    "SICK-R": 800,
    "MSRParaphrase": 300,
    "WikiQAReranking": 50,
    "SummEval": 12,
    "StackOverflowClustering": 1000,
}
OF_A_LABEL = {"train.jsonl": 8, "test.jsonl": 6}
QUERIES, DOCUMENTS = 150, 400
DOMAINS = {  # of objective=next_token -> the file below the folder, and its key of a text
    "science": ("tasks/SciFact/corpus.jsonl", "text"),
    "medical": ("pairs/medquad.jsonl.gz", "positive"),
    "wikipedia": ("pairs/squad.jsonl.gz", "positive"),
    "dictionary": ("pairs/wordnet.jsonl.gz", "positive"),
}
DOCUMENTS_OF_DOMAIN, SHORTEST, LONGEST = 1500, 100, 600  # characters; longer texts are cut
Record = dict[str, Any]


def main() -> None:
    """Read the words and write the folder."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    keys = {"from": "", "to": "cache/real"}
    for word in sys.argv[1:]:
        key, equals, value = word.partition("=")
        if key not in keys or not equals:
            raise UserError(f"There is no key '{key}'. {nearest(key, keys)}")
        keys[key] = value
    if not Path(keys["from"], "pairs").is_dir() or not Path(keys["from"], "tasks").is_dir():
        raise UserError(f"from={keys['from']} is no folder with pairs/ and tasks/. See docs/first-study.md.")
    print(f"{keys['to']}: {make(Path(keys['from']), Path(keys['to']))}.")


def make(source: Path, to: Path) -> str:
    """Write `to`/pairs.jsonl, `to`/tasks and `to`/domains, whole or not at all; return what there is, in words.

    The same source makes the same bytes. Raises `UserError` for a file that is not there, or not as it should be.
    """
    cuts: dict[str, Callable[[Path, Path], None]] = {name: partial(first, count=count) for name, count in FIRST.items()}
    cuts |= {"Banking77Classification": of_each_label, "SciFact": judged}
    with replacing(to) as draft:
        pairs = drawn(source / "pairs")
        write_text(draft / "pairs.jsonl", "\n".join(pairs) + "\n")
        for name, cut in cuts.items():
            task, place = source / "tasks" / name, draft / "tasks" / name
            place.mkdir(parents=True)
            with reading(task / "task.json"):
                shutil.copy(task / "task.json", place)
            cut(task, place)
        for name, (file, key) in DOMAINS.items():
            write_text(draft / "domains" / f"{name}.txt", "\n".join(texts(source / file, key)) + "\n")
    return f"{len(pairs):,} pairs, {len(cuts)} tasks, {len(DOMAINS)} domains"


def drawn(folder: Path) -> list[str]:
    """Return lines of all sources of `PAIRS`, shuffled."""
    rng, lines = random.Random(0), list[str]()
    for name, count in PAIRS.items():
        file = folder / f"{name}.jsonl.gz"
        with reading(file), gzip.open(file, "rt", encoding="utf-8") as text:
            lines += rng.sample(text.read().splitlines(), count)
    rng.shuffle(lines)
    return lines


def first(task: Path, place: Path, count: int) -> None:
    """Keep the first records of test.jsonl."""
    write(place / "test.jsonl", records(task / "test.jsonl")[:count])


def of_each_label(task: Path, place: Path) -> None:
    """Keep the first records of each label, of both splits."""
    for split, count in OF_A_LABEL.items():
        seen, kept = Counter[Any](), list[Record]()
        for record in records(task / split):
            seen[record["label"]] += 1
            kept += [record] * (seen[record["label"]] <= count)
        write(place / split, kept)


def judged(task: Path, place: Path) -> None:
    """Keep the first queries by number, all documents that are judged for them, and the first others."""
    file = task / "qrels" / "test.tsv"
    with reading(file):
        head, *lines = file.read_text(encoding="utf-8").splitlines()
        asked = set(sorted({line.split("\t")[0] for line in lines}, key=int)[:QUERIES])
        lines = [line for line in lines if line.split("\t")[0] in asked]
        kept = {line.split("\t")[1] for line in lines}
    corpus = records(task / "corpus.jsonl")
    for document in corpus:
        if len(kept) < DOCUMENTS:
            kept.add(str(document["_id"]))
    write(place / "corpus.jsonl", [document for document in corpus if str(document["_id"]) in kept])
    write(place / "queries.jsonl", [q for q in records(task / "queries.jsonl") if str(q["_id"]) in asked])
    write_text(place / "qrels" / "test.tsv", "\n".join([head, *lines]) + "\n")


def texts(file: Path, key: str) -> list[str]:
    """Return distinct documents of a domain, each in one line."""
    with reading(file, f"It needs {DOCUMENTS_OF_DOMAIN:,} texts of {SHORTEST} characters or more."):
        distinct = {" ".join(record[key].split())[:LONGEST] for record in records(file)}
        return random.Random(0).sample(sorted(t for t in distinct if len(t) >= SHORTEST), DOCUMENTS_OF_DOMAIN)


def records(file: Path) -> list[Record]:
    """Return the JSON objects of a file, one a line."""
    with reading(file), (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(file: Path, rows: list[Record]) -> None:
    """Write one JSON object a line."""
    write_text(file, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    guard(main)
