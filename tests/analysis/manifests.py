"""Valid manifests, as a run on the bundled default would leave them, and a planted change in any key."""

from typing import Any

from records.files import of_value
from records.manifest import sealed

HEAD = {"num_queries": 16, "num_heads": 4}
TRAINABLE = ("lastlayer", "multilayer")


def manifest(pooler: str, attn: str, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a manifest that is not sealed yet.

    changes: `lora__r=8` sets the configuration's lora.r, `_data__sha256=...` the manifest's own data.sha256; None
    removes the key.
    """
    tokens = {"lastlayer": "all", "multilayer": "last" if attn == "causal" else "mean"}.get(pooler)
    own = {"tokens": tokens, **HEAD} if pooler in TRAINABLE else {}
    config = {
        "study": "s", "seed": seed, "runs_dir": "runs", "cache_dir": "cache", "precision": "auto", "max_length": 64,
        "accelerator": "auto", "token_budget": 2048, "head": dict(HEAD),
        "pooler": {"name": pooler, **own},
        "attn": {"name": attn, "tokens": "last" if attn == "causal" else "mean"},
        "model": {"name": "tiny", "path": "assets/tiny"}, "data": {"name": "docstrings", "validation": 128},
        "objective": {"name": "infonce", "temperature": 0.05, "lr": 0.002}, "lora": {"r": 16, "dropout": 0.1},
        "trainer": {"max_steps": 40, "global_batch_size": 64, "threads": None, "progress": True},
        "logging": {"csv": True},
    }  # fmt: skip
    value = {
        "manifest_version": 3, "study": "s", "pooler": pooler, "attn": attn, "seed": seed, "status": "finished",
        "config": config, "data": {"sha256": of_value("data"), "triples": 1000, "trained_on": 900, "packages": {}},
        "base_weights_sha256": of_value("base"), "tokenizer_sha256": of_value("tokenizer"), "precision": "mixed",
        "dtypes": {"weights": "float32", "compute": "bfloat16", "head": "float32" if own else None},
        "kernel": "eager", "elementwise": "torch", "device": "cpu", "threads": 4,
        "parameters": {"adapter": 590_000, "head": 10_000 if own else 0, "base": 6_800_000},
        "seeds": {s: int(of_value([s, seed])[:8], 16) for s in ("data", "dropout", "adapter", "head", "evaluation")},
        "code": {"commit": "abc", "dirty": False, "sha256": of_value("sources"), "pooler": of_value(pooler)},
        "versions": {"python": "3.12.3", "torch": "2.9.0", "mteb": "2.20.0"},
        "machine": {"processor": "x86"},
        "batch_order_sha256": of_value(["order", seed]), "steps": 40, "tokens": 10**6, "flops": 2 * 10**12,
        "seconds": 100.0 + seed,
        "tokens_per_second": 9000.0 + 1000 * seed, "peak_memory_bytes": (500 + seed) * 2**20, "loss": 1.0,
    }  # fmt: skip
    for path, new in changes.items():
        _plant(value if path.startswith("_") else config, path.lstrip("_").split("__"), new)
    return value


def evaluation(tasks: list[str]) -> dict[str, Any]:
    """Return how the run was scored on `tasks`."""
    return {
        "fingerprint": "f" * 64, "instructions": "none", "instructions_used": {}, "max_length": 64, "mteb": "2.20.0",
        "seed": 42, "encoder": {"compute": "bfloat16", "kernel": "eager", "device": "cpu", "threads": 1},
        "tasks": dict.fromkeys(tasks, "r1"),
        "inputs": {f"{t} test default": of_value(t) for t in tasks},
        "texts": 10, "tokens": 100, "seconds": 1.0,
        "overlap": {t: {"texts": 100, "exact": 0} for t in tasks},
    }  # fmt: skip


def untrained(value: dict[str, Any]) -> dict[str, Any]:
    """Return what stands beside the scores of a run's start."""
    kept = ("manifest_version", "study", "pooler", "attn", "seed", "config", "base_weights_sha256", "tokenizer_sha256")
    return {key: value[key] for key in (*kept, "precision")} | {"status": "untrained"}


def seal(value: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest as the program writes it."""
    return sealed(value)


def _plant(value: dict[str, Any], path: list[str], new: Any) -> None:
    for key in path[:-1]:
        value = value.setdefault(key, {})
    if new is None:
        value.pop(path[-1], None)
    else:
        value[path[-1]] = new
