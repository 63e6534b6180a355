"""Mining against brute force in numpy."""

import json

import numpy as np
import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.triples import read_triples
from encoders.loading import load_run
from records.manifest import read_manifest
from tests.triples import quick_run, write_triples
from training.mine.command import run
from training.run import train_run


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Thirty-four triples; one query twice, with two positives; one query that is a document of another."""
    path = write_triples(tmp_path_factory.mktemp("pairs") / "pairs.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows.append({**rows[0], "positive": "another rest", "instruction": "find it", "source": "mine"})
    rows.append({"query": rows[3]["positive"], "positive": "a rest of its own", "negative": "a new sum"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def finished(compose_cell, pairs, tmp_path_factory):
    """The folder of a run of one step."""
    cfg = compose_cell("mean", "bi", *quick_run(pairs, steps=1))
    folder = tmp_path_factory.mktemp("runs") / "tests" / "mean-bi" / "seed0"
    train_run(cfg, folder)
    return folder


@pytest.fixture
def mine(pairs, finished, tmp_path):
    """mine("percent=0.9"): mine the pairs in blocks of seven texts into a new file; return (facts, file)."""

    def call(*words, out="mined.jsonl"):
        given = [f"run='{finished}'", f"out='{tmp_path / out}'", "data=jsonl", f"data.path='{pairs}'"]
        return run(plain(composed("mine", [*given, "block=7", *words]))), tmp_path / out

    return call


def unit(vectors):
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def brute_force(triples, texts, vectors, rule, window):
    """The negatives and cosines of each query by sorting all cosines; of several positives the lowest cosine counts."""
    queries, documents = map(unit, vectors)
    mined = []
    for t, q in zip(triples, queries, strict=True):
        positives = {other.positive for other in triples if other.query == t.query}
        cosine = {text: float(q @ d) for text, d in zip(texts, documents, strict=True)}
        lowest = min(cosine[text] for text in positives)
        ranks = sorted({*texts} - {*positives, t.query}, key=lambda text: -cosine[text])[: window[1]]
        left = [text for text in ranks if not rule(lowest, cosine[text])][window[0] - 1 :][:3]
        mined.append((left, [cosine[t.positive], *(cosine[text] for text in left)]))
    return mined


RULES = {
    "percent=0.95": lambda p, s: s > p - 0.05 * abs(p),
    "percent=null margin=0.1": lambda p, s: s > p - 0.1,
    "percent=null threshold=0.4": lambda p, s: s > 0.4,
    "percent=0.9 margin=0.02": lambda p, s: s > p - 0.1 * abs(p) or s > p - 0.02,
    "percent=null": lambda p, s: False,
}
CASES = [(rule, k % 2 * 3 + 1) for k, rule in enumerate(RULES)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_brute_force(mine, pairs, finished, case):
    rule, first = case
    window = first, 20 * first
    ranks = [f"first_rank={window[0]}", f"last_rank={window[1]}"]
    facts, out = mine(*rule.split(), *ranks, "negatives=3")
    data = plain(composed("train", ["data=jsonl", f"data.path='{pairs}'"]))["data"]
    triples = read_triples(data, "")
    texts = list(dict.fromkeys([t.positive for t in triples] + [n for t in triples for n in t.negatives]))
    model = load_run(finished, read_manifest(finished)["config"])
    vectors = [[model.encode([t.query], t.instruction or "")[0] for t in triples], model.encode(texts)]
    expected = brute_force(triples, texts, vectors, RULES[rule], window)
    mined = read_triples({**data, "path": str(out)}, "")
    for triple, found, (negatives, cosines) in zip(triples, mined, expected, strict=True):
        assert (found.query, found.positive, found.source) == (triple.query, triple.positive, triple.source)
        assert (found.instruction, found.negatives) == (triple.instruction, tuple(negatives))
        assert found.scores == pytest.approx(cosines, abs=2e-6)
    assert json.loads((out.parent / "mined.jsonl.json").read_text()) == facts
    assert facts["encoder"]["manifest_sha256"] == read_manifest(finished)["manifest_sha256"]


def test_random_negatives_follow_the_seed_and_a_file_is_not_written_twice(mine, tmp_path):
    files = [mine("sample=random", "last_rank=20", word, out=f"{k}.jsonl")[1] for k, word in enumerate(["seed=0"] * 2)]
    other = mine("sample=random", "last_rank=20", "seed=1", out="other.jsonl")[1]
    assert files[0].read_bytes() == files[1].read_bytes() != other.read_bytes()
    with pytest.raises(UserError, match=r"other.jsonl is there. Delete it, or choose another out="):
        mine(out="other.jsonl")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["out=mined.csv"], r"out=mined\.csv must be a file that ends with \.jsonl"),
        (["run=null"], "run= is empty"),
        (["first_rank=98"], r"last_rank=100 leaves fewer than negatives=4 from first_rank=98 on"),
        (["percent=null", "threshold=-1"], "No query keeps a negative"),
        (["data=wikitext"], "holds raw text"),
        (["data=classes", "data.columns={text:query,label:negative}"], "holds classes; hard neg"),
    ],
)
def test_what_cannot_be_mined_is_one_line(mine, words, message):
    with pytest.raises(UserError, match=message):
        mine(*words)
