"""Earlier stages merged into the base: W + sum of scaling B A, summed in float32 and rounded once."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from cli.errors import UserError, reading
from encoders.backbone import check_names
from records.lineage import ADAPTER, Stage

PREFIX = "base_model.model."  # PEFT's, before the decoder's own names
AGAIN = "Train the stage again."
PLAIN = ("use_rslora", "use_dora", "fan_in_fan_out", "rank_pattern", "alpha_pattern")


@torch.no_grad()
def merge_stages(backbone: nn.Module, stages: Sequence[Stage]) -> None:
    """Add the adapters of `stages` to the weights of `backbone`, in place.

    Each sum is taken in float32, over all stages, and is then rounded once to the format of the weights. Raises
    `UserError` where an adapter does not fit the decoder.
    """
    changes: dict[str, list[tuple[float, Tensor, Tensor]]] = defaultdict(list)
    layers = dict(backbone.named_modules())
    for stage in stages:
        for name, change in factors_of(stage, backbone).items():
            changes[name].append(change)
    for name, parts in changes.items():
        weight = getattr(layers.get(name), "weight", None)
        if not isinstance(weight, Tensor) or any(weight.shape != (len(b), a.shape[1]) for _, a, b in parts):
            raise UserError(f"The stage {stages[0].folder} does not fit its base model: {name} has another shape.")
        merged = weight.float().cpu()  # on every device the CPU's sums
        for scaling, a, b in parts:
            merged = merged + scaling * (b @ a)
        weight.copy_(merged)


def factors_of(stage: Stage, backbone: nn.Module) -> dict[str, tuple[float, Tensor, Tensor]]:
    """Return (scaling, A [r, D_in], B [D_out, r]) in float32 of every layer that the adapter's configuration names.

    Raises `UserError` for an adapter that is more than plain LoRA, lacks tensors or has others.
    """
    from peft import PeftConfig
    from peft.tuners.tuners_utils import check_target_module_exists

    file = stage.folder / ADAPTER
    with reading(file, AGAIN):
        tensors, named = load_file(file), PeftConfig.from_pretrained(str(file.parent))
    unknown = [key for key in PLAIN if getattr(named, key, None)]
    if unknown:
        raise UserError(
            f"The stage {stage.folder} is no plain LoRA ({unknown[0]}); such an adapter cannot be merged here."
        )
    scaling = named.lora_alpha / named.r
    names = [name for name, _ in backbone.named_modules() if check_target_module_exists(named, name)]
    wanted = [f"{PREFIX}{name}.lora_{part}.weight" for name in names for part in "AB"]
    check_names(str(file), wanted, tensors, AGAIN)
    a, b = ({name: tensors[f"{PREFIX}{name}.lora_{part}.weight"].float() for name in names} for part in "AB")
    return {name: (scaling, a[name], b[name]) for name in names}
