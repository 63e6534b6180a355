"""The check without weights, against counts written out by hand from the published shapes."""

import pytest
import torch

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.backbone import empty_backbone
from encoders.loading import build_encoder
from encoders.lora import add_lora
from encoders.precision import PRECISIONS
from training.cost.check import Facts, check, described, facts
from training.set_up import check_devices

SEVEN = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


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


def two_layers(layers: int, *words: str) -> Facts:
    """The counts of two of the model's layers, which are all alike: the numbers of all follow from `decoder`."""
    assert compose(*words)["model"]["architecture"]["num_hidden_layers"] == layers
    return facts(compose(*words, "model.architecture.num_hidden_layers=2"))


def test_mistral_7b():
    f = two_layers(32, "experiment=paper/mistral_7b", "design=model5")
    assert f.base == decoder(2, 4096, 1024, 14336, 32000, bias=False)
    assert decoder(32, 4096, 1024, 14336, 32000, bias=False) == 7_110_660_096
    assert f.adapter == low_rank(2, 4096, 1024, 14336, r=16)
    assert low_rank(32, 4096, 1024, 14336, r=16) == 41_943_040
    assert f.head == head(4096, 1, 4) + 2 * 4096, "one query, as described, and a vector for each layer"
    assert f.base_bytes == 2 * f.base
    assert (f.layers, f.embedding_dim, f.dtype) == (2, 4096, torch.float32)
    assert [set(t) for t in f.targets] == [SEVEN] * 2
    assert (f.rows, f.chunk, f.chunks) == (4096, (8, 512), 512), "queries and positives, in-batch negatives alone"


def test_qwen2_0_5b():
    f = two_layers(24, "experiment=paper/qwen2_0_5b", "design=model2")
    assert f.base == decoder(2, 896, 128, 4864, 151_936, bias=True)
    assert decoder(24, 896, 128, 4864, 151_936, bias=True) == 494_032_768
    assert f.adapter == low_rank(2, 896, 128, 4864, r=16)
    assert f.head == head(896, 1, 4)
    assert (f.layers, f.embedding_dim) == (2, 896)


def test_the_five_cells_of_the_paper_differ_in_the_head_alone():
    """On two of the 24 layers."""
    words = ["experiment=paper/qwen2_0_5b", "model.architecture.num_hidden_layers=2"]
    made = [facts(compose(*words, f"design=model{n}")) for n in (1, 3, 5)]
    assert len({(f.base, f.adapter, f.chunks) for f in made}) == 1
    assert [f.head for f in made] == [0, head(896, 1, 4) + 2 * 896, head(896, 1, 4) + 2 * 896]


def test_a_model_on_disk_counts_as_when_it_is_loaded(small_model):
    cfg = compose(f"model.path={small_model}", "pooler=multilayer", "attn=bi", "precision=fp32", "max_length=48")
    f = facts(cfg)
    encoder = build_encoder(cfg, PRECISIONS["fp32"], torch.device("cpu"))
    loaded = sum(p.numel() for p in encoder.backbone.parameters())
    add_lora(encoder.backbone, cfg["lora"], seed=0)
    assert f.base == loaded
    assert f.adapter == sum(p.numel() for p in encoder.backbone.parameters() if p.requires_grad)
    assert f.head == sum(p.numel() for p in encoder.pooler.parameters())


def test_what_autograd_keeps_grows_with_the_chunk(small_model):
    words = [f"model.path={small_model}", "precision=fp32", "max_length=32"]
    one, two = (facts(compose(*words, f"token_budget={n}")).saved_bytes for n in (256, 512))
    assert 1.9 < two / one < 2.1


def test_the_published_shape_is_used_for_its_own_model_only(small_model):
    model = compose("model=mistral_7b", f"model.path={small_model}")["model"]
    assert empty_backbone(model, torch.float32).config.hidden_size == 32


def test_windows_are_taken_out_unless_asked_for():
    cut = compose("model=mistral_7b")["model"]
    assert empty_backbone(cut, torch.bfloat16).config.sliding_window is None
    assert empty_backbone({**cut, "sliding_window": True}, torch.bfloat16).config.sliding_window == 4096


def test_sizes_of_the_head_can_be_overridden_one_by_one():
    words = ["experiment=paper/qwen2_0_5b", "model.architecture.num_hidden_layers=2"]
    cfg = compose(*words, "pooler=lastlayer", "pooler.num_queries=8")
    assert (cfg["pooler"]["num_queries"], cfg["pooler"]["num_heads"]) == (8, 32)
    assert facts(cfg).head == head(896, 8, 4)


def test_it_is_printed(small_model, capsys):
    sizes = ("max_length=48", "trainer.max_steps=7", "trainer.global_batch_size=32", "objective.hard_negatives=1")
    check(compose(f"model.path={small_model}", "pooler=lastlayer", *sizes))
    text = capsys.readouterr().out
    assert "7 of 32 queries (96 texts): 224 examples seen" in text
    assert "down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj in 3 layers" in text
    assert "32 dimensions, torch.float32" in text


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("max_length=4096", "max_length=4096 is more than the 128 positions"),
        ("lora.targets=[w_q]", "lora.targets names"),
    ],
)
def test_what_would_stop_the_run_stops_the_check(small_model, word, message):
    with pytest.raises(UserError, match=message):
        check(compose(f"model.path={small_model}", "pooler=lastlayer", word))


def test_more_processes_than_gpus_are_refused_and_any_number_on_a_cpu():
    with pytest.raises(UserError, match=r"trainer.devices=99, but this machine has \d+ GPU. Lower trainer.devices"):
        check_devices(99, torch.device("cuda"))
    check_devices(99, torch.device("cpu"))
    with pytest.raises(UserError, match="accelerator=gpu, but torch finds no GPU"):
        check_devices(1, torch.device("cpu"), "gpu")


def test_a_head_s_memory_is_that_of_the_chunk_of_most_texts(small_model):
    words = [f"model.path={small_model}", "precision=fp32", "max_length=32", "pooler=lastlayer", "head.num_queries=64"]
    words += ["token_budget=256", "objective.hard_negatives=1", "trainer.gradcache=true"]
    cfg = compose(*words)
    free, bound = facts(cfg), facts(compose(*words, "trainer.chunk_size=8"))
    assert (free.chunk, free.crowd) == ((8, 32), (16, 16))
    assert bound.crowd == (8, 32)
    assert bound.crowd_bytes == bound.saved_bytes < free.crowd_bytes
    text = dict(described(cfg, free))["memory"]
    assert f"about {free.crowd_bytes / 2**30:.2f} GiB" in text
    assert facts(compose(*words[:3])).crowd_bytes == 0, "nothing of a pooler without parameters is kept"
