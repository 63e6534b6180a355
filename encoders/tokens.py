"""Tokens with roles: BOS and EOS exactly once after truncation, padding on either side without effect."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from cli.errors import UserError
from encoders.templates import DEFAULT, TEXT_FIELD, Template, pieces
from poolers.shared.base import BOS, ECHO, EOS, INSTRUCTION, LANDMARK, PAD, PLACEHOLDER, TEXT, TokenView


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
        """The view that poolers get."""
        return TokenView(self.roles)

    @property
    def attention_mask(self) -> Tensor:
        """[B, T] int64: one for real tokens."""
        return self.view.real.long()

    @cached_property
    def real(self) -> tuple[Tensor, tuple[int, ...]]:
        """[N], the places of real tokens in [B * T], and how many each text has."""
        real = self.view.real
        return real.flatten().nonzero().squeeze(1), tuple(real.sum(dim=1).tolist())

    def to(self, device: torch.device) -> "Batch":
        """The same batch on `device`; `real` is found before, since a GPU would be waited for twice."""
        moved, (places, lengths) = Batch(*(getattr(self, x.name).to(device) for x in fields(self))), self.real
        vars(moved)["real"] = places.to(device), lengths
        return moved


def by_instruction(texts: Sequence[tuple[str, str]]) -> dict[str, list[int]]:
    """Return instruction -> the places of its texts among (instruction, text) pairs."""
    places: dict[str, list[int]] = {}
    for k, (instruction, _) in enumerate(texts):
        places.setdefault(instruction, []).append(k)
    return places


def check_positions(cfg: dict[str, Any], positions: int) -> None:
    """Refuse a `max_length` above the positions that the model of `cfg` was made for. Raises `UserError`."""
    if cfg["max_length"] > positions:
        raise UserError(
            f"max_length={cfg['max_length']} is more than the {positions} positions of {cfg['model']['path']}. "
            "Lower max_length."
        )


class TextTokenizer:
    """Texts to tokens with roles, by rules that do not depend on the tokenizer's own template.

    BOS stands first where the tokenizer puts one; EOS (else separator, else padding token) stands last unless the
    template leaves it out: it is added after truncation. Strings such as "</s>" inside a text are text.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int,
        padding_side: str = "right",
        template: Template = DEFAULT,
    ) -> None:
        self.tokenizer, self.template = tokenizer, template
        self.max_length, self.padding_side = max_length, padding_side
        self._one_at_a_time = Lock()  # two threads may ask: "Already borrowed", transformers issue 47085
        eos = [i for i in (tokenizer.eos_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id) if i is not None]
        if not eos:
            lack = f"The tokenizer of {tokenizer.name_or_path} has neither an EOS nor a separator token"
            raise UserError(f"{lack}, so there is no last token to pool. Name its eos_token in tokenizer_config.json.")
        self.eos: int = eos[0]
        self.pad: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.eos
        first = tokenizer("a")["input_ids"][0]
        self.bos: int | None = first if first in (tokenizer.bos_token_id, tokenizer.cls_token_id) else None

    def __call__(self, texts: Sequence[str], instruction: str | None = None, empty: bool = False) -> list[Tokens]:
        """Tokenise `texts`, each written out by the template with the same instruction, if there is one.

        instruction: what `Template.asked` gave; an instruction alone is a query's. empty: where no token is of the
        text, the last one around it has that role. Else raises `UserError` for a text that is empty, nothing but white
        space, or without room.
        """
        rows, closing = self._rows(texts, instruction), EOS
        if self.template.landmarks:
            rows, closing = [self._landmarked(*row, self.template.landmarks) for row in rows], LANDMARK
        for row in rows if self.template.prepended else ():
            place = row[1].index(TEXT) if TEXT in row[1] else len(row[1])
            row[0].insert(place, self.eos)
            row[1].insert(place, PLACEHOLDER)
        for text, (_, roles) in () if empty else zip(texts, rows, strict=True):
            self._check(text, roles)
        start = [] if self.bos is None else [self.bos]
        end = [self.eos] if self.template.eos else []
        framed = [([*start, *ids, *end], [*[BOS] * len(start), *roles, *[closing] * len(end)]) for ids, roles in rows]
        filled = [(ids or [self.eos], roles if TEXT in roles else [*roles[:-1], TEXT]) for ids, roles in framed]
        return [Tokens(ids, roles) for ids, roles in filled]

    def pairs(self, texts: Sequence[tuple[str, str]]) -> list[Tokens]:
        """Tokenise (instruction, text) pairs, each instruction's together. Raises `UserError` as `__call__` does."""
        rows: dict[int, Tokens] = {}
        for instruction, places in by_instruction(texts).items():
            rows.update(zip(places, self([texts[k][1] for k in places], instruction), strict=True))
        return [rows[k] for k in range(len(texts))]

    def _rows(self, texts: Sequence[str], instruction: str | None) -> list[tuple[list[int], list[int]]]:
        """Ids and roles of each text, written out and cut, without BOS and EOS."""
        form = self.template.form(instruction or "")
        before = form.removesuffix(TEXT_FIELD)
        among = TEXT_FIELD in before or before == form
        return self._among(pieces(form), texts) if among else self._after(before, texts)

    @property
    def _room(self) -> int:
        """Tokens between BOS and EOS, but for a placeholder."""
        return self.max_length - self.template.eos - (self.bos is not None) - bool(self.template.prepended)

    def _after(self, prefix: str, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Ids and roles of texts after `prefix`, tokenised as one string; a token that spans both is text."""
        encoded = self._encoded([prefix + t for t in texts], return_offsets_mapping=bool(prefix))
        cut = [ids[: self._room] for ids in encoded["input_ids"]]
        if not prefix:
            return [(ids, [TEXT] * len(ids)) for ids in cut]
        offsets = (of_text[: self._room] for of_text in encoded["offset_mapping"])
        roles = ([TEXT if end > len(prefix) else INSTRUCTION for _, end in of_text] for of_text in offsets)
        return list(zip(cut, roles, strict=True))

    def _among(self, parts: Sequence[str], texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Ids and roles of texts that stand before or between words, or twice.

        Every part is tokenised by itself, so the copies of a text are the same ids. What max_length cuts is the end of
        the text, of each copy alike, never the words around it.
        """
        words = {part: self._encoded([part])["input_ids"][0] for part in parts if part != TEXT_FIELD}
        copies = list(parts).count(TEXT_FIELD)
        room = max(0, self._room - sum(len(words.get(part, ())) for part in parts)) // copies
        rows = []
        for text_ids in self._encoded(texts)["input_ids"]:
            ids, roles, copy = list[int](), list[int](), iter((TEXT, ECHO))
            for part in parts:
                new, role = (text_ids[:room], next(copy)) if part == TEXT_FIELD else (words[part], INSTRUCTION)
                ids, roles = [*ids, *new], [*roles, *[role] * len(new)]
            rows.append((ids, roles))
        return rows

    def _landmarked(self, ids: list[int], roles: list[int], every: int) -> tuple[list[int], list[int]]:
        """Put EOS as a landmark after `every` tokens of the text, which ends the row, and cut it to fit again.
        None follows the last tokens: EOS closes the text anyway (arXiv 2601.21525)."""
        start = roles.index(TEXT) if TEXT in roles else len(roles)
        room = self._room - start + 1  # of it one place in every + 1 is a landmark's
        text = ids[start : start + room - -(-room // (every + 1))]
        chunks = [text[i : i + every] for i in range(0, len(text), every)]
        marked = [pair for c in chunks for pair in (*((i, TEXT) for i in c), (self.eos, LANDMARK))][:-1]
        return [*ids[:start], *(i for i, _ in marked)], [*roles[:start], *(role for _, role in marked)]

    def plain_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text as it stands: no template, no BOS or EOS, nothing cut."""
        return list(self._encoded(texts)["input_ids"])

    def _encoded(self, texts: Sequence[str], **settings: Any) -> Any:
        with self._one_at_a_time:
            return self.tokenizer(
                list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False, **settings
            )

    def _check(self, text: str, roles: list[int]) -> None:
        if not text.strip():
            raise UserError(f"A text is empty ({text[:40]!r}): it has no embedding. Remove it from the data.")
        if TEXT not in roles:
            raise UserError(
                f"max_length={self.max_length} leaves no room for the text after its instruction ({text[:40]!r}). "
                "Raise max_length or shorten the instruction."
            )

    def batch(self, rows: Sequence[Tokens], multiple_of: int = 1) -> Batch:
        """Pad rows to the longest, rounded up to `multiple_of`, on `padding_side`."""
        lengths = np.fromiter(map(len, rows), np.int64)[:, None]
        width = -(-int(lengths.max()) // multiple_of) * multiple_of
        place = np.arange(width) - (width - lengths if self.padding_side == "left" else 0)
        real = (place >= 0) & (place < lengths)
        ids, roles = np.full(real.shape, self.pad), np.full(real.shape, PAD)
        ids[real] = np.fromiter((i for row in rows for i in row.ids), np.int64)
        roles[real] = np.fromiter((role for row in rows for role in row.roles), np.int64)
        return Batch(*map(torch.from_numpy, (ids, roles, np.where(real, place, 0))))
