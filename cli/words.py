"""Words of a command line: flags told from overrides, plain texts quoted for Hydra, the values of a sweep checked."""

import re
from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException

from cli.compose import composed, options
from cli.errors import UserError

SWEEP = ("-m", "--multirun")


def flags_and_words(program: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return Hydra's flags, and the `readable` overrides. Raises `UserError` for a lone word without a value."""
    words = [word for word in arguments if "=" in word and not word.startswith("-")]
    flags = [word for word in arguments if word not in words]
    stray = [word for word in flags if not word.startswith("-")]
    if stray and set(flags) <= {*stray, *SWEEP}:
        raise UserError(f"The argument '{stray[0]}' is no key=value. See python {program} --help.")
    return flags, readable(words)


def readable(words: Sequence[str]) -> list[str]:
    """Return the words, values outside Hydra's grammar in quotes; only `data` and `model` take new keys by a plus."""
    return [_readable(word if word.startswith(("+data", "+model.")) else word.lstrip("+")) for word in words]


def _readable(word: str) -> str:
    key, _, value = word.partition("=")
    if _parsed(word):
        return word
    if not key or value[:1] in ("[", "{", "'", '"') or not _parsed(f"{key}={quoted(value)}"):
        raise UserError(f"{word} cannot be read. Write key=value, names with spaces in quotes of their own.")
    return f"{key}={quoted(value)}"


def quoted(value: str) -> str:
    """Return `value` in quotes, where Hydra's grammar reads all but a quote and the backslashes before one as it is."""
    escaped = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value)
    return f"'{escaped}'"


def _parsed(word: str) -> Override | None:
    try:
        return OverridesParser.create().parse_override(word)
    except HydraException:
        return None


def check_sweep(program: str, words: Sequence[str], several: bool) -> list[str]:
    """Compose with each value, before the first run; return the keys that have several, as -m allows."""
    values = [_values(word) if several else [word] for word in words]
    for n in range(max(map(len, values), default=1)):
        composed(program, [of[min(n, len(of) - 1)] for of in values])
    return [of[0].lstrip("+").partition("=")[0] for of in values if len(of) > 1]


def _values(word: str) -> list[str]:
    """The words that a sweep makes of one: `attn=causal,bi` -> `attn=causal`, `attn=bi`."""
    override, key = _parsed(word), word.partition("=")[0]
    if override is None or not override.is_sweep_override():
        return [word]
    value = override.value()
    names = value.filter([*options(key)]) if isinstance(value, Glob) else override.sweep_string_iterator()
    return [f"{key}={name}" for name in names]


def late(words: Sequence[str]) -> list[str]:
    """Return the words of a sweep, `pooler.<key>=<value>` as `choice(<value>)`, which waits for the job.

    Hydra first composes without the words that are swept, and the default pooler may lack the key.
    """
    plain = [word.startswith("pooler.") and len(_values(word)) == 1 for word in words]
    return [f"{word.replace('=', '=choice(', 1)})" if one else word for one, word in zip(plain, words, strict=True)]
