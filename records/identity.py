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
VERSIONS = ("torch", "transformers")  # of the libraries that compute states
# Keys that cannot change a number, so runs that differ in them are the same run.
BOOKKEEPING = (
    *("runs_dir", "cache_dir", "resume", "check", "seed", "study", "axes", "logging", "trainer.progress"),
    *("launcher", "trainer.loss_limit"),  # which stops a run, and moves none
)
# What runs did before a key was there. Only keys that had a meaning all along stand here: of every other key, that one
# of two runs lacks it is a difference.
MEANT = {
    "adapter.name": "lora",
    "backbone.frozen": False,
    "data.columns.scores": "scores",
    "deterministic": False,
    "evaluation.dims": None,
    "lineage": None,
    "lora.combine": "uniform",
    "lora.density": 0.2,
    "lora.start": None,
    "lora.weights": None,
    "model.quantise": None,
    "objective.decay_epochs": None,
    "objective.matryoshka": None,
    "objective.matryoshka_weights": None,
    "objective.packed": False,
    "template.document.bare": "{text}",
    "template.document.instructed": "Instruct: {instruction}\nQuery: {text}",
    "template.eos": True,
    "template.name": "instruct",
    "template.query.bare": "{text}",
    "template.query.instructed": "Instruct: {instruction}\nQuery: {text}",
    "tf32": False,
    "trainer.average": None,
    "trainer.num_nodes": 1,
    "trainer.shard_base": False,
}


def below(key: str, names: tuple[str, ...]) -> bool:
    """Return whether `key` is one of `names` or lies below one: `pooler.tokens` lies below `pooler`."""
    return any(key == name or key.startswith(f"{name}.") for name in names)


def of_states(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat keys of a configuration that states depend on, those it lacks with the meaning they had."""
    values = {**MEANT, **flat(dict(config))}
    return {key: value for key, value in values.items() if below(key, OF_STATES) and key not in OF_HEADS}


def different_keys(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Return 'key: a -> b' for every key, other than bookkeeping, in which two configurations differ.

    A key that one of them lacks has the meaning it had before it was there, where it had one.
    """
    left, right = flat(a), flat(b)
    both = {
        key: [side.get(key, MEANT.get(key, "absent")) for side in (left, right)] for key in left.keys() | right.keys()
    }
    return [f"{key}: {x} -> {y}" for key, (x, y) in sorted(both.items()) if x != y and not below(key, BOOKKEEPING)]


def numeric_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the flat configuration without the keys that cannot change a number."""
    return {key: value for key, value in flat(config).items() if not below(key, BOOKKEEPING)}
