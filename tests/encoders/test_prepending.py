"""Token Prepending against a literal loop over the layers of transformers' own model, text by text."""

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.attention.prepending import prepend
from encoders.attention.switch import parts
from encoders.loading import untrained
from tests.families import SIZES

TEXTS = ["two arrays", "the sum of two arrays is returned as a new array", "sum"]


def by_hand(path, before, text, after, count):
    """[D]: the last token's state, EOS the placeholder and, where nothing follows the text, its end."""
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModel.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    lead, own, rest = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in (before, text, after))
    ids = torch.tensor([[*lead, tokenizer.eos_token_id, *own, *(rest or [tokenizer.eos_token_id])]])
    width = ids.shape[1]
    rotary = model.rotary_emb(model.embed_tokens(ids), torch.arange(width)[None])
    mask, states = torch.full((1, 1, width, width), -1e30).triu(1), model.embed_tokens(ids)
    for number, layer in enumerate(model.layers, 1):
        states = layer(states, attention_mask=mask, position_embeddings=rotary)
        if number <= count:
            states[0, len(lead)] = states[0, -1]
    return model.norm(states)[0, -1]


@torch.no_grad()
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kernel", ["eager", "sdpa", "unpadded"])
@pytest.mark.parametrize("name", ["prepend", "prepend_prompteol"])
def test_the_placeholder_enters_the_first_layers_as_the_last_token_left_the_one_before(
    small_model, name, kernel, count
):
    words = [f"model.path={small_model}", f"template={name}", f"template.prepended={count}", "pooler=eos"]
    words += [f"model.attn_implementation={kernel}", "attn=causal", "precision=fp32", "normalize=false"]
    made = untrained(plain(composed("evaluate", words)))
    before, after = made.tokenizer.template.query.bare.split("{text}")
    vectors = torch.from_numpy(made.encode(TEXTS))
    wanted, other = (torch.stack([by_hand(small_model, before, text, after, n) for text in TEXTS]) for n in (count, 0))
    assert (vectors - wanted).abs().max() < 1e-5
    assert (wanted - other).abs().amax(dim=1).min() > 1e-3, "a difference to miss"


def test_what_cannot_be_prepended_is_refused(small_model):
    words = [f"model.path={small_model}", "template=prepend", "template.prepended=3"]
    with pytest.raises(UserError, match=r"template.prepended=3 must be below the 3 layers"):
        untrained(plain(composed("evaluate", words)))
    backbone = AutoModel.from_config(AutoConfig.for_model("llama", **SIZES))
    prepend(backbone, parts(backbone)[0], 1)
    with pytest.raises(UserError, match=r"template.prepended does not reach LlamaDecoderLayer. Give a base"):
        backbone(torch.tensor([[5, 6]]))
