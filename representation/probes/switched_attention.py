"""A loaded backbone made causal or bidirectional for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import PreTrainedModel

from encoders.attention import set_attention


@contextmanager
def switched_attention(backbone: PreTrainedModel, is_causal: bool) -> Iterator[None]:
    """Within, every layer is causal, or every layer bidirectional; afterwards each is as it was, bi_last too.

    The backbone is one that `set_attention` has set before, as every loaded encoder's is.
    """
    own = {name: m.is_causal for name, m in backbone.named_modules() if isinstance(getattr(m, "is_causal", None), bool)}
    whole = backbone.config.is_causal
    set_attention(backbone, is_causal)
    try:
        yield
    finally:
        backbone.config.is_causal = whole
        for name, was in own.items():
            backbone.get_submodule(name).is_causal = was
