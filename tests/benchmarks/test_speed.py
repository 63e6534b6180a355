"""What the benchmark of speed times has one loss; its tables are what they say."""

import json
import re

import pytest

from benchmarks import speed
from benchmarks.contestants import OurStep, PeerStep, texts_of
from cli.compose import composed, plain
from cli.errors import UserError
from tests.triples import WORDS

LENGTHS = [1, 3, 50, 2, 9, 20, 5]
WORKING = ["objective.hard_negatives=1", "precision=fp32", "accelerator=cpu", "lora.dropout=0", "max_length=48"]


@pytest.fixture(scope="module")
def batch():
    """Seven triples, texts of one to fifty words; some are longer than 48 tokens."""
    from corpora.triples import Triple

    return [
        Triple(
            f"{WORDS[i]} of {WORDS[-i - 1]}",
            " ".join(WORDS[(i + k) % 10] for k in range(n)) + f" {i}",
            (" ".join(WORDS[(3 * i + k) % 10] for k in range(60 - n)) + f" not {i}",),
        )
        for i, n in enumerate(LENGTHS)
    ]


def config(small_model, *words):
    return plain(composed("train", [f"model.path={small_model}", *WORKING, *words]))


@pytest.mark.parametrize("pooler", ["eos", "multilayer"])
@pytest.mark.parametrize("attn", ["causal", "bi"])
def test_sentence_transformers_has_our_loss_and_tokens(small_model, batch, pooler, attn):
    """At the start LoRA adds nothing, so that both compute the same function."""
    cfg = config(small_model, f"pooler={pooler}", f"attn={attn}")
    steps = OurStep(cfg), PeerStep(cfg)
    (loss, tokens), (other, theirs) = (step.backward(batch) for step in steps)
    assert float(other) == pytest.approx(float(loss), abs=1e-5)
    assert tokens == theirs
    for step in steps:
        before = [p.detach().clone() for p in step.trained]
        step(batch)
        assert any((a != b).any() for a, b in zip(before, step.trained, strict=True))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Words of train.py that read 30 triples, of which some share texts."""
    path = tmp_path_factory.mktemp("data") / "pairs.jsonl"
    rows = [{"query": f"the {k // 2} sum", "positive": f"sum {k}", "negative": f"no sum {k}"} for k in range(30)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return ["data=jsonl", f"data.path={path}", f"cache_dir={path.parent}"]


def test_batches_repeat_no_text(data):
    cfg = plain(composed("train", data))
    work = speed.batches(cfg, 8, 2)
    assert [len(set(texts_of(batch))) for batch in work] == [24] * 2
    with pytest.raises(UserError, match="Lower batch or rounds"):
        speed.batches(cfg, 16, 1)


def test_one_cell_of_random_weights_is_measured(data, monkeypatch, capsys):
    shape = [f"model.architecture.{key}" for key in ("hidden_size=56", "intermediate_size=64", "num_hidden_layers=2")]
    words = ["model=qwen2_0_5b", *shape, "random=true", *WORKING, *data]
    monkeypatch.setattr("sys.argv", ["speed", *words, "batch=4", "rounds=1", "profile=3", "pooler=multilayer"])
    monkeypatch.setitem(speed.SIDES, "cpu", 64)
    speed.main()
    said = capsys.readouterr().out
    rows = [f"| {name} |" for name in ("training", "sentence-transformers", "dense limit", "encoding")]
    assert all(text in said for text in ("qwen2_0_5b, multilayer x causal on 1 CPU thread", "Self CPU", *rows))
    assert 0.005 < float(re.findall(r"4,096 tokens a chunk; ([\d.]+) MiB a token are kept", said)[0]) < 1
