"""A trained cell on disk: adapter in PEFT's format, head in safetensors."""

from pathlib import Path

from peft import PeftModel
from safetensors.torch import save_file

from encoders.encoder import Encoder
from records.atomic import replacing


def save_trained(encoder: Encoder, adapted: PeftModel | None, folder: Path) -> None:
    """Write <folder>/adapter (loads with `PeftModel.from_pretrained`) and <folder>/head.safetensors.

    adapted: None where the backbone was frozen; there is no adapter then.
    """
    if adapted is not None:
        with replacing(folder / "adapter") as draft:
            adapted.save_pretrained(str(draft), save_embedding_layers=False)
    with replacing(folder / "head.safetensors") as draft:
        save_file({k: v.contiguous() for k, v in encoder.pooler.state_dict().items()}, draft)
