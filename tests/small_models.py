"""The decoders that most tests run on, made here with random weights: a Llama and a mixture of experts."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.hub_model import HUB_MODELS, STORIES, write_hub_model

SHAPE = {
    "vocab_size": 320,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,  # large enough that attention patterns differ from uniform
}


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> Path:
    """A folder with a Llama of three layers (random weights) and a BPE tokenizer, in transformers' format."""
    import torch
    from transformers import LlamaConfig, LlamaModel

    from benchmarks.pretrain import train_bpe

    folder = tmp_path_factory.mktemp("model")
    sentence = "the sum of two arrays is returned as a new array with the same shape and type of its first argument"
    words = sentence.split()
    tokenizer = train_bpe([" ".join(words[i:] + words[:i]) for i in range(len(words))], 320, 256)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    LlamaModel(LlamaConfig(**SHAPE, **special, intermediate_size=64)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def small_moe(tmp_path_factory, small_model) -> Path:
    """A folder with an OLMoE of three layers of four experts, two to a token (random), and the same tokenizer."""
    import torch
    from transformers import LlamaConfig, OlmoeConfig, OlmoeModel

    folder = tmp_path_factory.mktemp("moe")
    for file in small_model.glob("*token*"):
        shutil.copy(file, folder)
    torch.manual_seed(0)
    same = LlamaConfig.from_pretrained(small_model)
    special = {name: getattr(same, name) for name in ("pad_token_id", "eos_token_id", "bos_token_id")}
    shape = OlmoeConfig(**SHAPE, **special, intermediate_size=32, num_experts=4, num_experts_per_tok=2)
    OlmoeModel(shape).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def model_folder(small_model, tmp_path_factory) -> Callable[[str], Path]:
    """Return a function: "small", or a name of `HUB_MODELS` -> the folder of that model."""
    made = cache(lambda: write_hub_model(tmp_path_factory.mktemp("hub")))
    return lambda name: {"small": lambda: small_model, "made": made, "stories260K": lambda: STORIES}[name]()


@pytest.fixture(scope="session")
def hub_model(model_folder) -> Path:
    """A decoder in the format of the hub: the real one beside the checkout, or a made one."""
    return model_folder(HUB_MODELS[-1])
