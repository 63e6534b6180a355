"""Writing by the bundled base: filters and ranks against brute force; the same seed, the same bytes."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from cli.compose import HOME, composed, plain
from cli.errors import UserError
from corpora.triples import Triple, read_triples
from tests.triples import write_triples
from training.specialise.command import Sieve, Specialising, ranks, run
from training.specialise.generator import Generator, group, prompt_of, seed_examples, shown

FEW = ["pairs=4", "block=4", "attempts=3", "examples=3", "example_words=6", "query_tokens=12", "answer_tokens=12"]
FEW += ["precision=fp32", "accelerator=cpu", "max_length=48", "pooler=mean", "top=12"]
FEW += ["query_words=3", "answer_words=2", "temperature=1.0", "task='What a function does.'"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Thirty triples, the last two with an instruction."""
    path = write_triples(tmp_path_factory.mktemp("seeds") / "seeds.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [*rows[:-2], *({**row, "instruction": "find it"} for row in rows[-2:])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def words(pairs):
    return ["data=jsonl", f"data.path='{pairs}'", *FEW]


@pytest.fixture(scope="module")
def whole(words, tmp_path_factory):
    """(work with all its records, facts, file) of a writing without a break."""
    out, works = tmp_path_factory.mktemp("written") / "new.jsonl", []
    with pytest.MonkeyPatch.context() as patch:
        real = Specialising.close
        patch.setattr(Specialising, "close", lambda self: works.append(self) or real(self))
        facts = run(settings(words, out))
    return works[0], facts, out


def settings(words, out):
    return plain(composed("specialise", [*words, f"out='{out}'"]))


def test_the_most_probable_text_is_transformers_own():
    """Prompts of several lengths in one batch against `generate` on each alone."""
    model = plain(composed("specialise"))["model"]
    generator = Generator(model, "fp32", "cpu")
    prompts = ["Query: the sum", "Return the mean of an array.\n\nQuery: Return", "Query: a\nAnswer: b\n\nQuery:"]
    found = generator.continued([generator.ids(p) for p in prompts], 24, 0, temperature=1.0, top_p=1e-9)
    folder = HOME / model["path"]
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for prompt, text in zip(prompts, found, strict=True):
        ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        new = theirs.generate(**ids, max_new_tokens=24, do_sample=False)[0, ids["input_ids"].shape[1] :]
        whole = tokenizer.decode(new, skip_special_tokens=True)
        ended = "\n" in whole or tokenizer.eos_token_id in new
        assert text == (whole.partition("\n")[0].strip() if ended else None)
    assert any(found), "or none is seen to end"


def test_the_sieve_on_pairs_made_for_it():
    settings = {"query_words": 2, "answer_words": 1, "copies": 0.5}
    sieve = Sieve([Triple("a red house by the sea", "it stands there")], settings)
    assert [sieve.whole(text, side) for text, side in ((None, 0), ("one", 0), ("one", 1))] == [False, False, True]
    judged = [("A red house, by the sea!", "new"), ("new query", "New, query"), ("new query", "ok"), ("other", "OK")]
    assert [sieve.passes(*pair) for pair in judged] == [False, False, True, False]


def test_ranks_are_those_of_counting():
    vectors = torch.nn.functional.normalize(torch.randn(2, 40, 8, generator=torch.Generator().manual_seed(1)), dim=-1)
    cosines = vectors[0].numpy() @ vectors[1].numpy().T
    counted = [1 + sum(other > row[i] for other in row) for i, row in enumerate(cosines)]
    assert ranks(*vectors, block=7).tolist() == counted
    assert ranks(vectors[0], vectors[1, :1].expand(40, -1)).tolist() == [1] * 40
    assert ranks(vectors[0, :0], vectors[1, :0]).tolist() == []


def test_what_is_written_can_be_trained_on(whole, words):
    work, facts, out = whole
    data = {**settings(words, out)["data"], "path": str(out)}
    triples, rows = read_triples(data, ""), [json.loads(line) for line in out.read_text().splitlines()]
    assert [(t.query, t.positive, t.source) for t in triples] == [(r["query"], r["positive"], "jsonl") for r in rows]
    assert len(triples) == facts["kept"] > 0
    assert json.loads(out.with_name("new.jsonl.json").read_text()) == facts
    for row in rows:
        record, _ = work.prompt(row["record"])
        assert {key: row[key] for key in record} == record, "made again from its number alone"
    seeds = read_triples({**data, "path": f"{out}.seeds.jsonl"}, "")
    assert [(t.query, t.positive) for t in seeds] == [(t.query, t.positive) for t in work.seeds]


def test_the_same_seed_writes_the_same_bytes_and_no_file_twice(whole, words, tmp_path):
    _, facts, out = whole
    cfg = settings(words, tmp_path / "new.jsonl")
    assert run(cfg) == facts
    assert (tmp_path / "new.jsonl").read_bytes() == out.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.jsonl", "new.jsonl.json", "new.jsonl.seeds.jsonl"]
    with pytest.raises(UserError, match=r"new.jsonl is there. Delete it, or choose another out="):
        run(cfg)
    other = settings([*words, "seed=1"], tmp_path / "other.jsonl")
    run(other)
    assert (tmp_path / "other.jsonl").read_bytes() != out.read_bytes()


def test_no_file_is_written_where_no_pair_is_kept(words, tmp_path):
    out = tmp_path / "new.jsonl"
    with pytest.raises(UserError, match=r"No pair of 12 that were written is kept: 12 are unfinished, short or copies"):
        run(settings([*words, "query_words=999"], out))
    assert not list(tmp_path.iterdir())


def test_seeds_are_of_the_training_part_and_prompts_of_one_group():
    labels = [((f"l{i % 2}",), (f"l{i % 2}",), ("l2",)) for i in range(60)]
    every = [Triple(f"q{i}", f"a{i}", source=f"s/{i % 3}", labels=labels[i]) for i in range(60)]
    cfg = {"data": {"name": "classes", "validation": 6}, "seeds": 40, "source": None, "seed": 0}
    held_out = {f"q{i}" for i in range(0, 60, 10)}
    seeds = seed_examples(every, cfg)
    assert len(seeds) == 40
    assert not held_out & {t.query for t in seeds}
    assert {t.source for t in seed_examples(every, {**cfg, "source": "s/1"})} == {"s/1"}
    assert seed_examples(every, {**cfg, "seeds": 60}) == every, "no more than are asked for: whole"
    for k in range(20):
        examples = shown(seeds, np.random.default_rng(k), 3)
        assert (len({t.query for t in examples}), len({group(t) for t in examples})) == (3, 1)
    example = Triple("a  b\nc", "x y z", instruction="find it")
    words = {"query_name": "Q", "answer_name": "A", "example_words": 2}
    for task, first in ((None, "find it\n\n"), ("Do.", "Do.\n\n"), ("", "")):
        assert prompt_of([example] * 2, {**words, "task": task}) == f"{first}Q: a b\nA: x y\n\nQ: a b\nA: x y\n\nQ:"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["out=new.csv"], r"out=new\.csv must be a file that ends with \.jsonl"),
        (["source=here"], "There is no source 'here' in data=jsonl"),
        (["query_tokens=1000"], r"A prompt of one example has \d+ tokens, and -?\d+ are left of the model's 1024"),
    ],
)
def test_what_cannot_be_written_is_one_line(words, tmp_path, more, message):
    with pytest.raises(UserError, match=message):
        run(plain(composed("specialise", [*words, f"out='{tmp_path / 'new.jsonl'}'", *more])))
