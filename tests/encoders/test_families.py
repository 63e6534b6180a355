"""Every decoder family of the study: the attention switch holds, padding has no effect, LoRA finds its layers."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.adapter import add_lora
from encoders.attention.pattern import pattern_of
from encoders.attention.probe import probe
from encoders.attention.switch import parts, set_attention
from encoders.backbone import load_backbone
from encoders.encoder import Encoder
from encoders.tokens import Batch
from poolers.shared.base import EOS, PAD, TEXT
from poolers.shared.registry import build_pooler
from tests.families import EXPERTS, FAMILIES, OLD, SIZES, TARGETS, save


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    save(request.param, path)
    return path


def loaded(folder, attn, *overrides):
    cfg = plain(composed("train", [f"attn={attn}", "pooler=multilayer", *overrides]))
    cfg["model"]["path"] = str(folder)
    backbone = load_backbone(cfg["model"], torch.float32)
    set_attention(backbone, pattern_of(cfg["attn"]))
    return backbone, cfg


@pytest.mark.parametrize("attn", ["causal", "bi_last", "bi"])
def test_switch_padding_and_lora(folder, attn):
    backbone, cfg = loaded(folder, attn)
    probe(backbone, pattern_of(cfg["attn"]))
    pooler = build_pooler(cfg["pooler"], 32, len(parts(backbone)[0]), seed=0)
    encoder = Encoder(backbone, pooler, normalize=True, compute=torch.float32).eval()
    ids = torch.randint(3, 160, (3, 12), generator=torch.Generator().manual_seed(1))
    lengths = [12, 7, 2]
    with torch.no_grad():
        together = encoder(batch_of(ids, lengths, 12))
        alone = torch.cat([encoder(batch_of(ids[i : i + 1], [n], n)) for i, n in enumerate(lengths)])
    assert (together - alone).abs().max() < 5e-6
    targets = TARGETS.get(backbone.config.model_type, ["q_proj", "v_proj"])
    lora = add_lora(backbone, {**cfg["lora"], "targets": targets, "dropout": 0.0}, seed=0)
    adapted = {n for n, p in backbone.named_parameters() if p.requires_grad}
    assert len(adapted) == 3 * 2 * 2
    for name, parameter in backbone.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        moved, trained = encoder(batch_of(ids, lengths, 12)), encoder.train()(batch_of(ids, lengths, 12))
        encoder.backbone = lora.eval().merge_and_unload()
        merged = encoder.eval()(batch_of(ids, lengths, 12))
    assert torch.equal(moved, trained), "the base's own dropout is off"
    assert (moved - together).abs().max() > 1e-3
    assert (merged - moved).abs().max() < 2e-5


@pytest.mark.parametrize("attn", ["causal", "bi_last", "bi"])
def test_without_padding_as_with_it(folder, attn):
    """States of every layer, each family that takes its texts as one row."""
    kernels = ["model.attn_implementation=eager", "model.attn_implementation=unpadded"]
    if folder.name.startswith(("gemma3", "gpt", "phi", "opt", "persimmon")):
        with pytest.raises(UserError, match="not made for"):
            loaded(folder, attn, kernels[1])
        return
    ids = torch.randint(3, 160, (4, 12), generator=torch.Generator().manual_seed(1))
    batch = batch_of(ids, [5, 12, 2, 7], 12)
    states = []
    for kernel in kernels:
        backbone, cfg = loaded(folder, attn, kernel)
        pooler = build_pooler(cfg["pooler"], 32, 3, seed=0)
        encoder = Encoder(backbone, pooler, normalize=True, compute=torch.float32).eval()
        with torch.no_grad():
            states.append(encoder.each_layer(batch, range(3), lambda _, hidden: hidden[batch.view.real]))
    for padded, row in zip(*states, strict=True):
        assert (padded - row).abs().max() < 5e-6 * padded.abs().max()


def batch_of(ids, lengths, width):
    roles = torch.full((len(lengths), width), PAD)
    for i, n in enumerate(lengths):
        roles[i, : n - 1], roles[i, n - 1] = TEXT, EOS
    positions = torch.arange(width).repeat(len(lengths), 1)
    return Batch(ids[:, :width].masked_fill(roles == PAD, 0), roles, positions * (roles != PAD))


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "phi", "bloom", "mpt"])
def test_a_family_with_other_names_than_llama_s_is_refused_with_the_targets_that_train(family):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 160}
    lora, backbone = plain(composed("train").lora), AutoModel.from_config(AutoConfig.for_model(family, **sizes))
    with pytest.raises(UserError, match=r"not in this model\. Give lora\.targets=\[.*\]\.") as refused:
        add_lora(backbone, lora, 0)
    targets = str(refused.value).partition("Give lora.targets=[")[2].partition("]")[0].split(",")
    add_lora(backbone, {**lora, "targets": targets}, 0)
    adapted = {name.split(".lora_")[0] for name, p in backbone.named_parameters() if ".lora_" in name}
    assert len({name.split(".")[-1] for name in adapted}) == len(targets) > 2


def test_experts_that_peft_does_not_adapt_with_dropout_are_refused():
    """Shared experts are linear layers, those of the router one tensor of the same name."""
    sizes = {**SIZES, **EXPERTS, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_key_value_heads": 4}
    backbone = AutoModel.from_config(AutoConfig.for_model("glm4_moe", **sizes))
    lora = plain(composed("train").lora)
    with pytest.raises(UserError, match=r"PEFT refuses .* or give lora\.dropout=0\."):
        add_lora(backbone, {**lora, "dropout": 0.1}, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_read_straight_onto_a_device_is_the_same_bit_by_bit(folder, dtype):
    """The way a GPU takes, onto the CPU here: parameters, and buffers that no file holds."""
    _, cfg = loaded(folder, "bi")
    usual = load_backbone(cfg["model"], dtype)
    straight = load_backbone(cfg["model"], dtype, device=torch.device("cpu"))
    one, other = (dict([*b.named_parameters(), *b.named_buffers()]) for b in (usual, straight))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) and one[name].dtype is other[name].dtype for name in one)


@pytest.mark.parametrize(
    ("family", "attn", "message"),
    [
        ("t5", "causal", "T5Model is no decoder of 3 layers in a row"),
        ("bloom", "bi_last", "attn=bi_last cannot switch single layers of BloomModel"),
        ("mpt", "bi", "MptModel does not run with attn=bi and eager"),
        ("mamba", "bi", "attn=bi does not hold for MambaModel"),
        ("recurrent_gemma", "bi", "attn=bi does not hold for RecurrentGemmaModel"),  # a hybrid
    ],
)
def test_what_cannot_be_shown_to_work_is_refused_in_one_line(tmp_path, family, attn, message):
    settings = {**{k: v for k, v in SIZES.items() if k not in OLD}, "initializer_range": 0.02}
    AutoModel.from_config(AutoConfig.for_model(family, **settings)).save_pretrained(tmp_path)
    with pytest.raises(UserError, match=message):
        backbone, cfg = loaded(tmp_path, attn, "model.attn_implementation=eager")
        probe(backbone, pattern_of(cfg["attn"]))


@pytest.mark.parametrize("family", ["llama", "gemma3_text"])
def test_longrope_is_refused_where_the_longest_text_of_a_batch_would_decide_about_all(tmp_path, family):
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "rope_theta": 10000.0}
    rope |= {"original_max_position_embeddings": 10}
    by_type = {"full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    save(family, tmp_path, rope_parameters=rope if family == "llama" else by_type)
    backbone, cfg = loaded(tmp_path, "bi")
    probe(backbone, pattern_of(cfg["attn"]), longest=10)
    with pytest.raises(UserError, match="Give max_length=10"):
        probe(backbone, pattern_of(cfg["attn"]), longest=11)


@pytest.mark.parametrize(("family", "attn"), [("bloom", "causal"), ("bloom", "bi"), ("mpt", "causal")])
def test_a_family_whose_configuration_names_no_positions(tmp_path, family, attn):
    """ALiBi: the biases by distance take any length, MPT's up to max_seq_len; padding on either side moves nothing."""
    sizes = {key: SIZES[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")}
    AutoModel.from_config(AutoConfig.for_model(family, **sizes)).save_pretrained(tmp_path)
    backbone, cfg = loaded(tmp_path, attn)
    probe(backbone, pattern_of(cfg["attn"]), longest=cfg["max_length"])
    assert backbone.config.max_position_embeddings == {"bloom": 2**20, "mpt": 2048}[family]
    encoder = Encoder(backbone, torch.nn.Identity(), True, torch.float32).eval()
    ids = torch.randint(3, 160, (1, 7), generator=torch.Generator().manual_seed(1))
    right = batch_of(torch.cat([ids, ids[:, :5]], dim=1), [7], 12)
    left = Batch(*(x.roll(5, dims=1) for x in (right.input_ids, right.roles, right.position_ids)))
    with torch.no_grad():
        alone, *padded = (encoder.run_backbone(b)[b.view.real] for b in (batch_of(ids, [7], 7), right, left))
    assert all((states - alone).abs().max() < 2e-5 for states in padded)


def test_layers_that_are_not_passed_in_order_are_refused(tmp_path):
    """A decoder that adds something between its layers: no hook of a layer sees what the next one reads."""
    AutoModel.from_config(AutoConfig.for_model("llama", **SIZES)).save_pretrained(tmp_path)
    backbone, cfg = loaded(tmp_path, "causal", "model.attn_implementation=eager")
    probe(backbone, pattern_of(cfg["attn"]))
    backbone.layers[1].register_forward_pre_hook(lambda _, args: (args[0] * 2, *args[1:]))
    with pytest.raises(UserError, match="do not pass through 3 layers and one norm in a row"):
        probe(backbone, pattern_of(cfg["attn"]))
