"""A model written as GGUF by another library comes back as a folder with the same weights and tokens."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from benchmarks.from_gguf import convert, main
from cli.errors import UserError
from encoders.backbone import model_path

NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
WORDS = ["<s>", "</s>", *"abcdefgh", "ab", "cd", "Ġ", "Ġab"]


def interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp turns neighbouring pairs, transformers turns halves."""
    return weight.reshape(heads, 2, len(weight) // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


@pytest.fixture
def written(tmp_path: Path) -> tuple[LlamaForCausalLM, Path]:
    gguf = pytest.importorskip("gguf")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model, writer = LlamaForCausalLM(config), gguf.GGUFWriter(tmp_path / "tiny.gguf", "llama")
    for name, value in {
        "block_count": 2, "context_length": 64, "embedding_length": 32, "feed_forward_length": 64, "head_count": 4,
        "head_count_kv": 2, "layer_norm_rms_eps": config.rms_norm_eps, "vocab_size": len(WORDS), "rope_freq_base": 1e4,
        "rope_dimension_count": 8,
    }.items():  # fmt: skip
        getattr(writer, f"add_{name}")(value)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_merges(["a b", "c d", "Ġ ab"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    for name, tensor in model.state_dict().items():
        array, part = tensor.numpy(), name.removeprefix("model.").removesuffix(".weight")
        if part.startswith("layers."):
            _, layer, inner = part.split(".", 2)
            array = (
                interleaved(array, {"q_proj": 4, "k_proj": 2}[inner[-6:]])
                if inner[-6:] in ("q_proj", "k_proj")
                else array
            )
            part = f"blk.{layer}.{NAMES[inner]}"
        part = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}.get(part, part)
        writer.add_tensor(f"{part}.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model, tmp_path / "tiny.gguf"


def test_weights_and_tokens_come_back(written: tuple[LlamaForCausalLM, Path], tmp_path: Path) -> None:
    model, file = written
    main([str(file), f"to={tmp_path / 'folder'}"])
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "folder")
    ids = torch.tensor([[0, 10, 11, 13, 4]])
    assert torch.equal(back(ids).logits, model.eval()(ids).logits)
    assert AutoTokenizer.from_pretrained(tmp_path / "folder").tokenize("abcd ab") == ["ab", "cd", "Ġab"]
    with pytest.raises(UserError, match="is there"):
        convert(file, tmp_path / "folder")


def test_what_is_no_gguf_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF no more")
    with pytest.raises(UserError, match=r"broken\.gguf cannot be read"):
        convert(tmp_path / "broken.gguf", tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.gguf"]


def test_a_base_is_a_folder() -> None:
    with pytest.raises(UserError, match=r"benchmarks\.from_gguf"):
        model_path("models/a.gguf")
