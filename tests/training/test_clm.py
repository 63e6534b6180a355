"""Pretraining: packing loses nothing, bits per byte agree with a sum token by token, a tiny recipe learns."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

from training.batches import PackedBatches
from training.pretrain.bpe import EOS, train_bpe
from training.pretrain.model_card import bits_per_byte, unigram_bits_per_byte

DOCUMENTS = [[5, 6, 7], [8], [9, 10, 11, 12], [13, 14]]


def test_an_epoch_is_the_documents_end_to_end():
    packed = PackedBatches(DOCUMENTS, eos=1, length=2, batch=2, seed=0)
    flat = packed.epoch(0).flatten().tolist()
    assert packed.tokens_an_epoch == 14
    assert len(flat) == 12, "what does not fill a batch is left out"
    text = " ".join(map(str, flat))
    assert sum(" ".join(map(str, [*d, 1])) in text for d in DOCUMENTS) >= 3


def test_a_step_is_a_function_of_its_number():
    one, other = (PackedBatches(DOCUMENTS, 1, 2, 2, seed=0) for _ in range(2))
    steps = [one.batch(s) for s in range(9)]
    assert torch.equal(other.batch(8), steps[8])
    assert torch.equal(other.batch(2), steps[2])
    assert any(not torch.equal(PackedBatches(DOCUMENTS, 1, 2, 2, seed=1).batch(s), steps[s]) for s in range(3))


@pytest.fixture(scope="module")
def language_model(small_model):
    torch.manual_seed(0)
    config = LlamaConfig.from_pretrained(small_model)
    return AutoModelForCausalLM.from_config(config).eval(), AutoTokenizer.from_pretrained(small_model)


def test_bits_per_byte_is_the_sum_token_by_token(language_model):
    model, tokenizer = language_model
    texts = ["the sum of two arrays", "a new array", "type"]
    documents = tokenizer(texts, add_special_tokens=False)["input_ids"]
    eos, nats = tokenizer.eos_token_id, 0.0
    for document in documents:
        ids = [*document, eos]
        nats += math.log(model.config.vocab_size)
        for t in range(1, len(ids)):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([ids[:t]])).logits[0, -1].double()
            nats -= float(logits.log_softmax(dim=-1)[ids[t]])
    wanted = nats / math.log(2) / sum(len(t.encode()) for t in texts)
    assert bits_per_byte(model, documents, texts, eos, 64) == pytest.approx(wanted, rel=1e-5)


def test_unigram_is_add_one_smoothed():
    bits = unigram_bits_per_byte([[5, 5, 6]], [[5]], ["xy"], eos=1, vocab=8)
    assert bits == pytest.approx(-(math.log2(3 / 12) + math.log2(2 / 12)) / 2)


def test_bpe_round_trips_any_text():
    tokenizer = train_bpe(["the sum of two arrays"] * 3, 300, 64)
    text = "naïve 数 \t\n 12.5e-3 <|endoftext|>"
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.convert_tokens_to_ids(EOS) not in ids
