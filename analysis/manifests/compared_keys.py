"""The factors of a comparison: their values in a run, and the keys that they move by themselves."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.names import suggest
from cli.compose import flat, options, own_keys
from cli.errors import UserError
from records.earlier_runs import OTHER_RUNS
from records.files import of_value
from records.manifest import BASE, BOOKKEEPING, below

NAMED = ("pooler", "attn")
# Facts of a manifest that are compared; its other keys are outcomes, or follow from these.
FACTS = (
    *(*BASE, "precision", "kernel", "elementwise", "device", "threads", "batch_order_sha256", "steps"),
    *("token_budget", "dtypes", "versions", "seeds", "data.sha256", "code.sha256", "code.pooler"),
    *("machine.processor", "machine.instruction_sets"),
    *("evaluation.instructions", "evaluation.max_length", "evaluation.mteb", "evaluation.seed"),
    *("evaluation.encoder", "evaluation.inputs", "evaluation.tasks"),  # encoder: formats, kernel, device, threads
)
# One seed draws one order of batches, so these are compared between runs of the same seed only.
SEED_BOUND = ("batch_order_sha256", "steps", "seeds", *(f"{key}.adapters" for key in OTHER_RUNS))
# Wishes in the configuration whose outcome the manifest states: precision=auto and =fp32 may be the same thing.
WISHES = ("precision", "compile", "accelerator", "threads", "trainer.threads", *OTHER_RUNS)
FOUND = ("token_budget", None)  # another wish: the number that a run found is a fact
# conf/evaluate.yaml adds its keys to the configuration of a reference without a run; `evaluation` states their outcome.
UNCOMPARED = (*BOOKKEEPING, *WISHES, *own_keys("evaluate"))
# configuration key -> facts that cannot stay the same when it is changed
MOVES = {
    "model": (*BASE, "token_budget"),
    "pooler": ("dtypes.head", "code.pooler", "evaluation.encoder.pooler_code"),  # not each has a head
    "data": ("data.sha256", "batch_order_sha256", "steps"),
    "trainer.max_steps": ("batch_order_sha256", "steps"),
    "trainer.global_batch_size": ("batch_order_sha256",),
    "trainer.threads": ("threads",),
    "evaluation.autocast": ("evaluation.encoder",),
    "evaluation.max_length_share": ("evaluation.max_length",),
    "evaluation.instructions": ("evaluation.instructions", "evaluation.inputs"),
    "compile": ("elementwise", "evaluation.encoder"),
    "precision": ("precision", "dtypes", "evaluation.encoder"),
    "accelerator": ("device", "kernel", "elementwise", "precision", "dtypes", "evaluation.encoder"),
    "max_length": ("evaluation.max_length",),
}


def profile(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return key -> value as text, for every key that is compared; what the manifest lacks is absent."""
    config = flat(manifest["config"])
    keys = {key: value for key, value in config.items() if not below(key, UNCOMPARED) and (key, value) != FOUND}
    return {key: as_text(value) for key, value in {**keys, **dict(_facts(manifest))}.items()}


def as_text(value: Any) -> str:
    """Return a value as the command line has it, lists and objects as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in flat({key: value for key, value in manifest.items() if key != "config"}).items():
        of_mix = key.startswith("data.of_source.") and key.endswith(".sha256")  # its shares do not move them
        if (below(key, FACTS) and value not in (None, {})) or of_mix:
            yield key, value
    for key, fact in OTHER_RUNS.items():
        if _before(manifest, key):
            yield f"{key}.runs", _before(manifest, key)
            yield f"{key}.adapters", [run["adapter_sha256"] for run in manifest.get(fact) or ()]


def _before(manifest: Mapping[str, Any], key: str) -> list[str]:
    """Return what was done before, not where it lies: objectives of the runs that were merged into the base, the names
    without seeds of those that a run starts from or mixes, or how many experts were drawn."""
    runs = manifest.get(OTHER_RUNS[key]) or ()
    names = [str(run["objective"] if key == "init.merge" else run["run"].rpartition("/")[0]) for run in runs]
    drawn = (manifest["config"].get("adapter") or {}).get("experts") if key == "adapter.experts" else None
    return [str(drawn)] if isinstance(drawn, int) else names


def factor_value(manifest: Mapping[str, Any], factor: str) -> str:
    """Return the value of a factor in this run: a group's name (`pooler`: "eos"), a key's value (`lora.r`: "16")."""
    if factor in NAMED:
        return str(manifest[factor])
    if factor in OTHER_RUNS:
        return ",".join(_before(manifest, factor)) or "none"
    value: Any = manifest["config"]
    for part in factor.split("."):
        if not isinstance(value, dict) or part not in value:
            return "absent"
        value = value[part]
    if factor == "data.mix" and value:  # its shares, that of null among them
        of_source = (manifest.get("data") or {}).get("of_source") or {}
        return "+".join(f"{name}:{facts['share']:g}" for name, facts in of_source.items() if facts["share"])
    if isinstance(value, dict):
        runs = {key: _before(manifest, f"{factor}.{key}") for key in value if f"{factor}.{key}" in OTHER_RUNS}
        name = value.get("name")
        if factor == "model" and name in options("model") and value.get("path") != options("model")[name].get("path"):
            name = value.get("path")  # model.path=<folder> alone leaves the name of the option
        return str(name or of_value({**value, **runs})[:8])
    return as_text(value)


def factors_between(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the factors in which runs to be made differ: pooler and attn; of a group with another option the group
    (`template`), else the key (`objective.matryoshka`). configs: of conf/train.yaml, composed."""
    flats, factors = [flat(config) for config in configs], dict.fromkeys(NAMED)
    for key in dict.fromkeys(key for keys in flats for key in keys):
        group = key.partition(".")[0]
        if below(key, (*BOOKKEEPING, *factors)) or len({as_text(keys.get(key)) for keys in flats}) == 1:
            continue
        options_of = {config[group].get("name") for config in configs if isinstance(config[group], dict)}
        factors[group if len(options_of) > 1 else key] = None
    return list(factors)


def moved_by(factor: str) -> tuple[str, ...]:
    """Return the facts that a change of this factor moves by itself: other data have another sha256."""
    related = (facts for key, facts in MOVES.items() if below(key, (factor,)) or below(factor, (key,)))
    return tuple(fact for facts in related for fact in facts)


def check_factors(factors: tuple[str, ...], manifests: Iterable[Mapping[str, Any]]) -> None:
    """Raise `UserError` for a factor that no run's configuration has, with the nearest keys."""
    if "seed" in factors:
        raise UserError("seed cannot be a factor: the scores of one cell are the mean over its seeds. Leave it out.")
    _check_known("factors", factors, {key for manifest in manifests for key in (*NAMED, *flat(manifest["config"]))})


def check_allowed(allow: tuple[str, ...], manifests: Iterable[Mapping[str, Any]]) -> None:
    """Raise `UserError` for a key of `allow=` that no run has, with the nearest ones."""
    keys = {key for manifest in manifests for key in (*profile(manifest), *flat(manifest["config"]))}
    _check_known("allow", allow, {"manifest", "seed", *FACTS, *SEED_BOUND, *keys})


def _check_known(name: str, words: tuple[str, ...], keys: set[str]) -> None:
    """Raise `UserError` for a word that is no key and lies above none: `lora` lies above `lora.r`."""
    known = {above for key in keys for above in (key, *(key[:end] for end, letter in enumerate(key) if letter == "."))}
    unknown = [word for word in words if word not in known]
    if unknown:
        raise UserError(f"{name}= names {unknown[0]!r}, a key that no run has. {suggest(unknown[0], known)}")
