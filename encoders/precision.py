"""Number formats of a run, decided once and written into the manifest; experts of a mixture run in that of autocast."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS, grouped_mm_experts_forward

from cli.errors import UserError

WORKSPACES = (":4096:8", ":16:8")  # of cuBLAS: with either its sums have one order


@dataclass(frozen=True)
class Precision:
    """Formats of the frozen base weights and of the backbone's matrix products; head, logits and loss are float32."""

    name: str
    weights: torch.dtype
    compute: torch.dtype


PRECISIONS = {
    "fp32": Precision("fp32", torch.float32, torch.float32),
    "mixed": Precision("mixed", torch.float32, torch.bfloat16),
    "bf16": Precision("bf16", torch.bfloat16, torch.bfloat16),
}


def resolve_precision(name: str, device: torch.device) -> Precision:
    """Return the precision of `name`; "auto": bf16 on a GPU that has it, mixed on a CPU that has it, else fp32."""
    if name == "auto":
        fast_cpu = torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        fast_gpu = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        name = "bf16" if fast_gpu else "mixed" if fast_cpu and device.type == "cpu" else "fp32"
    return PRECISIONS[name]


def store_as_computed(backbone: nn.Module, compute: torch.dtype) -> None:
    """Round the frozen weights of linear layers and experts to `compute` once, as is done else in every forward pass.

    The numbers are the same bit by bit, the copies are spared. Float32 products round nothing, and LoRA's stay.
    """
    for name, module in backbone.named_modules() if compute is not torch.float32 else ():
        if (type(module) is nn.Linear and ".lora_" not in name) or is_experts(module):
            module.to(compute)


def be_deterministic(wanted: bool) -> None:
    """Let operations give the same bits each time they run on the same device and versions, or leave them as they are.

    torch then takes the deterministic form of each operation, and raises where there is none. To be called before a GPU
    multiplies matrices: cuBLAS reads its workspace from the environment once.
    """
    if wanted and os.environ.get("CUBLAS_WORKSPACE_CONFIG") not in WORKSPACES:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = WORKSPACES[0]
    torch.use_deterministic_algorithms(wanted)
    torch.backends.cudnn.deterministic = wanted


def best_device(accelerator: str = "auto") -> torch.device:
    """Return this process's own GPU, or else the CPU. Raises `UserError` where a GPU is asked for and there is none."""
    if accelerator != "cpu" and torch.cuda.is_available():
        rank = os.environ.get("LOCAL_RANK") or os.environ.get("SLURM_LOCALID", "0")  # Lightning, torchrun; SLURM
        return torch.device("cuda", int(rank))
    if accelerator in ("gpu", "cuda"):
        raise UserError(f"accelerator={accelerator}, but torch finds no GPU here. Give accelerator=auto.")
    return torch.device("cpu")


def quantisation(model: dict[str, Any], compute: torch.dtype) -> Any:
    """Return transformers' configuration of `model.quantise` (QLoRA, arXiv 2305.14314), None where there is none.

    Linear layers alone are in four bits; their products run in `compute`. Raises `UserError` without bitsandbytes.
    """
    if not model.get("quantise"):
        return None
    if not find_spec("bitsandbytes"):
        raise UserError("model.quantise=nf4 needs the package bitsandbytes. Install it: pip install bitsandbytes.")
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=model["quantise"],
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=compute,
    )


def same_in_evaluation(backbone: nn.Module) -> None:
    """Keep bitsandbytes from packing weights for a CPU, which rounds their scales after training."""
    module: Any  # a class of bitsandbytes
    for module in backbone.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False


def refuse_quantised(config: dict[str, Any], what: str) -> None:
    """Refuse to add trained weights to a base in four bits, which would round them away. Raises `UserError`."""
    if config["model"].get("quantise"):
        raise UserError(
            f"model.quantise={config['model']['quantise']} keeps the base in four bits, and {what} needs its weights. "
            "Give model.quantise=null."
        )


GROUPED = "grouped_mm"  # transformers' own, where a model says nothing else
UNDER_AUTOCAST = "grouped_mm_under_autocast"


class _Cast:
    """An experts module as `grouped_mm_experts_forward` reads it, its weights in another format."""

    def __init__(self, experts: nn.Module, dtype: torch.dtype) -> None:
        self._experts, self._dtype = experts, dtype

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._experts, name)
        return value.to(self._dtype) if isinstance(value, nn.Parameter) else value


def grouped_under_autocast(experts: nn.Module, hidden: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
    """[N, D] of hidden [N, D]: the experts `chosen` [N, k] for each token, summed with `weights` [N, k].

    Autocast does not reach transformers' grouped products: their weights, and so their inputs, are rounded here.
    """
    kind = hidden.device.type
    cast: Any = _Cast(experts, torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else experts
    result: Tensor = grouped_mm_experts_forward(cast, hidden, chosen, weights)
    return result


def is_experts(module: nn.Module) -> bool:
    """Return whether `module` holds the weights of a layer's experts as one tensor each, as grouped products need."""
    return hasattr(module, "is_transposed") and hasattr(module, "has_gate")  # as transformers' decorator leaves it


def use_autocast(backbone: PreTrainedModel) -> None:
    """Let the experts of `backbone`, where it has any, run under autocast in its format."""
    for module in filter(is_experts, backbone.modules()):
        config: Any = module.config
        if config._experts_implementation == GROUPED:
            config._experts_implementation = UNDER_AUTOCAST


ALL_EXPERTS_FUNCTIONS.register(UNDER_AUTOCAST, grouped_under_autocast)
