"""The factors of a comparison: their values in a run, and the keys that they move by themselves."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analysis.names import suggest
from cli.compose import flat, own_keys
from cli.errors import UserError
from records.fingerprint import of_value
from records.lineage import OTHER_RUNS
from records.manifest import BASE, BOOKKEEPING, below

SINGLE = (*BASE, "precision", "kernel", "elementwise", "device", "threads", "batch_order_sha256", "steps")
NESTED = ("dtypes", "versions", "seeds")
PARTS = {"data": ("sha256",), "code": ("sha256",), "machine": ("processor", "instruction_sets")}
SCORED = ("instructions", "max_length", "mteb", "seed")  # of `evaluation`; inputs and revisions go by task
# One seed draws one order of batches, so these are compared between runs of the same seed only.
SEED_BOUND = ("batch_order_sha256", "steps", "seeds", *(f"{key}.adapters" for key in OTHER_RUNS))
# Wishes in the configuration whose outcome the manifest states: precision=auto and =fp32 may be the same thing.
WISHES = ("precision", "accelerator", "threads", "trainer.threads", *OTHER_RUNS)
# conf/evaluate.yaml adds its keys to the configuration of a reference without a run; `evaluation` states their outcome.
UNCOMPARED = (*BOOKKEEPING, *WISHES, *own_keys("evaluate"))
NAMED = ("pooler", "attn")
STARTS = {key: fact for key, fact in OTHER_RUNS.items() if key != "lineage"}
# configuration key -> facts that cannot stay the same when it is changed
MOVES = {
    "model": tuple(BASE),
    "pooler": ("dtypes.head",),  # of a pooler without parameters there is none
    "data": ("data.sha256", "batch_order_sha256", "steps"),
    "trainer.max_steps": ("batch_order_sha256", "steps"),
    "trainer.global_batch_size": ("batch_order_sha256",),
    "trainer.threads": ("threads",),
    "evaluation.autocast": ("evaluation.encoder",),
    "evaluation.max_length_share": ("evaluation.max_length",),
    "evaluation.instructions": ("evaluation.instructions", "evaluation.inputs"),
    "precision": ("precision", "elementwise", "dtypes", "evaluation.encoder"),
    "accelerator": ("device", "kernel", "elementwise", "precision", "dtypes", "evaluation.encoder"),
    "max_length": ("evaluation.max_length",),
}


def profile(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return key -> value as text, for every key that is compared; what the manifest lacks is absent."""
    keys = {key: value for key, value in flat(manifest["config"]).items() if not below(key, UNCOMPARED)}
    return {key: as_text(value) for key, value in {**keys, **flat(dict(_facts(manifest)))}.items()}


def as_text(value: Any) -> str:
    """Return a value as the command line has it, lists and objects as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((key, manifest[key]) for key in SINGLE if key in manifest)
    for group in (*NESTED, *PARTS):
        for key, value in _object(manifest, group).items():
            if key in PARTS.get(group, (key,)) and not (group == "dtypes" and value is None):
                yield f"{group}.{key}", value
    for name, facts in _object(_object(manifest, "data"), "of_source").items():  # of a mix; shares do not move them
        yield f"data.of_source.{name}.sha256", facts["sha256"]
    stages = manifest.get("lineage") or ()  # the runs that were merged into the base before
    if stages:
        yield "lineage.objectives", [stage["objective"] for stage in stages]
        yield "lineage.adapters", [stage["adapter_sha256"] for stage in stages]
    for key, fact in STARTS.items():
        starts = manifest.get(fact) or ()
        if starts:
            yield f"{key}.runs", _without_seeds(starts)
            yield f"{key}.adapters", [start["adapter_sha256"] for start in starts]
    if _drawn(manifest):
        yield "adapter.experts.runs", _drawn(manifest)
    evaluation = _object(manifest, "evaluation")
    yield from ((f"evaluation.{key}", evaluation[key]) for key in SCORED if key in evaluation)
    for part in ("encoder", "inputs", "tasks"):  # encoder: number formats, kernel, device, threads
        yield from ((f"evaluation.{part}.{name}", value) for name, value in _object(evaluation, part).items())


def _without_seeds(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(run["run"]).rpartition("/")[0] for run in runs]


def _drawn(manifest: Mapping[str, Any]) -> str:
    """The number of experts that were drawn; "" where they are runs, or there are none."""
    experts = _object(manifest["config"], "adapter").get("experts")
    return str(experts) if isinstance(experts, int) else ""


def _object(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = value.get(key)
    return part if isinstance(part, dict) else {}


def factor_value(manifest: Mapping[str, Any], factor: str) -> str:
    """Return the value of a factor in this run: a group's name (`pooler`: "eos"), a key's value (`lora.r`: "16")."""
    if factor in NAMED:
        return str(manifest[factor])
    if factor in ("lineage", *STARTS):  # what was done before, not where it lies
        before = manifest.get(STARTS.get(factor, factor)) or ()
        runs = [run["objective"] for run in before] if factor == "lineage" else _without_seeds(before)
        return ",".join(runs) or (_drawn(manifest) if factor == "adapter.experts" else "") or "none"
    value: Any = manifest["config"]
    for part in factor.split("."):
        if not isinstance(value, dict) or part not in value:
            return "absent"
        value = value[part]
    if isinstance(value, dict):
        if factor == "data.mix":  # its shares, that of null among them
            of_source = _object(_object(manifest, "data"), "of_source")
            return "+".join(f"{name}:{facts['share']:g}" for name, facts in of_source.items() if facts["share"])
        starts = {key: f"{factor}.{key}" for key in value if f"{factor}.{key}" in STARTS and value[key]}
        value = {**value, **{key: factor_value(manifest, start) for key, start in starts.items()}}
        return str(value.get("name") or of_value(value)[:8])
    return as_text(value)


def moved_by(factor: str) -> tuple[str, ...]:
    """Return the facts that a change of this factor moves by itself: other data have another sha256."""
    related = (facts for key, facts in MOVES.items() if below(key, (factor,)) or below(factor, (key,)))
    return tuple(fact for facts in related for fact in facts)


def check_factors(factors: tuple[str, ...], manifests: Iterable[Mapping[str, Any]]) -> None:
    """Raise `UserError` for a factor that no run's configuration has, with the nearest keys."""
    if "seed" in factors:
        raise UserError("seed cannot be a factor: the scores of one cell are the mean over its seeds. Leave it out.")
    known = _with_parents(key for manifest in manifests for key in (*NAMED, *flat(manifest["config"])))
    unknown = [factor for factor in factors if factor not in known]
    if known and unknown:
        raise UserError(f"factors= names {unknown[0]!r}, a key that no run has. {suggest(unknown[0], known)}")


def check_allowed(allow: tuple[str, ...], manifests: Iterable[Mapping[str, Any]]) -> None:
    """Raise `UserError` for a key of `allow=` that no run has, with the nearest ones."""
    runs = list(manifests)
    if not (allow and runs):
        return
    parts = (f"{group}.{part}" for group, parts in PARTS.items() for part in parts)
    known = _with_parents(("manifest", "seed", *SINGLE, *NESTED, *SEED_BOUND, *parts))
    known |= _with_parents(key for manifest in runs for key in (*profile(manifest), *flat(manifest["config"])))
    unknown = [key for key in allow if key not in known]
    if unknown:
        raise UserError(f"allow= names {unknown[0]!r}, a key that no run has. {suggest(unknown[0], known)}")


def _with_parents(keys: Iterable[str]) -> set[str]:
    """Return the keys and what lies above them: `lora.r` and `lora`."""
    return {above for key in keys for above in (key, *(key[:end] for end, letter in enumerate(key) if letter == "."))}
