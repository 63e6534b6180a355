"""Next-token prediction of a given base: bits per byte and loss token by token, held-out documents, runs by domain."""

import csv
import math
from statistics import fmean

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import normalizers
from transformers import AutoModelForCausalLM, AutoTokenizer

from cli.errors import UserError
from corpora.raw_text import read_texts
from corpora.triples import Triple
from encoders.tokens import TextTokenizer
from records.earlier_runs import ADAPTER
from records.manifest import HELD_OUT, read_manifest
from tests.training.raw_stages import WORDS, quick_stage
from training.held_out import of_percent
from training.objectives.next_token import NextToken, bytes_read
from training.run import train_run
from training.set_up import set_up

LENGTH = 8
TEXTS = [
    "the sum of two arrays",
    "a new array is returned with the same shape and type as its first argument",
    "é type",
]


def objective_on(cfg, texts=TEXTS):
    return NextToken(set_up(cfg), [Triple(t, t) for t in texts], [Triple(t, t, (), t[:1]) for t in texts])


def token_by_token(folder, texts, start):
    """(nats of all predicted tokens, their number, windows without BOS) by transformers' own model in float64."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    nats, predicted, cut = 0.0, 0, 0
    for text in texts:
        ids, room = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id], LENGTH
        while ids:
            room = LENGTH - len(start)
            window, ids = [*start, *ids[:room]], ids[room:]
            cut += not start
            for i in range(1, len(window)):
                with torch.no_grad():
                    logits = model(torch.tensor([window[:i]])).logits[0, -1]
                nats -= float(logits.log_softmax(dim=-1)[window[i]])
                predicted += 1
    return nats, predicted, cut


def test_bytes_are_those_that_the_tokenizer_reads(compose_cell, headed_model, hub_model):
    """NFC makes one letter of two; SentencePiece's marks of spaces are no bytes of the text."""
    of = {
        name: TextTokenizer(AutoTokenizer.from_pretrained(folder), 8)
        for name, folder in (("nfc", headed_model), ("marks", hub_model))
    }
    assert bytes_read("caf" + "e\u0301 x", of["nfc"]) == len("caf\u00e9 x".encode())
    backend = of["marks"].tokenizer.backend_tokenizer
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    assert bytes_read("a b c", of["marks"]) == 5
    assert bytes_read(" a", of["marks"]) == 2


@pytest.mark.parametrize(("model", "start"), [("headed_model", []), ("hub_model", [1])])
@pytest.mark.parametrize("words", [["padding_side=left"], ["model.attn_implementation=unpadded"]])
def test_loss_and_bits_per_byte_are_those_token_by_token(compose_cell, request, model, start, words):
    folder = request.getfixturevalue(model)
    more = ["objective=next_token", f"max_length={LENGTH}", "lora.dropout=0.0", "token_budget=24"]
    objective = objective_on(compose_cell("mean", "causal", *more, *words, f"model.path={folder}"))
    numbers = range(len(objective.windows))
    layout, rows = objective.lay_out(numbers, 0)
    assert len(objective.work.chunks(rows)) > 1
    nats, predicted, cut = token_by_token(folder, TEXTS, start)
    assert sum(len(row.places) for row in layout) == predicted
    assert float(objective.backward(layout, rows, 0)) == pytest.approx(nats / predicted, rel=1e-5)
    size = sum(len(text.encode()) for text in TEXTS)
    scores, vocabulary = objective.held_out_scores(), len(objective.loss.head)
    assert scores["bits per byte"] == pytest.approx((nats + cut * math.log(vocabulary)) / math.log(2) / size, rel=1e-5)
    nats, _, cut = token_by_token(folder, TEXTS[2:], start)
    wanted = (nats + cut * math.log(vocabulary)) / math.log(2) / len("é type".encode())
    assert scores["é"] == pytest.approx(wanted, rel=1e-5)
    one = token_by_token(folder, TEXTS[:1], start)
    assert objective.documents["t"][0].per_byte == pytest.approx(
        (one[0] + one[2] * math.log(vocabulary)) / math.log(2) / len(TEXTS[0]), rel=1e-5
    )
    assert scores["mean of domains"] == pytest.approx(fmean(scores[text[:1]] for text in TEXTS))


def test_documents_are_held_out_by_hash_whatever_is_trained_on(compose_cell, monkeypatch):
    words = ["objective=next_token", "objective.held_out_percent=20", "data=docstrings"]
    texts = {f"{a} {b}": package for package in ("torch", "stdlib") for a in WORDS for b in (package, *WORDS[:5])}
    examples = [Triple(text, text, (), package) for text, package in texts.items()]
    both = compose_cell("mean", "causal", *words)
    one = compose_cell("mean", "causal", *words, "objective.domains=[torch]")
    kept, held_out = NextToken.split(examples, both)
    of_torch, same = NextToken.split(examples, one)
    assert {t.query for t in kept}.isdisjoint({t.query for t in held_out})
    assert len(kept) + len(held_out) == len(examples)
    assert same == held_out
    assert {t.source for t in held_out} == {"torch", "stdlib"}
    assert of_torch == [t for t in kept if t.source == "torch"]
    assert [t.query for t in held_out] == [text for text in texts if of_percent(text, 20)], "as of benchmarks.pretrain"
    with pytest.raises(UserError, match="0 texts to train on and 0 held out"):
        NextToken.split([], both)


def test_an_expert_of_a_domain_and_no_step_at_all(compose_cell, headed_model, tmp_path, power_cut):
    """A run on one of two files learns it, ends bit-equal when killed, and has the base's bits per byte before."""
    for name, words in (("sums", WORDS[:5]), ("rows", WORDS[5:])):
        lines = [f"the {a} of the {b} is returned as {c}" for a in words for b in words for c in words[:2]]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    quick = [*quick_stage("next_token", headed_model, tmp_path / "*.txt"), "objective.lr=2e-2", "logging.csv=false"]
    words = [*quick, "objective.held_out_percent=10", "max_length=16"]
    expert = compose_cell("mean", "causal", *words, "objective.domains=[sums]")
    train_run(expert, tmp_path / "whole")
    with power_cut(3):
        train_run(expert, tmp_path / "broken")
    train_run(expert, tmp_path / "broken")
    whole, broken = (load_file(tmp_path / name / ADAPTER) for name in ("whole", "broken"))
    assert all(torch.equal(whole[key], broken[key]) for key in whole)
    trained, resumed = (read_manifest(tmp_path / name) for name in ("whole", "broken"))
    for key in ("held_out", "loss", "predicted_tokens", "domains", "flops", "batch_order_sha256"):
        assert trained[key] == resumed[key], key
    before, after = trained["held_out"]["before"], trained["held_out"]["after"]
    table = (tmp_path / "whole" / HELD_OUT).read_text()
    assert table == (tmp_path / "broken" / HELD_OUT).read_text()
    rows = list(csv.DictReader(table.splitlines()))
    for domain, total in ("sums", after["sums"]), ("rows", after["rows"]):
        sizes = {r["document"]: int(r["bytes"]) for r in rows if r["domain"] == domain}
        bits = sum(float(r["bits_per_byte"]) * sizes[r["document"]] for r in rows if r["domain"] == domain)
        assert bits / sum(sizes.values()) == pytest.approx(total, rel=1e-12)
    assert after.keys() == {"bits per byte", "mean of domains", "sums", "rows"}
    assert after["sums"] < before["sums"]
    held_out = sum(domain["held_out_documents"] for domain in trained["domains"].values())
    assert trained["domains"]["rows"]["windows"] == 0 < trained["domains"]["rows"]["held_out_documents"]
    assert (
        held_out + len(NextToken.split(read_texts(expert["data"], "cache"), compose_cell("mean", "causal", *words))[0])
        == 100
    )

    train_run(compose_cell("mean", "causal", *words, "trainer.max_steps=0"), tmp_path / "base")
    base = read_manifest(tmp_path / "base")
    assert base["held_out"]["after"] == base["held_out"]["before"] == before
    twins = f"['{tmp_path}/whole','{tmp_path}/broken']"  # whatever a router of twins learns, the sum is one expert
    mixture = ["adapter=mixse", "adapter.top_k=null", f"adapter.experts={twins}", "trainer.max_steps=2"]
    for name, start in (("routed", mixture), ("merged", [f"init.lora={twins}", "trainer.max_steps=0"])):
        train_run(compose_cell("mean", "causal", *words, *start), tmp_path / name)
        assert read_manifest(tmp_path / name)["held_out"]["after"] == pytest.approx(after, rel=1e-5)
