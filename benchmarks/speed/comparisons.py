"""The contestants of each comparison: a step of ours, and others on the same batches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from benchmarks.speed.dense_limit import DenseStep
from benchmarks.speed.reference_step import ReferenceStep
from benchmarks.speed.sentence_transformers_step import PeerStep
from benchmarks.speed.setting import Setting
from benchmarks.speed.step import OurStep, Step

KERNELS = ("sdpa", "eager")
ROWS = (2048, 8192)  # tokens of a dense forward pass
MINI_BATCHES = (("mini_batch_size", 16), ("mini_batch_size", 32), ("mini_batch_size", 64))
MINI_BATCHES += (("mini_batch_num_tokens", 2048),)
PEER, OURS_IN_CHUNKS = "sentence-transformers", "GradCache, ours"
Variants = Mapping[str, Callable[[], Step]]  # several settings of one contestant; the quickest is measured
CELLS: dict[str, dict] = {
    "eos": {"pooler": "eos", "attn": "causal"},
    "multilayer": {"pooler": "multilayer", "attn": "bi"},
    "reference": {"pooler": "multilayer", "attn": "bi", "head": "reference_code"},
    "gradcache": {"pooler": "eos", "attn": "causal", "gradcache": True},
}
HEATS = tuple(CELLS)


@dataclass(frozen=True)
class Heat:
    """subject and others: contestants by name. alike: those that compute the subject's loss."""

    subject: str
    setting: Setting
    contestants: dict[str, Variants]
    alike: tuple[str, ...]


def heat(kind: str, base: Setting) -> Heat:
    """The heat `kind`, one of `HEATS`, with model, lengths, precision and dropout of `base`."""
    setting = replace(base, **CELLS[kind])
    subject, config = setting.cell, setting.config()
    peers: Variants = {k: partial(PeerStep, config, k) for k in KERNELS}
    others: dict[str, Variants]
    if kind == "eos":
        others = {PEER: peers, "dense limit": dense(DenseStep, config)}
        others[OURS_IN_CHUNKS] = ours(replace(setting, gradcache=True))
    elif kind == "multilayer":
        others = {PEER: peers, "dense limit, eos": dense(DenseStep, config)}
        others["eos x bi, ours"] = ours(replace(setting, pooler="eos"))
    elif kind == "reference":
        others = {"reference trainer": {k: partial(ReferenceStep, config, k) for k in KERNELS}}
    else:
        subject += ", GradCache"
        mini = {f"{k}, {name}={n}": (k, {name: n}) for k in KERNELS for name, n in MINI_BATCHES}
        others = {f"{PEER}, Cached": {label: partial(PeerStep, config, *how) for label, how in mini.items()}}
    alike = {"eos": (PEER, OURS_IN_CHUNKS), "multilayer": (PEER,)}.get(kind, tuple(others))
    return Heat(subject, setting, {subject: ours(setting), **others}, alike)


def ours(setting: Setting) -> Variants:
    """As configured: one variant."""
    return {"": partial(OurStep, setting.config())}


def dense(kind: Callable[..., Any], config: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """The dense limit, a step or an encoding, with either kernel, in smaller and larger passes."""
    return {f"{k}, passes of {rows} tokens": partial(kind, config, k, rows) for k in KERNELS for rows in ROWS}
