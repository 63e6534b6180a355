"""The layout of a batch in the decoder: padded texts under a mask, or one row of texts without padding."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from encoders.attention.switch import is_unpadded
from encoders.attention.unpadded import Segments
from encoders.tokens import Batch
from poolers.shared.base import TEXT
from poolers.shared.packed import Packed


@dataclass(frozen=True)
class Rows:
    """A batch as a decoder's inputs, and the way back. places: [N] of the row's tokens in [B * T]; None: padded."""

    inputs: dict[str, Any]
    shape: tuple[int, int]
    places: Tensor | None

    @property
    def texts(self) -> Tensor:
        """[N], the text of each token as the decoder has them, from 0; -1 at padding."""
        count, width = self.shape
        if self.places is not None:
            return self.places // width
        mask: Tensor = self.inputs["attention_mask"]
        return torch.where(mask.bool(), torch.arange(count, device=mask.device)[:, None], -1).flatten()

    def packed(self, states: Tensor) -> Tensor | Packed:
        """The states without padding where the decoder has none."""
        return states if self.places is None else Packed(states[0], self.places, self.shape)

    def padded(self, states: Tensor) -> Tensor:
        """[B, T, D] of the decoder's own [1, N, D] or [B, T, D]; zeros stand at padding that was left out."""
        if self.places is None:
            return states
        count, width = self.shape
        empty = states.new_zeros(count * width, states.shape[-1])
        return empty.index_copy(0, self.places, states[0]).view(count, width, -1)


def arranged(backbone: PreTrainedModel, batch: Batch) -> Rows:
    """`batch` as `backbone` wants it."""
    shape = (batch.roles.shape[0], batch.roles.shape[1])
    if not is_unpadded(backbone):
        positions = {"attention_mask": batch.attention_mask, "position_ids": batch.position_ids}
        return Rows({"input_ids": batch.input_ids, **positions, "use_cache": False}, shape, None)
    real = batch.view.real
    places = real.flatten().nonzero().squeeze(1)
    segments = Segments(tuple(real.sum(dim=1).tolist()), real.device)
    row = {name: getattr(batch, name).flatten()[places][None] for name in ("input_ids", "position_ids")}
    return Rows({**row, "use_cache": False, "segments": segments}, shape, places)


def last_states(backbone: PreTrainedModel, batch: Batch) -> Tensor:
    """[B, T, D] states of the last layer after the final norm."""
    rows = arranged(backbone, batch)
    return rows.padded(backbone(**rows.inputs).last_hidden_state)


def one_text_each(ids: Tensor) -> Batch:
    """[B, T] ids without any padding as a batch of plain text."""
    return Batch(ids, torch.full_like(ids, TEXT), torch.arange(ids.shape[1], device=ids.device).expand_as(ids))
