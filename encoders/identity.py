"""All that hidden states depend on, besides a text's tokens: one list for every cache and every manifest."""

import importlib.metadata
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.utils import cached_file

from encoders.attention.pattern import pattern_of
from encoders.backbone import load_config, model_path, of_hub
from encoders.compiled import elementwise
from encoders.precision import Precision
from records.files import of_file, of_files, of_value
from records.manifest import VERSIONS

ROOT = Path(__file__).resolve().parent.parent
Config = dict[str, Any]
TOKENIZER_PREFIXES = ("tokenizer", "special_tokens", "added_tokens", "vocab", "merges", "spiece", "sentencepiece")
# of config.json: who wrote the file and how, which nothing that is computed here depends on
OF_THE_FILE = ("transformers_version", "_name_or_path", "architectures", "torch_dtype", "dtype")


def sources() -> str:
    """Return the digest over encoders/ but its export/, and over poolers/: the code that makes states and vectors."""
    files = [*(ROOT / "encoders").rglob("*.py"), *(ROOT / "poolers").rglob("*.py")]
    return of_value({p.relative_to(ROOT).as_posix(): of_file(p) for p in files if p.parent.name != "export"})


def base_folder(model: Config) -> Path:
    """Return the folder of the base; of a hub model, that of its commit in the local cache."""
    path = Path(model_path(model["path"]))
    return path if path.is_dir() else Path(str(cached_file(str(path), "config.json", **of_hub(model)))).parent


def base_revision(model: Config) -> dict[str, str]:
    """Return the commit of a hub model, as `base_revision`; nothing of a folder."""
    return {} if Path(model_path(model["path"])).is_dir() else {"base_revision": base_folder(model).name}


def base_fingerprints(model: Config) -> dict[str, str]:
    """sha256 of the base's weights, of its tokenizer's files, and of config.json's values and its own code: `BASE`."""
    path = base_folder(model)
    written = json.loads((path / "config.json").read_text(encoding="utf-8"))
    if model.get("trust_remote_code"):
        written["code"] = of_files(path.glob("*.py"))
    return {
        "base_weights_sha256": of_files(sorted(path.glob("*.safetensors"))),
        "tokenizer_sha256": of_files(p for p in path.iterdir() if p.name.startswith(TOKENIZER_PREFIXES)),
        "base_config_sha256": of_value({key: value for key, value in written.items() if key not in OF_THE_FILE}),
    }


def deciding(cfg: Config, merged: Sequence[Config], precision: Precision) -> Config:
    """Return all that decides a state: where two encoders differ here, the same tokens have other states.

    The base's files, the configuration that its backbone is built with, merged stages, attention and number formats.
    """
    shape = load_config(cfg["model"])
    return {
        **base_fingerprints(cfg["model"]),
        **({"merged": [stage["adapter_sha256"] for stage in merged]} if merged else {}),
        "model": {k: v for k, v in shape.to_dict().items() if not k.startswith("_") and k not in OF_THE_FILE},
        "attention": pattern_of(cfg["attn"]).identity,
        **({"prepended": prepended} if (prepended := (cfg.get("template") or {}).get("prepended")) else {}),
        "precision": precision.name,
        "tf32": cfg["tf32"],
        "deterministic": cfg["deterministic"],
        "quantise": cfg["model"]["quantise"],
    }


def execution(backbone: PreTrainedModel) -> Config:
    """Return kernel, what computes element-wise passes, a CPU's instruction sets, device, number of threads."""
    device = next(backbone.parameters()).device
    return {
        "elementwise": elementwise(backbone),
        "instruction_sets": instruction_sets() if device.type == "cpu" else None,
        "kernel": backbone.config._attn_implementation,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": torch.get_num_threads() if device.type == "cpu" else None,
    }


def instruction_sets() -> dict[str, str | None]:
    """Return the instruction sets of the processor that may be used, since other ones move the last bits of a number.

    `torch`: the set of its own loops. `onednn`: the limit that the environment sets to its products, or null.
    """
    limits = (os.environ.get(f"{library}_MAX_CPU_ISA") for library in ("ONEDNN", "DNNL"))
    return {"torch": torch.backends.cpu.get_cpu_capability(), "onednn": next(filter(None, limits), None)}


def versions(*further: str) -> dict[str, str]:
    """Return the versions of the libraries that compute states, and of `further` ones."""
    return {name: importlib.metadata.version(name) for name in (*VERSIONS, *further)}
