"""A manifest -> the flat keys that must agree: what can move a score, and neither bookkeeping nor outcomes."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from records.config import flat
from records.identity import BASE, below
from records.run_folder import BOOKKEEPING

SINGLE = (*BASE, "precision", "kernel", "device", "threads")
NESTED = ("dtypes", "versions", "seeds")
PARTS = {"data": ("sha256",), "machine": ("processor", "cores")}
SCORED = ("instructions", "max_length", "mteb", "seed")  # of `evaluation`; inputs and revisions go by task
# One seed draws one order of batches, so these are compared between runs of the same seed only.
SEED_BOUND = ("batch_order_sha256", "steps", "seeds", "lineage.adapters")
# Wishes in the configuration whose outcome the manifest states: precision=auto and =fp32 may be the same thing.
WISHES = ("precision", "accelerator", "threads", "trainer.threads", "lineage")
# What conf/evaluate.yaml adds to the configuration of a reference without a run; `evaluation` states its outcome.
SCORING_WORDS = (
    *("run", "untrained", "tasks_dir", "tasks", "benchmark", "instructions", "results", "predictions"),
    *("plan", "embeddings", "readings"),
)
UNCOMPARED = (*BOOKKEEPING, *WISHES, *SCORING_WORDS, "progress")


def profile(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return key -> value as text, for every key that is compared; what the manifest lacks is absent."""
    keys = {key: value for key, value in flat(manifest["config"]).items() if not below(key, UNCOMPARED)}
    return {key: as_text(value) for key, value in {**keys, **dict(_facts(manifest))}.items()}


def as_text(value: Any) -> str:
    """Return a value as one writes it on the command line, lists and objects as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in (*SINGLE, "batch_order_sha256", "steps"):
        if key in manifest:
            yield key, manifest[key]
    for group in (*NESTED, *PARTS):
        for key, value in _object(manifest, group).items():
            if key in PARTS.get(group, (key,)) and not (group == "dtypes" and value is None):
                yield f"{group}.{key}", value
    stages = manifest.get("lineage") or ()  # the runs that were merged into the base before
    if stages:
        yield "lineage.objectives", [stage["objective"] for stage in stages]
        yield "lineage.adapters", [stage["adapter_sha256"] for stage in stages]
    for module, digest in _object(_object(manifest, "code"), "modules").items():
        yield f"code.modules.{module}", digest
    evaluation = _object(manifest, "evaluation")
    yield from ((f"evaluation.{key}", evaluation[key]) for key in SCORED if key in evaluation)
    for part in ("encoder", "inputs", "tasks"):  # encoder: number formats, kernel, device, threads
        yield from ((f"evaluation.{part}.{name}", value) for name, value in _object(evaluation, part).items())


def _object(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
