"""Adapters, LoRA or a mixture of them: built, saved in a run's folder, loaded, and those of earlier stages merged."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from cli.errors import UserError, reading
from encoders.backbone import check_names
from encoders.compiled import elementwise
from encoders.fused_lora import fuse_lora
from encoders.mixse import Mixing, mix, mixture_of
from records.earlier_runs import ADAPTER, Stage
from records.files import of_file, of_value, stream_seed

Config = dict[str, Any]
PLACE, TENSORS = Path(ADAPTER).parts  # PEFT's names
ROUTER = "router.safetensors"
REMEDY = "Train the run again: delete its folder and run train.py."


def is_mixture(cfg: Config) -> bool:
    """Return whether the adapter of a run is a mixture; evaluate.yaml has no such key."""
    return cfg.get("adapter", {}).get("name") == "mixse"


def mixing_of(adapter: Config) -> Mixing:
    """Return how the experts of adapter=mixse are weighed."""
    experts = adapter["experts"]
    return Mixing(
        experts if isinstance(experts, int) else len(experts), adapter["top_k"], adapter["router"], adapter["always"]
    )


def adapter_files(cfg: Config) -> list[str]:
    """Return the files of a run's adapter, in its folder; none where the backbone was frozen."""
    if cfg.get("backbone", {}).get("frozen"):  # evaluate.yaml has no such key
        return []
    if not is_mixture(cfg):
        return [ADAPTER]
    mixing = mixing_of(cfg["adapter"])
    router = [] if mixing.constant else [f"{PLACE}/{ROUTER}"]
    return [*(f"{PLACE}/{name}/{TENSORS}" for name in expert_names(mixing)), *router]


def of_adapter(cfg: Config, run: Path) -> str:
    """Return the sha256 of a run's adapter: of its files, its scaling and how a mixture weighs its experts."""
    weighed = astuple(mixing_of(cfg["adapter"])) if is_mixture(cfg) else ()
    return of_value([[of_file(run / file) for file in adapter_files(cfg)], cfg["lora"]["alpha"], *weighed])


def expert_names(mixing: Mixing) -> list[str]:
    """Return expert0, expert1, ...: PEFT's names of the adapters, in the order of adapter.experts."""
    return [f"expert{number}" for number in range(mixing.experts)]


def add_adapter(backbone: PreTrainedModel, cfg: Config, seed: int, experts: Sequence[Path] = ()) -> Any:
    """Add the adapter of `cfg` to `backbone`, as a run starts with it; return the PEFT model.

    experts: folders with an adapter_model.safetensors each; without them the experts are drawn. What is not trained has
    no gradient. Raises `UserError` as `add_lora` and `mix` do, and for experts that do not fit.
    """
    if not is_mixture(cfg):
        return add_lora(backbone, cfg["lora"], seed)
    adapted, mixing = _with_experts(backbone, cfg, seed, experts), mixing_of(cfg["adapter"])
    mixture = mix(backbone, mixing, expert_names(mixing), stream_seed(seed, "router"))
    mixture.balance = cfg["adapter"]["balance"]
    return adapted


def add_lora(backbone: PreTrainedModel, lora: dict[str, Any], seed: int) -> Any:
    """Wrap `backbone` in a PEFT model; base weights stay frozen, adapter weights are float32.

    lora: r, alpha, dropout, targets (names of linear layers). Returns the PEFT model; `backbone` is changed in place.
    Raises `UserError` where a target is no linear layer, and where PEFT takes it for the experts' tensors.
    """
    from peft import get_peft_model

    config = lora_config(backbone, lora)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            adapted = get_peft_model(backbone, config)
        except ValueError as error:
            remedy = "Leave out the experts' layers, or give lora.dropout=0."
            raise UserError(f"PEFT refuses lora.targets={lora['targets']}: {error} {remedy}") from error
    if elementwise(backbone) == "torch":
        fuse_lora(backbone)
    return adapted


def lora_config(backbone: PreTrainedModel, lora: dict[str, Any]) -> Any:
    """Return PEFT's configuration of `lora`. Raises `UserError` where a target names no linear layer."""
    from peft import LoraConfig

    linear = (torch.nn.Linear, Conv1D)  # GPT-2's layers of that name are linear ones with transposed weights
    names = sorted({name.rsplit(".", 1)[-1] for name, m in backbone.named_modules() if isinstance(m, linear)})
    if absent := sorted(set(lora["targets"]) - set(names)):
        raise UserError(f"lora.targets names {absent}, not in this model. Give lora.targets=[{','.join(names)}].")
    transposed = any(isinstance(m, Conv1D) for m in backbone.modules())
    sizes = {"r": lora["r"], "lora_alpha": lora["alpha"], "lora_dropout": lora["dropout"]}
    return LoraConfig(**sizes, target_modules=list(lora["targets"]), fan_in_fan_out=transposed)


def _with_experts(backbone: PreTrainedModel, cfg: Config, seed: int, experts: Sequence[Path]) -> Any:
    from peft import get_peft_model, set_peft_model_state_dict

    config = lora_config(backbone, cfg["lora"])
    first, *others = names = expert_names(mixing_of(cfg["adapter"]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        adapted = get_peft_model(backbone, config, adapter_name=first)
        for name in others:
            adapted.add_adapter(name, config)
    for name, folder in zip(names, experts):  # noqa: B905  (without folders all stay as they are drawn)
        tensors = load_file(folder / TENSORS)
        check_names(str(folder / TENSORS), peft_tensors(adapted, name), tensors, REMEDY)
        set_peft_model_state_dict(adapted, tensors, adapter_name=name)
    adapted.base_model.set_adapter(names)
    for name, parameter in backbone.named_parameters():
        if in_adapter(name):
            parameter.requires_grad_(cfg["adapter"]["trains"] == "experts")
    return adapted


def in_adapter(name: str) -> bool:
    """Return whether a parameter of a backbone, by its name, is of its adapter."""
    return ".lora_" in name or name.startswith("mixture.")


def peft_tensors(adapted: Any, name: str) -> dict[str, torch.Tensor]:
    """Return the tensors of an adapter under the names of its file."""
    from peft import get_peft_model_state_dict

    tensors: dict[str, torch.Tensor] = get_peft_model_state_dict(
        adapted, adapter_name=name, save_embedding_layers=False
    )
    return tensors


def save_adapter(adapted: Any, folder: Path) -> None:
    """Write an adapter in PEFT's format into `folder`; of a mixture one in a folder for each expert, and the router."""
    for config in adapted.peft_config.values():
        if isinstance(config.target_modules, set):  # whose order is another one in each process
            config.target_modules = sorted(config.target_modules)
    adapted.save_pretrained(str(folder), save_embedding_layers=False)
    mixture = mixture_of(adapted.get_base_model())
    if mixture is not None and mixture.router is not None:
        save_file({"router": mixture.router.detach().contiguous()}, folder / ROUTER)


def load_adapter(backbone: PreTrainedModel, cfg: Config, run: Path, merged: bool) -> PreTrainedModel:
    """Add the trained adapter of the run folder `run`; return the backbone with it.

    merged: add it to the weights where all tokens have the same sum. Raises `UserError` where names do not fit,
    RuntimeError for shapes.
    """
    from peft import PeftModel

    if not is_mixture(cfg):
        lora: Any = PeftModel.from_pretrained(backbone, str(run / PLACE), torch_device=str(backbone.device))
        # PEFT draws what is absent
        check_names(str(run / ADAPTER), peft_tensors(lora, "default"), load_file(run / ADAPTER), REMEDY)
        if merged:
            return lora.merge_and_unload()
        if elementwise(backbone) == "torch":
            fuse_lora(backbone)  # as in training: in bf16 another order of sums is another rounding
        return backbone
    mixing = mixing_of(cfg["adapter"])
    names = expert_names(mixing)
    folders = [run / PLACE / name for name in names]
    if not (merged and mixing.constant):
        add_adapter(backbone, cfg, 0, folders)
        mixture = mixture_of(backbone)
        if mixture is not None and mixture.router is not None:
            mixture.load_state_dict(load_file(run / PLACE / ROUTER))
        return backbone
    adapted = _with_experts(backbone, cfg, 0, folders)
    modules: list[Any] = [module for module in backbone.modules() if hasattr(module, "lora_A")]
    for name, weight in zip(names, mixing.constant, strict=True):
        for module in modules:
            module.scaling[name] *= weight
    return adapted.merge_and_unload(adapter_names=names)


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
    if unknown := [key for key in PLAIN if getattr(named, key, None)]:
        raise UserError(f"The stage {stage.folder} is no plain LoRA ({unknown[0]}), so it cannot be merged here.")
    scaling = named.lora_alpha / named.r
    names = [name for name, _ in backbone.named_modules() if check_target_module_exists(named, name)]
    wanted = [f"{PREFIX}{name}.lora_{part}.weight" for name in names for part in "AB"]
    check_names(str(file), wanted, tensors, AGAIN)
    a, b = ({name: tensors[f"{PREFIX}{name}.lora_{part}.weight"].float() for name in names} for part in "AB")
    return {name: (scaling, a[name], b[name]) for name in names}
