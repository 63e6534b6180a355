"""Parameters against counts written out by hand from published shapes; FLOPs against torch's counter on a real step."""

import pytest
import torch
from transformers import AutoModel, OlmoeConfig

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.adapter import add_lora
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import PRECISIONS, best_device
from encoders.tokens import Tokens
from training.cost import check, empty_encoder, flop_counter, parameters, training_flops
from training.large_batch import ChunkPlan, LargeBatch
from training.set_up import check_devices


def compose(*words: str) -> dict:
    return plain(composed("train", [*words, "check=true", "accelerator=cpu"]))


def decoder(layers: int, hidden: int, key_value: int, inner: int, vocab: int, *, bias: bool) -> int:
    """Parameters of a Llama-like decoder without its language-model head; key_value: width of keys and of values."""
    attention = 2 * hidden * hidden + 2 * hidden * key_value + bias * (hidden + 2 * key_value)
    return vocab * hidden + layers * (attention + 3 * hidden * inner + 2 * hidden) + hidden


def low_rank(layers: int, hidden: int, key_value: int, inner: int, r: int) -> int:
    """Parameters of LoRA on the seven projections: r x (inputs + outputs) each."""
    return layers * r * (2 * (hidden + hidden) + 2 * (hidden + key_value) + 3 * (hidden + inner))


def head(width: int, queries: int, factor: int) -> int:
    """Parameters of queries, two norms, four square projections, and a GEGLU block with its norm."""
    block = 2 * width + width * 2 * factor * width + 2 * factor * width + factor * width * width + width
    return queries * width + 4 * width + 4 * width * width + block


def two_layers(layers: int, *words: str) -> dict[str, int]:
    """The counts of two of the model's layers, which are all alike: the numbers of all follow from `decoder`."""
    assert compose(*words)["model"]["architecture"]["num_hidden_layers"] == layers
    return parameters(empty_encoder(compose(*words, "model.architecture.num_hidden_layers=2")))


def test_mistral_7b():
    found = two_layers(32, "experiment=paper/mistral_7b", "design=model5")
    assert found == {
        "base": decoder(2, 4096, 1024, 14336, 32000, bias=False),
        "adapter": low_rank(2, 4096, 1024, 14336, r=16),
        "head": head(4096, 1, 4) + 2 * 4096,  # one query, as described, and a vector for each layer
    }
    assert decoder(32, 4096, 1024, 14336, 32000, bias=False) == 7_110_660_096
    assert low_rank(32, 4096, 1024, 14336, r=16) == 41_943_040


def test_a_model_on_disk_counts_as_when_it_is_loaded(small_model):
    cfg = compose(f"model.path={small_model}", "pooler=multilayer", "attn=bi", "precision=fp32", "max_length=48")
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    loaded = sum(p.numel() for p in encoder.backbone.parameters())
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    assert parameters(empty_encoder(cfg)) == parameters(encoder)
    assert parameters(encoder)["base"] == loaded


def test_it_is_printed(small_model, capsys):
    sizes = ("max_length=48", "trainer.max_steps=7", "trainer.global_batch_size=32", "objective.hard_negatives=1")
    cfg = compose(f"model.path={small_model}", "pooler=lastlayer", *sizes)
    check(cfg)
    text = capsys.readouterr().out
    assert "7 of 32 examples, at most 672 texts in all" in text
    assert f"base {parameters(empty_encoder(cfg))['base']:,}" in text
    total = training_flops(cfg).of(48 * 7 * 96)
    assert f"at most {total:.3g}" in text
    assert f"at most {total / 0.05e12 / 3600:.2g} h" in text
    check(cfg | {"accelerator": "gpu"})  # on a machine with or without one
    assert f"at most {total / 200e12 / 3600:.2g} h at 200 TFLOP/s on 1 x cuda" in capsys.readouterr().out


def test_a_mixture_that_trains_nothing_has_a_forward_pass_alone(small_model):
    words = (f"model.path={small_model}", "max_length=48", "pooler=mean", "adapter=mixse", "adapter.experts=[one,two]")
    drawn, learned = (training_flops(compose(*words, f"adapter.router={router}")) for router in ("random", "shared"))
    assert drawn.both == drawn.forward == learned.forward < learned.both


def test_more_processes_than_gpus_are_refused_and_any_number_on_a_cpu():
    with pytest.raises(UserError, match=r"trainer.devices=99, but this machine has \d+ GPU"):
        check_devices(99, torch.device("cuda"))
    check_devices(99, torch.device("cpu"))
    with pytest.raises(UserError, match="accelerator=gpu, but torch finds no GPU"):
        best_device("gpu")


@pytest.mark.parametrize("pooler", ["eos", "lastlayer", "multilayer"])
@pytest.mark.parametrize("gradcache", [True, False])
def test_the_count_is_that_of_a_real_step(compose_cell, pooler, gradcache):
    """Of texts of half max_length by torch's counter; one chunk of three keeps its graph."""
    words = [f"trainer.gradcache={gradcache}", "model.attn_implementation=eager", "max_length=40"]
    cfg = compose_cell(pooler, "bi", *words)
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    work = LargeBatch(encoder.train(), build_tokenizer(cfg, 128), ChunkPlan(40, None, gradcache), seed=0)
    rows = work.tokenizer.pairs([("", f"{k} " + "the sum of two arrays " * 6) for k in range(6)])
    rows = [Tokens(r.ids[-20:], r.roles[-20:]) for r in rows]
    run, spared = work.run_tokens(rows)
    assert (run, spared) == (120, 40 if gradcache else 0)
    with flop_counter() as counter:
        work.backward(rows, lambda vectors: vectors.square().sum(), step=0)
    state = torch.get_rng_state()
    assert training_flops(cfg).of(run, spared) == pytest.approx(counter.get_total_flops(), rel=1e-2)
    assert torch.equal(torch.get_rng_state(), state), "counting draws nothing"


def test_a_forward_pass_costs_two_operations_for_each_weight_and_token(compose_cell):
    cfg = compose_cell("eos", "causal")
    numbers = parameters(empty_encoder(cfg))
    embeddings, norms = empty_encoder(cfg).backbone.get_input_embeddings().weight.numel(), 7 * 32
    attention = 2 * 2 * 32 * 3 * cfg["max_length"] // 2  # two products of [T, T] with width 32 in three layers
    weights = numbers["base"] + numbers["adapter"] - embeddings - norms
    assert training_flops(cfg).forward == pytest.approx(2 * weights + attention, rel=1e-3)


@pytest.mark.parametrize("attn", ["bi", "bi_last"])
def test_attention_costs_the_same_whatever_it_sees(compose_cell, attn):
    """tests/contract rests on this, which counts the FLOPs of a pooler's settings once."""
    cfg = compose_cell("multilayer", attn)
    assert training_flops(cfg) == training_flops({**cfg, "attn": {"name": "causal"}})


def test_a_token_pays_for_the_experts_that_it_is_sent_to(compose_cell, tmp_path):
    sizes = {"hidden_size": 32, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 4, "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 64}
    AutoModel.from_config(OlmoeConfig(**sizes, eos_token_id=1)).save_pretrained(tmp_path)
    cfg = compose_cell("eos", "causal", f"model.path={tmp_path}", "lora.targets=[q_proj,v_proj]")
    attention, router, expert, adapter = 4 * 32 * 32, 8 * 32, 3 * 32 * 16, 2 * 2 * 16 * 32
    seen = 2 * 2 * 32 * 2 * cfg["max_length"] // 2
    assert training_flops(cfg).forward == pytest.approx(2 * 2 * (attention + router + 2 * expert + adapter) + seen)
