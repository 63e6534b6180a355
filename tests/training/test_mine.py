"""Mining against brute force in numpy; killed at any block, it ends with the same bytes."""

import json

import numpy as np
import pytest
import torch

from cli.compose import composed, plain
from cli.errors import UserError
from corpora.readers import read_triples
from encoders.loading import load_run
from records.manifest import read_manifest
from records.run_folder import RunFolder
from tests.triples import write_triples
from training.mine import encoder as encoders
from training.mine.command import Mining, run
from training.mine.ranks import keys_of, scores_and_places
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
    words = ["max_steps=1", "global_batch_size=8", "checkpoint_every=0", "progress=false"]
    words = [*(f"trainer.{w}" for w in words), "data=jsonl", f"data.path='{pairs}'", "data.validation=4"]
    cfg = compose_cell("mean", "bi", *words, "logging.tensorboard=false", "logging.csv=false")
    folder = tmp_path_factory.mktemp("runs") / "tests" / "mean-bi" / "seed0"
    train_run(cfg, RunFolder(folder))
    return folder


@pytest.fixture
def folders(finished, small_model):
    """What `run=` may name."""
    return {"a run": finished, "a model of the library": small_model}


@pytest.fixture
def mine(pairs, finished, tmp_path):
    """mine("percent=0.9"): mine the pairs in blocks of seven texts into a new file; return (facts, file)."""

    def call(*words, run_of=finished, out="mined.jsonl"):
        given = [f"run='{run_of}'", f"out='{tmp_path / out}'", "data=jsonl", f"data.path='{pairs}'", "progress=false"]
        return run(plain(composed("mine", [*given, "block=7", *words]))), tmp_path / out

    return call


def unit(vectors):
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def brute_force(triples, texts, vectors, rule, window):
    """(negatives and cosines of each query, candidates, dropped) by sorting all cosines."""
    queries, documents = map(unit, vectors)
    mined, candidates, suspected = [], 0, 0
    for t, q in zip(triples, queries, strict=True):
        never = {t.query} | {other.positive for other in triples if other.query == t.query}
        cosine = {text: float(q @ d) for text, d in zip(texts, documents, strict=True)}
        ranks = sorted((text for text in texts if text not in never), key=lambda text: -cosine[text])
        ranks = ranks[window[0] - 1 : window[1]]
        left = [text for text in ranks if not rule(cosine[t.positive], cosine[text])]
        candidates, suspected = candidates + len(ranks), suspected + len(ranks) - len(left)
        mined.append((left[:3], [cosine[t.positive], *(cosine[text] for text in left[:3])]))
    return mined, candidates, suspected


RULES = {
    "percent=0.95": lambda p, s: s > p - 0.05 * abs(p),
    "percent=null margin=0.1": lambda p, s: s > p - 0.1,
    "percent=null threshold=0.4": lambda p, s: s > 0.4,
    "percent=0.9 margin=0.02": lambda p, s: s > p - 0.1 * abs(p) or s > p - 0.02,
    "percent=null": lambda p, s: False,
}


CASES = [(rule, k % 2 * 3 + 1, "a run") for k, rule in enumerate(RULES)]


@pytest.mark.parametrize("case", [*CASES, ("percent=0.95", 1, "a model of the library")], ids=str)
def test_equals_brute_force(mine, pairs, folders, case):
    rule, first, kind = case
    library, window, finished = kind != "a run", (first, 20 * first), folders["a run"]
    ranks = [f"first_rank={window[0]}", f"last_rank={window[1]}"]
    facts, out = mine(*rule.split(), *ranks, "negatives=3", run_of=folders[kind])
    data = plain(composed("train", ["data=jsonl", f"data.path='{pairs}'"]))["data"]
    triples = read_triples(data, "")
    texts = list(dict.fromkeys([t.positive for t in triples] + [n for t in triples for n in t.negatives]))
    if library:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folders[kind]))
        words = [f"Instruct: {t.instruction}\nQuery: " * bool(t.instruction) + t.query for t in triples]
        vectors = [model.encode(words), model.encode(texts)]
    else:
        model = load_run(finished, read_manifest(finished)["config"])
        queries = [model.encode([t.query], t.instruction or "")[0] for t in triples]
        vectors = [queries, model.encode(texts)]
    expected, candidates, suspected = brute_force(triples, texts, vectors, RULES[rule], window)
    mined = read_triples({**data, "path": str(out)}, "")
    for triple, found, (negatives, cosines) in zip(triples, mined, expected, strict=True):
        assert (found.query, found.positive, found.source) == (triple.query, triple.positive, triple.source)
        assert (found.instruction, found.negatives) == (triple.instruction, tuple(negatives))
        assert found.scores == pytest.approx(cosines, abs=2e-6)
    assert facts["suspected"]["all"]["candidates"] == candidates
    assert facts["suspected"]["all"]["dropped"] == pytest.approx(suspected / candidates, abs=1e-4)
    assert (0 < suspected < candidates) == (rule != "percent=null"), "or the rule is not seen at work"
    assert json.loads((out.parent / "mined.jsonl.json").read_text()) == facts
    if not library:
        assert facts["encoder"]["manifest_sha256"] == read_manifest(finished)["manifest_sha256"]


def test_a_kill_at_any_block_costs_nothing_but_the_block(mine, monkeypatch, capsys):
    words = "sample=random", "last_rank=20", "margin=0.01"
    facts, whole = mine(*words)
    done = []
    for step, kill_at in (("encode", 21), ("rank", 14)):
        real = getattr(Mining, step)

        def killed(self, start, real=real, kill_at=kill_at):
            if start == kill_at:
                raise SystemExit("the power went")
            return real(self, start)

        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(Mining, step, killed)
            mine(*words, out="resumed.jsonl")
    with pytest.raises(UserError, match="holds blocks of another mining"):
        mine(*words, "seed=1", out="resumed.jsonl")
    with monkeypatch.context() as patch:
        real_rank = Mining._line
        patch.setattr(Mining, "_line", lambda self, t, *more: done.append(t) or real_rank(self, t, *more))
        again, resumed = mine(*words, out="resumed.jsonl")
    assert len(done) == facts["queries"] - 14, "two blocks of seven were there"
    assert (again, resumed.read_bytes()) == (facts, whole.read_bytes())
    assert not resumed.with_name("resumed.jsonl.parts").exists()
    capsys.readouterr()
    assert mine(*words, out="resumed.jsonl")[0] == facts
    assert "is finished; nothing to do" in capsys.readouterr().out
    with pytest.raises(UserError, match="of another mining or none"):
        mine(*words, "negatives=2", out="resumed.jsonl")
    other, out = mine(*words, "seed=1", out="other.jsonl")
    assert out.read_bytes() != whole.read_bytes(), "another seed draws others"
    assert other["suspected"] == facts["suspected"]


def test_the_forecast_comes_first_and_the_shares_last(mine, capsys):
    facts, _ = mine("last_rank=12")
    forecast, *_, total = capsys.readouterr().out.splitlines()
    assert f"{facts['queries']} queries among {facts['documents']} documents, ranks 1 to 12. To encode:" in forecast
    assert total.split()[:2] == ["all", f"{facts['suspected']['all']['candidates']:,}"]
    assert list(facts["suspected"]) == ["1", "2-10", "11-12", "all"]


def test_keys_sort_by_score_then_place():
    scores = torch.tensor([[0.5, -0.25, 0.5, -torch.inf, 0.0, -0.25, 1.0, -1e-30]])
    back, places = scores_and_places(keys_of(scores, 3).sort(descending=True).values)
    assert places.tolist() == [[9, 3, 5, 7, 10, 4, 8, 6]]
    assert torch.equal(back, scores[:, places[0] - 3])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["out=mined.csv"], r"out=mined\.csv must be a file that ends with \.jsonl"),
        (["run=null"], "run= is empty"),
        (["last_rank=3"], "Ranks 1 to 3 do not hold negatives=4"),
        (["percent=95"], "percent=95 must be a number, at least 0 and at most 1; null: no such rule"),
        (["run=no/such/folder"], "there is no such folder"),
        (["data=wikitext"], "holds raw text"),
        (["data=classes", "data.columns={text:query,label:negative}"], "holds classes; hard neg"),
    ],
)
def test_what_cannot_be_mined_is_one_line(mine, words, message):
    with pytest.raises(UserError, match=message):
        mine(*words)


def test_a_model_without_its_library_is_one_line(mine, small_model, monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install sentence-transformers"):
        mine(run_of=small_model)
