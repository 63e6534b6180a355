"""Encoder-only models (BERT, RoBERTa) as untrained rows: their own states, pooled by ours."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from torch.nn.functional import normalize
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BertTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from cli.compose import composed, plain
from cli.errors import UserError
from encoders.loading import untrained
from evaluation.command import check_encoder
from tests.hub_model import LEARNT_FROM

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["the sum of two arrays", "a dog", "Find the words that were written, and write them again"]
SHAPE = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
SHAPE |= {"intermediate_size": 64, "max_position_embeddings": 70, "initializer_range": 0.2, "pad_token_id": 0}
MADE = {  # with and without the layer that reads [CLS]
    "bert": lambda: BertModel(BertConfig(**SHAPE)),
    "bert_mlm": lambda: BertForMaskedLM(BertConfig(**SHAPE)),
    "roberta": lambda: RobertaModel(RobertaConfig(**SHAPE)),
}


@pytest.fixture(scope="module", params=MADE)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=SPECIAL, show_progress=False)
    words.train_from_iterator(LEARNT_FROM.split("\n"), trainer)
    words.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    BertTokenizerFast(tokenizer_object=words).save_pretrained(path)
    torch.manual_seed(0)
    MADE[request.param]().save_pretrained(path)
    return path


def encoder(folder, *words):
    return untrained(plain(composed("evaluate", [f"model.path={folder}", "max_length=64", "precision=fp32", *words])))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(("pooler", "first", "last"), [("mean", 1, None), ("eos", -1, None), ("cls", 0, 1)])
def test_states_are_those_of_transformers(folder, pooler, first, last, side):
    """Of [CLS] text [SEP], which transformers' own tokenizer writes; means leave [CLS] out, and pool [SEP]."""
    ours = encoder(folder, "attn=bi", f"pooler={pooler}", f"padding_side={side}").encode(TEXTS)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = [model(torch.tensor([tokenizer(text)["input_ids"]])).last_hidden_state[0] for text in TEXTS]
    theirs = normalize(torch.stack([state[first:last].mean(0) for state in states]), dim=-1)
    torch.testing.assert_close(torch.as_tensor(ours), theirs, atol=1e-5, rtol=0)


def test_they_cannot_be_causal(folder):
    with pytest.raises(UserError, match="causal does not hold"):
        encoder(folder, "attn=causal", "pooler=mean")


def test_a_first_token_that_sees_no_other_is_refused():
    for words in (["pooler=cls"], ["pooler=layer", "pooler.layer=1", "pooler.pooling=cls"]):
        with pytest.raises(UserError, match="reads the first token, which sees no other under attn=causal"):
            check_encoder(plain(composed("evaluate", [*words, "attn=causal"])))
        check_encoder(plain(composed("evaluate", [*words, "attn=bi"])))
