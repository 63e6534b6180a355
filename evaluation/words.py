"""The command line before Hydra reads it: values that people write without quotes get them."""

from collections.abc import Sequence

from cli.compose import CONF, options
from cli.errors import UserError

PATHS = ("run", "tasks_dir", "results", "runs_dir", "cache_dir")  # runs/a/b/seed=0 holds a "=", which Hydra stops at
QUOTES = "'\""
OF_THE_RUN = (
    "model",
    "attn",
    "pooler",
    "token_choice",
    "head",
    "seed",
    "study",
    "lineage",
    "template",
    "stages",
    "max_length",
    "padding_side",
)


def hydra_words(arguments: Sequence[str]) -> list[str]:
    """Return the overrides for conf/evaluate.yaml; where only tasks or a folder are asked for, the
    default benchmark is taken out.

    Raises `UserError` for an argument that is no key=value, and for keys that run=... would leave without effect.
    """
    for argument in arguments:
        if "=" not in argument:
            raise UserError(f"The argument '{argument}' is no key=value. See python evaluate.py --help.")
    given = {a.split("=", 1)[0]: a.split("=", 1)[1] for a in arguments}
    if given.get("run", "null") != "null":
        idle = [key for key in given if key.split(".")[0] in OF_THE_RUN]
        if idle:
            raise UserError(
                f"{idle[0]}= has no effect with run=..., whose manifest fixes it. Leave it out, or give run=null: "
                "with lineage=<run folder> that scores the run's adapter under another pooler."
            )
    if given.get("readings", "null") != "null" and "pooler" in {key.split(".")[0] for key in given}:
        raise UserError("pooler= has no effect with readings=..., which name the poolers. Leave one of them out.")
    words = [word for key, value in given.items() for word in _words(key, value)]
    return words if "benchmark" in given or not {"tasks_dir", "tasks"} & set(given) else [*words, "~benchmark"]


def _words(key: str, value: str) -> list[str]:
    if key == "lineage" and value not in ("null", "") and value[0] not in QUOTES + "[":
        return [f"lineage=[{_quoted(value)}]"]
    if key in PATHS and value not in ("null", "") and value[0] not in QUOTES + "[":
        return [f"{key}={_quoted(value)}"]
    if key == "benchmark" and value not in ("null", "") and not _ours(value):
        return ["benchmark=mteb", f"benchmark.name={value if value[0] in QUOTES else _quoted(value)}"]
    return [f"{key}={value}"]


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _ours(name: str) -> bool:
    return name in options("benchmark") and name != "mteb"


def manual() -> str:
    """Return the remarks of conf/evaluate.yaml, which are the manual."""
    return (CONF / "evaluate.yaml").read_text(encoding="utf-8")
