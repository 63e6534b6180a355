"""The keys that a head attends to in each text: layers, or classes of the tokens that it reads."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase

from analysis.statistics.arrays import Floats
from encoders.tokens import Batch
from poolers.lastlayer import LastLayerTrainable
from poolers.multilayer import MultiLayerTrainable
from poolers.shared.base import BOS, EOS, INSTRUCTION, PAD, Pooler, States, TokenView
from poolers.shared.cross_attention import CrossAttentionHead
from representation.encoders_studied import Studied
from representation.texts import Text, Texts, gathered

CLASSES = ("BOS", "instruction", "content word", "function word", "punctuation", "EOS", "padding")
FIRST, ASKED, CONTENT, FUNCTION, PUNCTUATION, LAST, FILLED = range(len(CLASSES))
OF_ROLE = {PAD: FILLED, BOS: FIRST, INSTRUCTION: ASKED, EOS: LAST}
SPACE = ("\u0120", "\u2581", "\u010a")  # how vocabularies write a space before a token, or the end of a line
LISTED = """
a an the this that these those some any each every all both no not and or but nor if then else than so as of at by
for from in into on onto to with without within over under between through during before after above below up down
out off about against per via is are was were be been being am do does did have has had having can could may might
must shall should will would it its he she they them his her you your we our i me my us who whom whose which what
when where why how there here such only same other another also
"""
FUNCTION_WORDS = frozenset(LISTED.split())


@dataclass(frozen=True)
class Piece:
    """An entry of the vocabulary: whether it holds a letter or digit, whether it begins a word, and its letters."""

    is_word: bool
    begins: bool
    letters: str


class TokenClasses:
    """Classes of the tokens of a decoder's tokenizer, whose vocabulary marks the beginnings of words (BPE)."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        self.piece = cache(self._piece)

    def __call__(self, batch: Batch) -> Tensor:
        """Return [B, T] int64: the number of each token's class in `CLASSES`.

        A token without letter or digit is punctuation, white space too. A function word is a whole word of a closed
        list of English; pieces of longer words are content.
        """
        rows = []
        for ids, roles in zip(batch.input_ids.tolist(), batch.roles.tolist(), strict=True):
            pieces = [None if role in OF_ROLE else self.piece(i) for i, role in zip(ids, roles, strict=True)]
            around = zip([None, *pieces], pieces, [*pieces[1:], None], roles, strict=False)
            rows.append([kind_of(p, before, after) if p else OF_ROLE[role] for before, p, after, role in around])
        return torch.tensor(rows, device=batch.roles.device)

    def _piece(self, token: int) -> Piece:
        written = str(self.tokenizer.convert_ids_to_tokens(token))
        text = self.tokenizer.convert_tokens_to_string([written])
        return Piece(any(c.isalnum() for c in text), written.startswith(SPACE), text.strip().lower())


def kind_of(piece: Piece, before: Piece | None, after: Piece | None) -> int:
    """Return content word, function word or punctuation. before, after: its neighbours in the text, if any."""
    if not piece.is_word:
        return PUNCTUATION
    begins = piece.begins or before is None or not before.is_word
    ends = after is None or after.begins or not after.is_word
    return FUNCTION if begins and ends and piece.letters in FUNCTION_WORDS else CONTENT


def attention_weights(
    head: CrossAttentionHead, states: Tensor, mask: Tensor | None = None, asked: Tensor | None = None
) -> Tensor:
    """Return [B, H, N, K] float32: the attention of N queries of H heads over the keys; rows sum to one.

    states: [B, K, D], mask: [B, K] bool, the keys that exist, asked: as `CrossAttentionHead.forward` takes them.
    softmax((LN(Q) W_q) (LN(x) W_k)^T / sqrt(d)).
    """
    keys = head.norm_keys(states.float())
    if mask is not None:
        keys = keys.masked_fill(~mask[..., None], 0.0)
    keys = head.key(keys).unflatten(-1, (head.num_heads, head.head_dim))
    queries = head.query(head.norm_queries(head.queries)).unflatten(-1, (head.num_heads, head.head_dim))
    scores = torch.einsum("nhd,bkhd->bhnk", queries, keys)
    if asked is not None:
        scores = scores + (head.moved(asked).transpose(1, 2) * keys).sum(dim=-1).transpose(1, 2)[:, :, None]
    scores = scores / math.sqrt(head.head_dim)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
    return scores.softmax(dim=-1)


def layer_attention(pooler: MultiLayerTrainable, states: States) -> Tensor:
    """Return [B, H, N, L]: attention of a multilayer head over its layers. states: the reductions of `pooler.layers`.

    With tokens="all" a layer has the attention of all its tokens together: e^(log of its softmax's denominator), over
    the sum of those of all layers.
    """
    assert isinstance(states, list)
    if pooler.tokens == "all":
        return torch.cat([part[..., -1:] for part in states], dim=-1).softmax(dim=-1)
    keys, asked = pooler.keys(torch.stack(states, dim=1))
    return attention_weights(pooler.head, keys, asked=asked)


def token_attention(pooler: LastLayerTrainable, states: States, tokens: TokenView) -> Tensor:
    """Return [B, H, N, T]: attention of a lastlayer head over the tokens that it reads, with pooler.tokens=all."""
    assert isinstance(states, Tensor)
    assert pooler.tokens == "all", "a head with one key has one weight"
    mask = pooler.pooled(tokens) if pooler.mask_padding else None
    return attention_weights(pooler.head, states, mask, pooler.asked(states, tokens))


def relative_entropy(weights: Tensor, keys: Tensor | int) -> Tensor:
    """Return the entropy of weights [..., K] over that of attention spread evenly: 1 is even, 0 is all on one key.

    keys: how many keys there are, a number or a tensor that fits [...]; of one key alone it is 1.
    """
    entropy = torch.special.entr(weights.double()).sum(dim=-1)
    most = torch.log(torch.as_tensor(keys, dtype=torch.float64, device=weights.device))
    return torch.where(most > 0, entropy / most.clamp(min=1e-12), torch.ones_like(entropy))


@dataclass(frozen=True)
class Attributed:
    """Over n texts. names: K layers ("0", ... as pooler=layer counts them) or classes of tokens.

    attention: [n, K], mean over heads and queries; rows sum to one. even: [n, K], attention spread evenly over all
    keys. entropy: [n], that of attention over that of even attention, the mean over heads and queries. length, shifted:
    [n], see `instruction_effect`; 0 where the head or the text has no instruction, NaN where no head's keys are kept.
    """

    names: list[str]
    attention: Floats
    even: Floats
    entropy: Floats
    length: Floats
    shifted: Floats


def has_several_keys(pooler: Pooler) -> bool:
    """Return whether it is a head over layers, or over the tokens of the last layer."""
    return isinstance(pooler, MultiLayerTrainable) or (
        isinstance(pooler, LastLayerTrainable) and pooler.tokens == "all"
    )


def attributed(studied: Studied, texts: Texts, wanted: Sequence[Text]) -> Attributed:
    """Return the attention of the encoder's head, over layers or tokens, in each of `wanted`; one pass per text."""
    encoder = studied.encoder()
    model, pooler, classes = encoder.encoder, encoder.encoder.pooler, TokenClasses(encoder.tokenizer.tokenizer)
    assert isinstance(pooler, MultiLayerTrainable | LastLayerTrainable)

    def read(batch: Batch) -> dict[str, Floats]:
        states = model.states(batch)
        if isinstance(pooler, MultiLayerTrainable):
            parts = of_layers(pooler, states)
        else:
            parts = of_tokens(pooler, states, batch, classes(batch))
        rows = (part.double().cpu().numpy() for part in parts)
        return dict(zip(("attention", "even", "entropy", "length", "shifted"), rows, strict=True))

    names = [str(layer) for layer in pooler.layers] if isinstance(pooler, MultiLayerTrainable) else list(CLASSES)
    return Attributed(names, **gathered(texts.passes(studied, wanted, read), len(wanted)))


def instruction_effect(
    head: CrossAttentionHead, states: Tensor, mask: Tensor | None, asked: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what query="instruction" does in a text, two [B]: of length and of attention.

    The length of what the instruction adds to the projected queries over their own mean length (mean over keys that are
    asked apart); the share of the attention that goes to other keys than without it, mean over heads and queries.
    Arguments: see `attention_weights`.
    """
    query_length = head.query(head.norm_queries(head.queries)).norm(dim=-1).mean()
    length = head.moved(asked).square().sum(dim=(1, 3)).sqrt().mean(dim=1) / query_length
    with_it, without = attention_weights(head, states, mask, asked), attention_weights(head, states, mask)
    return length, (with_it - without).abs().sum(dim=-1).mean(dim=(1, 2)) / 2


def of_layers(pooler: MultiLayerTrainable, states: States) -> tuple[Tensor, ...]:
    """Return the parts of `Attributed` for a multilayer head: [B, L] twice, then [B] three times."""
    weights = layer_attention(pooler, states)
    count = weights.shape[-1]
    attention = weights.mean(dim=(1, 2))
    effect = 2 * (torch.zeros(len(weights)),)
    if pooler.head.of_instruction is not None:
        effect = 2 * (torch.full((len(weights),), torch.nan),)  # tokens="all": its keys are gone
        if pooler.tokens != "all":
            assert isinstance(states, list)
            keys, asked = pooler.keys(torch.stack(states, dim=1))
            assert asked is not None
            effect = instruction_effect(pooler.head, keys, None, asked)
    even = torch.full_like(attention, 1 / count)
    return attention, even, relative_entropy(weights, count).mean(dim=(1, 2)), *effect


def of_tokens(pooler: LastLayerTrainable, states: States, batch: Batch, classes: Tensor) -> tuple[Tensor, ...]:
    """Return the parts of `Attributed` for a lastlayer head: [B, C] twice, C classes of tokens, then [B] three times.

    classes: [B, T]. Even attention to a class is its share of the tokens that the head reads.
    """
    weights = token_attention(pooler, states, batch.view)
    read = pooler.pooled(batch.view) if pooler.mask_padding else torch.ones_like(batch.view.real)
    count = read.sum(dim=1)
    member = F.one_hot(classes, len(CLASSES)).float() * read[..., None]
    attention = torch.einsum("bt,btc->bc", weights.mean(dim=(1, 2)), member)
    entropy = relative_entropy(weights, count[:, None, None].expand(weights.shape[:-1]))
    assert isinstance(states, Tensor)
    effect, asked = 2 * (torch.zeros(len(weights)),), pooler.asked(states, batch.view)
    if asked is not None:
        effect = instruction_effect(pooler.head, states, pooler.pooled(batch.view), asked)
    return attention, member.sum(dim=1) / count[:, None], entropy.mean(dim=(1, 2)), *effect
