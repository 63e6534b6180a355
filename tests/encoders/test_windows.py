"""What bi and causal mean where layers have windows or chunks: the whole text, whatever its length, or an error."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from cli.errors import UserError
from encoders.attention.pattern import pattern_of
from encoders.attention.probe import probe
from tests.encoders.test_families import loaded
from tests.families import SIZES

WINDOW = 8
FAMILIES = {
    "mistral": {"sliding_window": WINDOW},
    "qwen2": {"sliding_window": WINDOW, "use_sliding_window": True, "max_window_layers": 1},
    "gemma2": {"sliding_window": WINDOW, "query_pre_attn_scalar": 8},
    "gemma3_text": {"sliding_window": WINDOW, "query_pre_attn_scalar": 8},
    "llama4_text": {
        **{"attention_chunk_size": WINDOW, "num_local_experts": 2, "intermediate_size_mlp": 48},
        "no_rope_layers": [1, 1, 0],
    },
}


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request, tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp(request.param)
    config = AutoConfig.for_model(request.param, **{**SIZES, **FAMILIES[request.param]})
    AutoModel.from_config(config).save_pretrained(path)
    return path


def windowed(folder, attn, window):
    backbone, cfg = loaded(folder, attn, f"model.sliding_window={window}", "model.attn_implementation=eager")
    return backbone, pattern_of(cfg["attn"])


@pytest.mark.parametrize("attn", ["causal", "bi_last", "bi"])
def test_a_window_longer_than_the_short_text_is_found(folder, attn):
    backbone, pattern = windowed(folder, attn, "true")
    with pytest.raises(UserError, match=f"attn={attn}.* does not hold"):
        probe(backbone, pattern)


@pytest.mark.parametrize("attn", ["causal", "bi_last", "bi"])
def test_without_windows_every_layer_sees_all(folder, attn):
    """Against gradients: the last token's state of every layer with respect to the first one's input of that layer."""
    backbone, pattern = windowed(folder, attn, "false")
    probe(backbone, pattern)
    inputs = []

    def cut(_layer, args):
        inputs.append(args[0].detach().requires_grad_(True))
        return inputs[-1], *args[1:]

    outputs = []
    for layer in backbone.layers:
        layer.register_forward_pre_hook(cut)
        layer.register_forward_hook(lambda _m, _a, out: outputs.append(out[0] if isinstance(out, tuple) else out))
    backbone(input_ids=torch.arange(3, 3 + 4 * WINDOW)[None], use_cache=False)
    for given, out in zip(inputs, outputs, strict=True):
        (gradient,) = torch.autograd.grad(out[0, -1].square().sum(), given)
        assert (gradient[0].norm(dim=-1) > 0).all()
