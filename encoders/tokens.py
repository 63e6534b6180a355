"""Tokens with roles: BOS and EOS exactly once after truncation, padding on either side without effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from poolers.base import BOS, EOS, INSTRUCTION, PAD, TEXT, TokenView
from records.errors import UserError

INSTRUCTION_TEMPLATE = "Instruct: {instruction}\nQuery: "  # E5-Mistral, arXiv 2401.00368
GLUED = "{instruction}"  # no template and no space


@dataclass(frozen=True)
class Tokens:
    """One text as ids and roles, of equal length."""

    ids: list[int]
    roles: list[int]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Batch:
    """Padded texts. input_ids, roles, position_ids: [B, T] int64; positions count real tokens from zero."""

    input_ids: Tensor
    roles: Tensor
    position_ids: Tensor

    @property
    def view(self) -> TokenView:
        """What poolers get."""
        return TokenView(self.roles)

    @property
    def attention_mask(self) -> Tensor:
        """[B, T] int64: one for real tokens."""
        return (self.roles != PAD).long()

    def to(self, device: torch.device) -> "Batch":
        """The same batch on `device`."""
        return Batch(self.input_ids.to(device), self.roles.to(device), self.position_ids.to(device))


class TextTokenizer:
    """Texts to tokens with roles, by rules that do not depend on the tokenizer's own template.

    BOS stands first where the tokenizer puts one; EOS (or the separator, or the padding token, where a tokenizer
    has none) stands last, always: it is added after truncation. Strings such as "</s>" inside a text are text.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int,
        padding_side: str = "right",
        template: str = INSTRUCTION_TEMPLATE,
    ) -> None:
        if padding_side not in ("left", "right"):
            raise UserError(f"padding_side is '{padding_side}'; it must be left or right.")
        self.tokenizer, self.max_length, self.padding_side = tokenizer, max_length, padding_side
        self.template = template  # stands before the text where there is an instruction
        self._one_at_a_time = Lock()  # two threads may ask: "Already borrowed", transformers issue 47085
        eos = [i for i in (tokenizer.eos_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id) if i is not None]
        if not eos:
            raise UserError(
                "The tokenizer has neither an EOS nor a separator token, so there is no last token to pool."
            )
        self.eos: int = eos[0]
        self.pad: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.eos
        self.bos: int | None = self._own_bos()
        self.special = [s for s in tokenizer.all_special_tokens if isinstance(s, str)]

    def _own_bos(self) -> int | None:
        bos = self.tokenizer.bos_token_id
        starts = self.tokenizer("a")["input_ids"][:1]
        return bos if bos is not None and starts == [bos] else None

    def __call__(self, texts: Sequence[str], instruction: str | None = None) -> list[Tokens]:
        """Tokenise `texts`, each after the same instruction if there is one.

        The instruction's tokens are told from the text's by character offsets; a token that spans both is text.
        Raises `UserError` for a text that is empty, or is nothing but special tokens or white space.
        """
        prefix = self.template.format(instruction=instruction) if instruction else ""
        room = self.max_length - 1 - (self.bos is not None)
        with self._one_at_a_time:
            encoded = self.tokenizer(
                [prefix + t for t in texts],
                add_special_tokens=False,
                split_special_tokens=True,
                return_offsets_mapping=bool(prefix),
                verbose=False,
            )
        rows = []
        for i, text in enumerate(texts):
            ids = encoded["input_ids"][i][:room]
            if prefix:
                ends = [end for _, end in encoded["offset_mapping"][i][:room]]
                roles = [TEXT if end > len(prefix) else INSTRUCTION for end in ends]
            else:
                roles = [TEXT] * len(ids)
            self._check(text, roles)
            rows.append(self._framed(ids, roles))
        return rows

    def lengths(self, texts: Sequence[str], instruction: str | None = None) -> list[int]:
        """Return the number of tokens of each text as `__call__` would cut it; nothing is checked."""
        prefix = self.template.format(instruction=instruction) if instruction else ""
        frame = 1 + (self.bos is not None)
        found = self.tokenizer(
            [prefix + t for t in texts], add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        return [min(len(ids), self.max_length - frame) + frame for ids in found["input_ids"]]

    def _framed(self, ids: list[int], roles: list[int]) -> Tokens:
        if self.bos is not None:
            ids, roles = [self.bos, *ids], [BOS, *roles]
        return Tokens([*ids, self.eos], [*roles, EOS])

    def _check(self, text: str, roles: list[int]) -> None:
        bare = text
        for special in self.special:
            bare = bare.replace(special, "")
        if not bare.strip():
            what = "is only special tokens" if text.strip() else "is empty"
            raise UserError(f"A text {what} ({text[:40]!r}): it has no embedding. Remove it from the data.")
        if TEXT not in roles:
            raise UserError(
                f"max_length={self.max_length} leaves no room for the text after its instruction ({text[:40]!r}). "
                "Raise max_length or shorten the instruction."
            )

    def batch(self, rows: Sequence[Tokens], multiple_of: int = 1) -> Batch:
        """Pad rows to the longest, rounded up to `multiple_of`, on `padding_side`."""
        width = -(-max(map(len, rows)) // multiple_of) * multiple_of
        ids = torch.full((len(rows), width), self.pad)
        roles = torch.full((len(rows), width), PAD)
        positions = torch.zeros((len(rows), width), dtype=torch.long)
        for i, row in enumerate(rows):
            n = len(row)
            where = slice(width - n, width) if self.padding_side == "left" else slice(0, n)
            ids[i, where] = torch.tensor(row.ids)
            roles[i, where] = torch.tensor(row.roles)
            positions[i, where] = torch.arange(n)
        return Batch(ids, roles, positions)
