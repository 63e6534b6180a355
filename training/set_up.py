"""Build what a run starts from: encoder, tokenizer, LoRA, new or combined of finished runs; write what it trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from peft.utils.merge_utils import dare_linear, dare_ties, task_arithmetic, ties
from safetensors.torch import save_file
from torch import Tensor, nn

from cli.errors import UserError
from corpora.triples import Triple
from encoders.adapter import add_adapter, factors_of, save_adapter
from encoders.attention.switch import is_unpadded
from encoders.encoder import Encoder
from encoders.fused_lora import ADAPTER as LORA
from encoders.identity import base_fingerprints
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import Precision, best_device, resolve_precision, store_as_computed
from encoders.text_encoder import TextEncoder, by_token_budget, usual_budget
from encoders.tokens import TextTokenizer, Tokens
from records.earlier_runs import ADAPTER, read_starts
from records.files import replacing, stream_seed
from records.manifest import check_base
from training.batches import query_side
from training.large_batch import ChunkPlan, LargeBatch

Config = dict[str, Any]
SUMS = ("uniform", "sum")
SPARSE = {"ties": ties, "dare_ties": dare_ties, "dare_linear": dare_linear}
COMBINE = (*SUMS, *SPARSE)


@dataclass(frozen=True)
class SetUp:
    """The start of a run for an objective. work: the encoder in training mode, and how a global batch is run.

    adapted: the PEFT model; None where the backbone is frozen. run: the run's folder, for messages.
    """

    config: Config
    encoder: Encoder
    tokenizer: TextTokenizer
    work: LargeBatch
    adapted: PeftModel | None
    precision: Precision
    run: str = ""

    def text_encoder(self) -> TextEncoder:
        """Return the encoder as evaluation uses it: texts in, vectors out, without dropout."""
        return TextEncoder(self.encoder, self.tokenizer, "", usual_budget(self.config))


def set_up(config: Config, run: str = "") -> SetUp:
    """Build what `config` describes. Raises `UserError` for devices, stages and sizes that do not fit."""
    t = config["trainer"]
    device = best_device(config["accelerator"])
    check_devices(t["devices"], device)
    precision = resolve_precision(config["precision"], device)
    encoder, adapted = build_encoder(config, precision, device), None
    if encoder.backbone.config.model_type == "phimoe":
        raise UserError("PhiMoE's routers draw experts at random in training, by no seed of a run. Give another base.")
    if config["backbone"]["frozen"]:
        from encoders.frozen import open_states

        encoder = open_states(encoder, config, precision)
    else:
        experts = read_starts(config, "adapter.experts")
        check_base({run.folder: run.manifest for run in experts}, base_fingerprints(config["model"]))
        seed = stream_seed(config["seed"], "adapter")
        adapted = add_adapter(encoder.backbone, config, seed, [(e.folder / ADAPTER).parent for e in experts])
        encoder.start = {"experts": [e.facts for e in experts]} if experts else start_lora(encoder.backbone, config)
        store_as_computed(encoder.backbone, encoder.compute)
        if t["gradient_checkpointing"]:
            encoder.backbone.gradient_checkpointing_enable({"use_reentrant": False})
            encoder.backbone.enable_input_require_grads()
    tokenizer = build_tokenizer(config, encoder.backbone.config.get_text_config().max_position_embeddings)
    plan = ChunkPlan(usual_budget(config), t["chunk_size"], t["gradcache"], t["sync_gradients"])
    work = LargeBatch(encoder.train(), tokenizer, plan, config["seed"])
    return SetUp(config, encoder, tokenizer, work, adapted, precision, run)


def check_devices(devices: int, device: torch.device) -> None:
    """Refuse more processes than GPUs."""
    if device.type == "cuda" and devices > torch.cuda.device_count():
        raise UserError(f"trainer.devices={devices}, but this machine has {torch.cuda.device_count()} GPU. Lower it.")


@torch.no_grad()
def fit_statistics(encoder: Encoder, tokenizer: TextTokenizer, rows: Sequence[Tokens], budget: int) -> None:
    """Set the statistics of `encoder`'s pooler to those of `rows`, encoded as it stands, without dropout."""
    pooler: Any = encoder.pooler  # one that has statistics
    training = encoder.training
    device = next(encoder.backbone.parameters()).device
    encoder.eval()
    chunks = by_token_budget([len(r) for r in rows], budget, padded=not is_unpadded(encoder.backbone))
    batches = (tokenizer.batch([rows[i] for i in chunk]).to(device) for chunk in chunks)
    pooler.fit([pooler.parts(encoder.states(batch)) for batch in batches])
    encoder.train(training)


def sample(config: Config, triples: Sequence[Triple], tokenizer: TextTokenizer) -> list[Tokens]:
    """Queries and positives of every k-th triple, `pooler.standardise_texts` texts in all or as many as there are."""
    pairs = max(1, config["pooler"]["standardise_texts"] // 2)
    chosen = triples[:: max(1, len(triples) // pairs)][:pairs]
    template, instruction = tokenizer.template, config["data"].get("instruction")
    queries = [(query_side(t, instruction, template), t.query) for t in chosen]
    return tokenizer.pairs([*queries, *((template.asked("", "document"), t.positive) for t in chosen)])


def save_trained(encoder: Encoder, adapted: PeftModel | None, folder: Path) -> list[str]:
    """Write <folder>/head.safetensors and, unless the backbone was frozen, <folder>/adapter (PEFT's format).

    Returns the names of the files that a run is read from, below `folder`.
    """
    if adapted is not None:
        with replacing(folder / "adapter") as draft:
            save_adapter(adapted, draft)
    with replacing(folder / "head.safetensors") as draft:
        save_file({k: v.contiguous() for k, v in encoder.pooler.state_dict().items()}, draft)
    adapter = sorted(folder.glob("adapter/**/*")) if adapted is not None else []
    read = [path for path in adapter if path.suffix in (".safetensors", ".json")]
    return [*(path.relative_to(folder).as_posix() for path in read), "head.safetensors"]


def check_start(config: Config) -> None:
    """Refuse what does not fit `init.lora`, before a run is read. Raises `UserError`."""
    runs, weights = config["init"]["lora"] or [], config["init"]["weights"]
    if runs and config["backbone"]["frozen"]:
        raise UserError("backbone.frozen=true trains no LoRA, so init.lora has no effect. Leave one of them out.")
    if weights is not None and not (isinstance(weights, list) and len(weights) == len(runs)):
        raise UserError(f"init.weights={weights} must be {len(runs)} numbers, one for each run of init.lora.")


@torch.no_grad()
def start_lora(backbone: nn.Module, config: Config) -> Config:
    """Give the LoRA of `backbone` the combined adapters of the runs of `init.lora`; return facts for the manifest.

    `start`: the runs; `start_truncation`: norm of what rank `lora.r` cannot hold over the norm of the combination, all
    layers together. Nothing is changed where there are none. Raises `UserError` for runs that do not fit.
    """
    starts, lora, init = read_starts(config, "init.lora"), config["lora"], config["init"]
    if not starts:
        return {}
    check_base({run.folder: run.manifest for run in starts}, base_fingerprints(config["model"]))
    adapters, scaling = [factors_of(start, backbone) for start in starts], lora["alpha"] / lora["r"]
    usual = 1 / len(starts) if init["combine"] in ("uniform", "dare_linear") else 1.0
    weights = init["weights"] or [usual] * len(starts)
    lost = whole = 0.0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(config["seed"], "combine"))
        for name in adapters[0]:
            parts = [(scale / scaling, a, b) for scale, a, b in (adapter[name] for adapter in adapters)]
            a, b, left_out = combined(parts, weights, init["combine"], init["density"], lora["r"])
            layer: Any = backbone.get_submodule(name)  # ranks that are left keep the start that the seed drew
            layer.lora_A[LORA].weight[: len(a)] = a
            layer.lora_B[LORA].weight[:, : len(a)] = b
            out = float(left_out.square().sum())
            lost, whole = lost + out, whole + out + float((b.T @ b * (a @ a.T)).sum())
    return {"start": [start.facts for start in starts], "start_truncation": (lost / whole) ** 0.5 if whole else 0.0}


def combined(
    parts: Sequence[tuple[float, Tensor, Tensor]], weights: Sequence[float], how: str, density: float, rank: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return A [k, D_in] and B [D_out, k], k at most `rank`, and the singular values that they leave out.

    parts: (scaling, A [r, D_in], B [D_out, r]) of each adapter. B A is the sum of weight x scaling x B_i A_i, or what
    PEFT's TIES and DARE make of the products. Sums keep the factors as they are where they fit, side by side; all else
    is the best approximation of that rank (Eckart and Young 1936), its singular values shared by both factors.
    """
    ranks = sum(len(a) for _, a, _ in parts)
    if how in SUMS and ranks <= rank:
        shares = [weight * scaling for weight, (scaling, _, _) in zip(weights, parts, strict=True)]
        a = torch.cat([a * abs(share) ** 0.5 for share, (_, a, _) in zip(shares, parts, strict=True)])
        b = [b * copysign(abs(share) ** 0.5, share) for share, (_, _, b) in zip(shares, parts, strict=True)]
        return a, torch.cat(b, dim=1), a.new_zeros(0)
    products = [scaling * (b @ a) for scaling, a, b in parts]
    given = torch.tensor(weights, dtype=products[0].dtype)
    change = SPARSE[how](products, given, density) if how in SPARSE else task_arithmetic(products, given)
    u, s, v = torch.linalg.svd(change, full_matrices=False)
    root = s[:rank].sqrt()
    return root[:, None] * v[:rank], u[:, :rank] * root, s[rank:]
