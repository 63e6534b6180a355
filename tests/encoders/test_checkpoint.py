"""Broken checkpoints are refused by name before anything is trained."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer

from cli.errors import UserError, reading
from encoders.backbone import load_backbone, load_tokenizer
from encoders.tokens import TextTokenizer
from tests.families import EXPERTS, SIZES

FILE = "model.safetensors"


def test_a_full_memory_is_no_damaged_file(tmp_path):
    with pytest.raises(UserError, match=r"CUDA out of memory\. Free memory there\.$"), reading(tmp_path, "Delete it."):
        raise torch.OutOfMemoryError("CUDA out of memory.")


def model_of(folder):
    return {"path": str(folder), "trust_remote_code": False, "sliding_window": False, "attn_implementation": "eager"}


def saved(folder, family, head=False, **settings):
    """A random decoder in `folder`, with or without its language-model head."""
    torch.manual_seed(0)
    auto = AutoModelForCausalLM if head else AutoModel
    auto.from_config(AutoConfig.for_model(family, **{**SIZES, **settings})).save_pretrained(folder)
    return folder


def rewrite(folder, change):
    """Put `change` of the tensors in the place of the tensors."""
    tensors = load_file(folder / FILE)
    save_file(change(tensors), folder / FILE, metadata={"format": "pt"})


def without(part):
    """Tensors without some, or all under a foreign prefix."""
    prefix = part if part.endswith("model.") else ""
    return lambda tensors: {prefix + k: v for k, v in tensors.items() if prefix or part not in k}


@pytest.mark.parametrize(
    ("family", "part", "message"),
    [
        (
            "llama",
            "base_model.model.",
            r"lack 29 tensors of LlamaModel: embed_tokens.weight, .* hold base_model.model.",
        ),
        ("llama", "layers.1.", r"lack 9 tensors of LlamaModel: layers.1.input_layernorm.weight, "),
        ("qwen2_moe", "layers.1.mlp.experts.2.", r"experts.down_proj \[3, 32, 48\], not \[4, 32, 48\]"),
        ("qwen2_moe", "layers.1.mlp.experts.2.up_proj", "cannot be loaded"),
    ],
)
def test_a_missing_tensor_or_a_foreign_prefix_is_refused_and_named(tmp_path, family, part, message):
    saved(tmp_path, family, **(EXPERTS if "moe" in family else {}))
    rewrite(tmp_path, without(part))
    with pytest.raises(UserError, match=message):
        load_backbone(model_of(tmp_path), torch.float32)


@pytest.mark.parametrize("head", [False, True])
def test_what_lies_in_the_decoder_and_has_no_place_is_refused(tmp_path, head):
    """A layer more than config.json says, or a tensor that its family has not. Parts beside the decoder may stay."""
    saved(tmp_path, "llama", head)
    prefix = "model." if head else ""
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    with pytest.raises(UserError, match=rf"without a place in LlamaModel .*: {prefix}layers.2.input.* \(9 in all"):
        load_backbone(model_of(tmp_path), torch.float32)
    (tmp_path / "config.json").write_text(json.dumps(config))
    beside = {"score.weight": torch.ones(2, 32), "mtp.layers.0.eh_proj.weight": torch.ones(2, 2)}
    old = {f"{prefix}layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}
    rewrite(tmp_path, lambda tensors: tensors | beside | old)
    load_backbone(model_of(tmp_path), torch.float32)
    rewrite(tmp_path, lambda tensors: tensors | {f"{prefix}layers.0.self_attn.q_norm.weight": torch.ones(8)})
    with pytest.raises(UserError, match=r"without a place in LlamaModel .*q_norm.weight"):
        load_backbone(model_of(tmp_path), torch.float32)


def test_other_shapes_and_a_cut_file_are_refused(tmp_path):
    saved(tmp_path, "llama")
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(json.dumps({**json.loads(config), "intermediate_size": 64}))
    with pytest.raises(UserError, match=r"mlp.down_proj.weight \[32, 48\], not \[32, 64\]"):
        load_backbone(model_of(tmp_path), torch.float32)
    (tmp_path / "config.json").write_text(config)
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:4000])
    with pytest.raises(UserError, match="cannot be loaded"):
        load_backbone(model_of(tmp_path), torch.float32)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_weight_that_is_not_finite_is_named(tmp_path, value):
    saved(tmp_path, "llama")
    rewrite(
        tmp_path, lambda t: {k: x.index_fill(0, torch.tensor([5]), value) if "embed" in k else x for k, x in t.items()}
    )
    with pytest.raises(UserError, match=r"hold NaN or infinity in embed_tokens.weight \(1 in all\)"):
        load_backbone(model_of(tmp_path), torch.float32)


def test_an_adapter_beside_the_weights_is_refused(tmp_path):
    """transformers would add it to the weights by itself, and nothing would say so."""
    from peft import LoraConfig, get_peft_model

    backbone = load_backbone(model_of(saved(tmp_path, "llama")), torch.float32)
    get_peft_model(backbone, LoraConfig(target_modules=["q_proj"], init_lora_weights=False)).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="holds an adapter beside its weights"):
        load_backbone(model_of(tmp_path), torch.float32)


def test_a_folder_without_tokenizer_files_is_refused(tmp_path, small_model):
    """transformers makes a tokenizer without words there: every text was [unknown, EOS]."""
    for family in ("qwen2", "llama"):
        folder = saved(tmp_path / family, family, vocab_size=320)
        with pytest.raises(UserError, match=r"Put tokenizer.json and tokenizer_config.json there"):
            load_tokenizer(model_of(folder))
        for file in small_model.glob("*token*"):
            shutil.copy(file, folder)
        assert len(load_tokenizer(model_of(folder))("the sum of two arrays")["input_ids"]) > 1


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ({"plain": ["pooling"]}, r"was given 'pooling' \(320\), and the model has embeddings for 320 tokens"),
        ({"additional_special_tokens": ["<q>"]}, r"was given '<q>' \(320\).* Resize them"),
        ({"pad_token": "[PADDING]"}, r"was given '\[PADDING\]' \(320\).* as the pad token take one that is there"),
        ({"image_token": "<image>"}, None),
    ],
)
def test_a_token_beyond_the_embeddings_is_refused_and_named(tmp_path, small_model, tokens, message):
    """Those of images may lie there, as in Gemma 3: no text is split into them."""
    folder = shutil.copytree(small_model, tmp_path / "model")
    images = {"extra_special_tokens": tokens} if "image_token" in tokens else {}
    tokenizer = AutoTokenizer.from_pretrained(folder, **images)
    tokenizer.add_tokens(tokens.get("plain", []))
    tokenizer.add_special_tokens({key: word for key, word in tokens.items() if key not in {"plain", "image_token"}})
    assert len(tokenizer) == 321
    tokenizer.save_pretrained(folder)
    if message is None:
        assert max(TextTokenizer(load_tokenizer(model_of(folder)), 64)(["an <image>"])[0].ids) < 320
        return
    with pytest.raises(UserError, match=message):
        load_tokenizer(model_of(folder))


def test_a_family_that_transformers_has_not_is_refused_and_no_code_is_run(tmp_path):
    """DeepSeek-MoE of the first version: its repository brings code, which is executed on request alone."""
    saved(tmp_path, "llama")
    config = json.loads((tmp_path / "config.json").read_text()) | {"model_type": "deepseek"}
    config["auto_map"] = {"AutoConfig": "code.Config", "AutoModel": "code.Model"}
    (tmp_path / "code.py").write_text("raise SystemExit('executed')")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"has no code for the family of .* model.trust_remote_code=true"):
        load_backbone(model_of(tmp_path), torch.float32)
