"""BOS stands before every text where the tokenizer puts one, and is pooled only where a key says so."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import untrained
from poolers.shared.base import BOS, EOS, INSTRUCTION, TEXT, TokenView
from poolers.shared.registry import build_pooler, refuse_blind
from tests.hub_model import HUB_MODELS

TEXTS = ["One day a girl named Lily went out", "sun", "The dog and the cat were friends and played all day."]
ROLES = torch.tensor([[BOS, INSTRUCTION, TEXT, TEXT, EOS]])


@pytest.fixture(params=HUB_MODELS)
def stories(request, model_folder):
    """A Llama whose tokenizer puts BOS."""
    return model_folder(request.param)


@pytest.fixture
def vectors(compose_cell, stories):
    """[N, E] float64 of TEXTS by the program, for a pooler under an attention."""

    def encode(pooler, attn, *words):
        return untrained(compose_cell(pooler, attn, f"model.path={stories}", *words)).encode(TEXTS).astype(float)

    return encode


def by_hand(stories, attn, weights_of):
    """Unit vectors of transformers' last states, one text at a time, weighted by `weights_of(number of text tokens)`.

    A text is <s>, its tokens, </s>; the weights are theirs in order.
    """
    tokenizer, model = AutoTokenizer.from_pretrained(stories), AutoModel.from_pretrained(stories).eval()
    model.config.is_causal = attn == "causal"
    made = []
    for text in TEXTS:
        ids = [1, *tokenizer(text, add_special_tokens=False)["input_ids"], 2]
        with torch.no_grad():
            states = model(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).last_hidden_state[0]
        pooled = np.array(weights_of(len(ids) - 2), dtype=float) @ states.double().numpy()
        made.append(pooled / np.linalg.norm(pooled))
    return np.stack(made)


WEIGHTS = {  # cell -> what each of BOS, n tokens of the text and EOS weighs
    ("mean", "causal"): lambda n: [0, *[1] * n, 1],
    ("mean", "bi"): lambda n: [0, *[1] * n, 1],
    ("mean", "bi", "reference_fault.pool_bos=true"): lambda n: [1] * (n + 2),
    ("weightedmean", "causal"): lambda n: [0, *range(1, n + 2)],
}


@pytest.mark.parametrize("cell", WEIGHTS, ids=" ".join)
def test_bos_is_left_out_by_default_and_not_counted(vectors, stories, cell):
    np.testing.assert_allclose(vectors(*cell), by_hand(stories, cell[1], WEIGHTS[cell]), atol=2e-6)


# Which of BOS, instruction, text, EOS the published designs pool.
PUBLISHED = {
    "mean": "text",
    "mean_bi": "text",
    "llm2vec": "text",
    "llm2vec_mntp": "text",
    "sgpt": "text",
    "gritlm": "text",
    "echo": "text",  # where there is one, of the second copy alone
    "echo_long": "text",
    "nv_embed": "bos text eos",
    "e5": "bos instruction text eos",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_designs_pool_what_their_code_pools(name):
    """A constant at each token's place: what the pooler makes of it says which were read."""
    cfg = plain(composed("train", [f"design={name}", "reference_fault.pool_bos=true", "study=designs"]))
    pooler = build_pooler(cfg["pooler"], 8, 2, seed=0)
    kept = pooler.pooled(TokenView(ROLES))[0]
    words = ("bos", "instruction", "text", "text", "eos")
    found = dict.fromkeys(word for word, pooled in zip(words, kept.tolist(), strict=True) if pooled)
    assert " ".join(found) == PUBLISHED[name]


def test_a_first_token_that_sees_no_other_is_refused():
    for pooler in ({"name": "cls"}, {"name": "layer", "layer": 1, "pooling": "cls"}):
        with pytest.raises(UserError, match="reads the first token, which sees no other in causal layers"):
            refuse_blind(pooler, True)
        refuse_blind(pooler, False)
    words = ["pooler=layer", "pooler.layer=1", "pooler.pooling=cls", "attn=bi_last", "attn.layers=1"]
    with pytest.raises(UserError, match="reads the first token"):
        untrained(plain(composed("train", words)))
    untrained(plain(composed("train", [*words, "pooler.layer=5"])))
