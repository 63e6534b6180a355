"""The contestants of each comparison: a step of ours, and others on the same batches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.speed.dense_limit import DenseStep
from benchmarks.speed.reference_step import ReferenceStep
from benchmarks.speed.sentence_transformers_step import PeerStep
from benchmarks.speed.setting import Setting
from benchmarks.speed.step import OurStep, Step

KERNELS = ("sdpa", "eager")
ROWS = (2048, 8192)  # tokens of a dense forward pass
MINI_BATCHES = (
    {"mini_batch_size": 16},
    {"mini_batch_size": 32},
    {"mini_batch_size": 64},
    {"mini_batch_num_tokens": 2048},
)
Variants = Mapping[str, Callable[[], Step]]  # several settings of one contestant; the quickest is measured


@dataclass(frozen=True)
class Heat:
    """subject and others: contestants by name. alike: those that compute the subject's loss."""

    subject: str
    setting: Setting
    contestants: dict[str, Variants]
    alike: tuple[str, ...] = ()


def heat(kind: str, base: Setting) -> Heat:
    """The heat `kind`, one of `HEATS`, with model, lengths, precision and dropout of `base`."""
    setting = replace(base, **CELLS[kind])
    them = "sentence-transformers"
    if kind == "eos":
        others = {them: peers(setting), "dense limit": dense(setting)}
        others["GradCache, ours"] = ours(replace(setting, gradcache=True))
        return Heat(setting.cell, setting, {setting.cell: ours(setting), **others}, (them, "GradCache, ours"))
    if kind == "multilayer":
        others = {them: peers(setting), "dense limit, eos": dense(setting)}
        others["eos x bi, ours"] = ours(replace(setting, pooler="eos"))
        return Heat(setting.cell, setting, {setting.cell: ours(setting), **others}, (them,))
    if kind == "reference":
        theirs = {k: partial(ReferenceStep, setting.config(), k) for k in KERNELS}
        name = "reference trainer"
        return Heat(setting.cell, setting, {setting.cell: ours(setting), name: theirs}, (name,))
    name = "sentence-transformers, Cached"
    subject = f"{setting.cell}, GradCache"
    return Heat(subject, setting, {subject: ours(setting), name: cached_peers(setting)}, (name,))


CELLS: dict[str, dict] = {
    "eos": {"pooler": "eos", "attn": "causal"},
    "multilayer": {"pooler": "multilayer", "attn": "bi"},
    "reference": {"pooler": "multilayer", "attn": "bi", "head": "reference_code"},
    "gradcache": {"pooler": "eos", "attn": "causal", "gradcache": True},
}
HEATS = tuple(CELLS)


def ours(setting: Setting) -> Variants:
    """As configured: one variant."""
    return {"": partial(OurStep, setting.config())}


def peers(setting: Setting) -> Variants:
    """MultipleNegativesRankingLoss with either attention kernel."""
    return {k: partial(PeerStep, setting.config(), k) for k in KERNELS}


def cached_peers(setting: Setting) -> Variants:
    """CachedMultipleNegativesRankingLoss with either kernel and several mini-batches."""
    return {
        f"{k}, {name}={value}": partial(PeerStep, setting.config(), k, {name: value})
        for k in KERNELS
        for mini in MINI_BATCHES
        for name, value in mini.items()
    }


def dense(setting: Setting) -> Variants:
    """The dense limit with either kernel, in smaller and larger passes."""
    return {
        f"{k}, passes of {rows} tokens": partial(DenseStep, setting.config(), k, rows) for k in KERNELS for rows in ROWS
    }
