"""An encoder from a configuration (untrained) or from a run folder (trained)."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from cli.errors import UserError, reading
from encoders.adapter import REMEDY, adapter_files, is_mixture, load_adapter, merge_stages, of_adapter
from encoders.attention.pattern import earlier, pattern_of
from encoders.attention.prepending import prepend
from encoders.attention.probe import probe
from encoders.attention.switch import attentions, parts, set_attention
from encoders.backbone import check_names, load_backbone, load_tokenizer
from encoders.compiled import compile_layers
from encoders.encoder import Encoder, experts_of, prove_routers
from encoders.identity import base_fingerprints, deciding
from encoders.precision import (
    Precision,
    be_deterministic,
    best_device,
    refuse_quantised,
    resolve_precision,
    store_as_computed,
)
from encoders.templates import DEFAULT, GLUED, Template, template_of
from encoders.text_encoder import TextEncoder, usual_budget
from encoders.tokens import TextTokenizer, check_positions
from poolers.shared.base import Pooler
from poolers.shared.registry import build_pooler, reads_padding, refuse_blind
from records.earlier_runs import Stage, read_stages, recorded_stages
from records.files import of_tensors, of_value, stream_seed
from records.manifest import check_base, read_manifest
from records.run_folder import START

Config = dict[str, Any]


def build_encoder(
    cfg: Config,
    precision: Precision,
    device: torch.device,
    stages: Sequence[Stage] | None = None,
    others: Sequence[Config] = (),
) -> Encoder:
    """Build backbone, attention and pooler of `cfg`, the head at its seeded start; refuse attention that leaks.

    stages: merged into the backbone; None: those of cfg["init"]["merge"]. others: poolers that read the same backbone.
    """
    torch.backends.cuda.matmul.allow_tf32 = cfg["tf32"]  # a CPU has no such units
    be_deterministic(cfg["deterministic"])
    stages = read_stages(cfg["init"]["merge"]) if stages is None else stages
    if stages:
        refuse_quantised(cfg, "init.merge=")
        check_base({stage.folder: stage.manifest for stage in stages}, base_fingerprints(cfg["model"]))
    padding = any(map(reads_padding, (cfg["pooler"], *others)))
    # straight to a GPU, or each process would hold all weights in host memory first
    backbone = load_backbone(cfg["model"], precision.weights, padding, None if device.type == "cpu" else device)
    merge_stages(backbone, stages)
    backbone.to(device)  # type: ignore[arg-type]
    pattern = pattern_of(cfg["attn"])
    set_attention(backbone, pattern)
    layers = parts(backbone)[0]
    if cfg["padding_side"] == "left" and not all(map(attentions, layers)):  # a recurrent layer reads padding before it
        raise UserError("padding_side=left: a layer of this base may read padding. Give padding_side=right.")
    prepend(backbone, layers, template_of(cfg).prepended)
    probe(backbone, pattern, cfg["max_length"])
    shape = backbone.config.get_text_config()
    causal = [mask_fn is earlier for mask_fn in pattern.of_layers(shape.num_hidden_layers)]
    for pooler_config in (cfg["pooler"], *others):
        refuse_blind(pooler_config, all(causal[: pooler_config.get("layer", len(causal)) + 1]))
    seed, experts = stream_seed(cfg["seed"], "head"), experts_of(backbone)
    pooler = build_pooler(cfg["pooler"], shape.hidden_size, shape.num_hidden_layers, seed, experts).to(device)
    prove_routers(backbone, [pooler])
    again = cfg.get("trainer", {}).get("gradient_checkpointing")  # evaluate.yaml has no such key
    compile_layers(backbone, cfg["compile"], usual=not (is_mixture(cfg) or again))
    encoder = Encoder(backbone, pooler, cfg["normalize"], precision.compute)
    encoder.merged = [stage.facts for stage in stages]
    return encoder


def build_tokenizer(cfg: Config, positions: int, template: Template | None = None) -> TextTokenizer:
    """Build the tokenizer of `cfg`; `max_length` must fit into `positions`. template: another than that of `cfg`."""
    check_positions(cfg, positions)
    template = template or template_of(cfg)
    return TextTokenizer(load_tokenizer(cfg["model"]), cfg["max_length"], cfg["padding_side"], template)


def _text_tokenizer(cfg: Config, positions: int) -> TextTokenizer:
    """The tokenizer of evaluation: `cfg["evaluation"]` may shorten texts and glue instructions to them."""
    glued = cfg["evaluation"]["glued"]
    if glued and (own := template_of(cfg)) != DEFAULT:
        raise UserError(f"evaluation.glued=true leaves no place for template={own.name}. Leave one of them out.")
    return build_tokenizer({**cfg, "max_length": _cut(cfg)}, positions, GLUED if glued else None)


def _cut(cfg: Config) -> int:
    """The number of tokens after which evaluation cuts a text."""
    return max(4, round(cfg["max_length"] * cfg["evaluation"]["max_length_share"]))


def untrained(cfg: Config) -> TextEncoder:
    """Return the start of a run: LoRA is the identity there and left out; the head is as the seed draws it."""
    return loaded(cfg, None)


def load_run(folder: Path, cfg: Config) -> TextEncoder:
    """The trained encoder of a finished run. cfg: the configuration in the run's manifest.

    LoRA is merged into float32 weights, others would round it away. Raises `UserError` where adapter or head misfit.
    """
    return loaded(cfg, folder)


def loaded(cfg: Config, run: Path | None, others: Sequence[Config] = ()) -> TextEncoder:
    """Return the encoder of a run's folder, of `start` below one, or the untrained one. others: see `build_encoder`.

    Raises `UserError` for a base that is not the run's.
    """
    cfg, weights = _on_its_base(cfg, run), _weights_folder(run)
    for part in (*adapter_files(cfg), "head.safetensors") if weights else ():
        if not (weights / part).is_file():  # type: ignore[operator]
            raise UserError(f"The run folder {weights} has no {part}. {REMEDY}")
    device = best_device(cfg["accelerator"])
    precision = _precision(cfg, device)
    encoder = build_encoder(cfg, precision, device, _stages(cfg, run), others)
    if weights:
        _load_trained(encoder, cfg, weights, precision)
    if encoder.pooler.lacks_statistics:
        raise UserError(
            "pooler.standardise=corpus needs statistics. Train with trainer.max_steps=0 and the same words, then "
            "evaluate that run, or give pooler.statistics=<run>/head.safetensors."
        )
    encoder.eval()  # no dropout of LoRA that stays apart, whoever calls it
    store_as_computed(encoder.backbone, encoder.compute)
    tokenizer = _text_tokenizer(cfg, encoder.backbone.config.get_text_config().max_position_embeddings)
    return TextEncoder(encoder, tokenizer, digest_of(cfg, run, encoder.pooler), usual_budget(cfg))


def _weights_folder(run: Path | None) -> Path | None:
    """Return the folder of an encoder's adapter and head; None for a start that no other run gave any."""
    bare = run and _run_folder(run) != run and not {"start", "experts"} & read_manifest(_run_folder(run)).keys()
    return None if bare else run


def _stages(cfg: Config, run: Path | None) -> list[Stage]:
    return recorded_stages(_run_folder(run), cfg["init"]["merge"]) if run else read_stages(cfg["init"]["merge"])


def _run_folder(run: Path) -> Path:
    """The folder of a run, also of its start, which lies one below."""
    return run.parent if run.name == START and not (run / "manifest.json").exists() else run


def _on_its_base(cfg: Config, run: Path | None) -> Config:
    """`cfg` with the commit of the hub that the run was trained on; refuse another base or tokenizer than the run's."""
    if run is None:
        return cfg
    manifest = read_manifest(_run_folder(run))
    if "base_revision" in manifest:
        cfg = {**cfg, "model": {**cfg["model"], "revision": manifest["base_revision"]}}
    check_base({_run_folder(run): manifest}, base_fingerprints(cfg["model"]))
    return cfg


def digest_of(cfg: Config, run: Path | None, head: Pooler) -> str:
    """sha256 of what decides states, of what was trained, and of the settings that move a vector."""
    cfg, weights = _on_its_base(cfg, run), _weights_folder(run)
    base = deciding(cfg, [stage.facts for stage in _stages(cfg, run)], _precision(cfg, best_device(cfg["accelerator"])))
    adapter = {"adapter": of_adapter(cfg, weights)} if weights and adapter_files(cfg) else {}
    settings = {  # what dims cut off later moves no vector
        "max_length": _cut(cfg),
        "evaluation": {k: v for k, v in cfg["evaluation"].items() if k != "dims"},
        "pooler": {**cfg["pooler"], "normalize": cfg["normalize"]},
    }
    if template_of(cfg) != DEFAULT:
        settings["template"] = {k: v for k, v in asdict(template_of(cfg)).items() if v is not None}
    if reads_padding(cfg["pooler"]):  # its vectors depend on the side of padding, and on who shares a forward pass
        settings["padding"] = [cfg["padding_side"], usual_budget(cfg)]
    return of_value([base, {"head": of_tensors(head.state_dict()), **adapter}, settings])


def _precision(cfg: Config, device: torch.device) -> Precision:
    precision = resolve_precision(cfg["precision"], device)
    formats = {None: precision.compute, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    return replace(precision, compute=formats[cfg["evaluation"]["autocast"]])


def _load_trained(encoder: Encoder, cfg: Config, run: Path, precision: Precision) -> None:
    if adapter_files(cfg):
        merged = precision.weights is torch.float32 and not cfg["model"]["quantise"]  # others round it away
        with reading(run, REMEDY):
            encoder.backbone = load_adapter(encoder.backbone, cfg, run, merged)
    load_head(encoder.pooler, run)


def load_head(pooler: Pooler, run: Path) -> None:
    """Give the pooler what was trained in the folder `run`. Raises `UserError` where it is not there or misfits."""
    with reading(run, REMEDY):
        head = load_file(run / "head.safetensors")
        check_names(str(run / "head.safetensors"), pooler.state_dict(), head, REMEDY)
        pooler.load_state_dict(head)
