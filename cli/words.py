"""Words of a command line: flags told from overrides, plain texts quoted for Hydra, the values of a sweep checked."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException

from cli.compose import composed, options
from cli.errors import UserError

SWEEP = ("-m", "--multirun")
PROBES = 32  # a sweep is checked value by value before its first run, up to this many


def flags_and_words(program: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return Hydra's flags with what belongs to them, and the overrides, those that Hydra cannot read in quotes.

    Raises `UserError` for a word that is no key=value, where there is no flag.
    """
    words = [word for word in arguments if "=" in word and not word.startswith("-")]
    flags = [word for word in arguments if word not in words]
    stray = [word for word in flags if not word.startswith("-")]
    if stray and set(flags) <= {*stray, *SWEEP}:
        raise UserError(f"The argument '{stray[0]}' is no key=value. See python {program} --help.")
    return flags, readable(words)


def readable(words: Sequence[str]) -> list[str]:
    """Return the words; a value that is no word of Hydra's grammar, such as a path with brackets, is put in quotes."""
    plain = [word.removeprefix("++") for word in words]  # a key that is there needs no plus
    return [word if _parsed(word) else _in_quotes(word) for word in plain]


def quoted(value: str) -> str:
    """Return `value` in quotes, so that Hydra reads it as it stands.

    In quotes, Hydra's grammar gives a meaning to a quote and to the backslashes right before one, and to nothing else.
    """
    escaped = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value)
    return f"'{escaped}'"


def _in_quotes(word: str) -> str:
    key, _, value = word.partition("=")
    if not key or value[:1] in ("[", "{", "'", '"') or not _parsed(f"{key}={quoted(value)}"):
        raise UserError(
            f"{word} cannot be read. Write key=value, names with spaces or brackets in quotes of their own."
        )
    return f"{key}={quoted(value)}"


def _parsed(word: str) -> Override | None:
    try:
        return OverridesParser.create().parse_override(word)
    except HydraException:
        return None


def check_sweep(program: str, words: Sequence[str], several: bool) -> list[str]:
    """Compose once for every value that the words ask for, so that a sweep fails before its first run.

    several: whether keys may have several values (-m). Returns the keys that have. Raises `UserError`.
    """
    values = {word: _values(word) if several else [word] for word in words}
    first = [of[0] for of in values.values()]
    composed(program, first)
    probes = [(n, probe) for n, of in enumerate(values.values()) for probe in of[1:]]
    for n, probe in probes[:PROBES]:
        composed(program, [*first[:n], probe, *first[n + 1 :]])
    return [word.lstrip("+").partition("=")[0] for word, of in values.items() if len(of) > 1]


def _values(word: str) -> list[str]:
    """The words that a sweep makes of one: `attn=causal,bi` -> `attn=causal`, `attn=bi`."""
    override, key = _parsed(word), word.partition("=")[0]
    if override is None or not override.is_sweep_override():
        return [word]
    value = override.value()
    if isinstance(value, Glob):
        return [f"{key}={name}" for name in options(key.lstrip("+")) if _matches(name, value)]
    return [f"{key}={one}" for one in override.sweep_string_iterator()]


def _matches(name: str, glob: Glob) -> bool:
    """Tell whether glob(...) of Hydra's grammar takes an option of a group."""
    taken, left_out = (any(fnmatchcase(name, one) for one in of) for of in (glob.include, glob.exclude))
    return taken and not left_out


def late(words: Sequence[str]) -> list[str]:
    """Return the words of a sweep, each plain `pooler.<key>=<value>` as `choice(<value>)`, which waits for the job.

    Hydra first composes a sweep without the words that are swept: for `-m design=model4,model5 pooler.mlp=false` that
    is the default pooler, which has no `mlp`.
    """
    plain = [word.startswith("pooler.") and len(_values(word)) == 1 for word in words]
    return [f"{word.replace('=', '=choice(', 1)})" if one else word for one, word in zip(plain, words, strict=True)]
