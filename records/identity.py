"""The keys that the states of a decoder depend on: one list for caches, stages, resumed runs and the control rule."""

from collections.abc import Mapping
from typing import Any

from cli.compose import flat

# Facts of the base that a manifest states -> how messages call them. `encoders.identity.base_fingerprints` finds them.
BASE = {
    "base_weights_sha256": "base model",
    "tokenizer_sha256": "tokenizer",
    "base_config_sha256": "configuration of the base model",
}
# Keys of a configuration that reach the layers; head, seed, data and training do not, padding moves float noise alone.
OF_STATES = ("model", "attn", "template", "max_length", "precision", "tf32", "deterministic", "evaluation")
OF_HEADS = ("attn.tokens", "attn.lastlayer_tokens_in_code")  # below `attn`, they tell a head what to read
ABSENT = "absent"
VERSIONS = ("torch", "transformers")  # of the libraries that compute states
# Keys that cannot change a number, so runs that differ in them are the same run.
BOOKKEEPING = (
    *("runs_dir", "cache_dir", "resume", "check", "seed", "study", "axes", "logging", "trainer.progress"),
    "launcher",
)


def below(key: str, names: tuple[str, ...]) -> bool:
    """Return whether `key` is one of `names` or lies below one: `pooler.tokens` lies below `pooler`."""
    return any(key == name or key.startswith(f"{name}.") for name in names)


def of_states(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat keys of a configuration that states depend on."""
    return {k: value for k, value in flat(dict(config)).items() if below(k, OF_STATES) and k not in OF_HEADS}


def numeric_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the flat configuration without the keys that cannot change a number."""
    return {key: value for key, value in flat(config).items() if not below(key, BOOKKEEPING)}


def different_keys(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Return 'key: a -> b' for every key, other than bookkeeping, in which two configurations differ."""
    one, two = numeric_config(a), numeric_config(b)
    keys = sorted(k for k in one.keys() | two.keys() if one.get(k, ABSENT) != two.get(k, ABSENT))
    return [f"{k}: {one.get(k, ABSENT)} -> {two.get(k, ABSENT)}" for k in keys]
