"""The shapes of conf/model against numbers of parameters that others published."""

import mteb
import pytest
import torch

from cli.compose import composed, plain
from encoders.backbone import empty_backbone

LORA = 16  # rank of LLM2Vec's adapters, on every projection of a layer; mteb counts them with the base
# conf/model -> model of mteb on that base, rank of the adapter counted with it, rows of the base's vocabulary not in it
OF_MTEB = {
    "sheared_llama_1_3b": ("McGill-NLP/LLM2Vec-Sheared-LLaMA-mntp-supervised", LORA, 0),
    "llama2_7b": ("McGill-NLP/LLM2Vec-Llama-2-7b-chat-hf-mntp-supervised", LORA, 0),
    "llama3_8b": ("McGill-NLP/LLM2Vec-Meta-Llama-3-8B-Instruct-mntp-supervised", LORA, 0),
    "mistral_7b_instruct": ("McGill-NLP/LLM2Vec-Mistral-7B-Instruct-v2-mntp-supervised", LORA, 0),
    "mistral_7b": ("Salesforce/SFR-Embedding-Mistral", 0, 0),
    "qwen3_0_6b": ("Qwen/Qwen3-Embedding-0.6B", 0, 267),
}


@pytest.mark.parametrize("name", OF_MTEB)
def test_parameters_are_those_of_the_published_model(name):
    model, rank, fewer = OF_MTEB[name]
    decoder = empty_backbone(plain(composed("train", [f"model={name}"]))["model"], torch.bfloat16)
    linear = [module for module in decoder.modules() if isinstance(module, torch.nn.Linear)]
    ours = decoder.num_parameters() + rank * sum(module.in_features + module.out_features for module in linear)
    ours -= fewer * decoder.config.hidden_size
    assert ours == mteb.get_model_meta(model).n_parameters


def test_gemma_3_has_its_billion():
    """As config.json of the hub's google/gemma-3-1b-pt describes it; its windows are widened, not taken out."""
    decoder = empty_backbone(plain(composed("train", ["model=gemma3_1b"]))["model"], torch.bfloat16)
    assert decoder.num_parameters() == 999_885_952
    assert decoder.config.sliding_window > decoder.config.max_position_embeddings
    assert set(decoder.config.layer_types) == {"sliding_attention", "full_attention"}
