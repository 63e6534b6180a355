"""A trained cell on disk: adapter in PEFT's format, head in safetensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peft import PeftModel
from safetensors.torch import save_file

from encoders.encoder import Encoder
from records.atomic import replacing
from records.run_folder import RunFolder
from training.checkpoints import LAST


def save_trained(encoder: Encoder, adapted: PeftModel | None, folder: Path) -> None:
    """Write <folder>/adapter (loads with `PeftModel.from_pretrained`) and <folder>/head.safetensors.

    adapted: None where the backbone was frozen; there is no adapter then.
    """
    if adapted is not None:
        with replacing(folder / "adapter") as draft:
            adapted.save_pretrained(str(draft), save_embedding_layers=False)
    with replacing(folder / "head.safetensors") as draft:
        save_file({k: v.contiguous() for k, v in encoder.pooler.state_dict().items()}, draft)


def finish(folder: RunFolder, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a run whose weights are saved and whose facts are known; its checkpoint goes last."""
    folder.write({**manifest, "status": "finished"})
    (folder.path / LAST).unlink(missing_ok=True)
