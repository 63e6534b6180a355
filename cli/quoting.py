"""Words of a command line made ready for Hydra: file names and names of benchmarks that its grammar takes for more."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from hydra.core.override_parser.overrides_parser import OverridesParser

from cli.compose import options
from cli.errors import UserError

OF_TRAIN = ("data.path", "data.sources.*.path", "runs_dir", "cache_dir")
OF_EVALUATE = ("run", "foreign", "tasks_dir", "results", "runs_dir", "cache_dir")
LISTS = ("lineage", "lora.start")  # of files; one without brackets is a list of one
LEFT_ALONE = ("[", "'", '"', "choice(")  # a list, quoted already, a sweep over data sets
# Keys that the manifest of a run fixes: evaluate.py run=... leaves them without effect.
FIXED_BY_A_RUN = (
    *("model", "attn", "pooler", "token_choice", "head", "seed", "study", "lineage", "template", "stages"),
    *("text_length", "max_length", "padding_side"),
)
OF_ITS_NUMBERS = ("precision", "tf32", "deterministic", "token_budget")  # likewise, but for a command that loads a base


def quoted(value: str) -> str:
    """Return `value` in quotes, so that Hydra reads it as it stands.

    In quotes, Hydra's grammar gives a meaning to a quote and to the backslashes right before one, and to nothing else.
    """
    escaped = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), value)
    return f"'{escaped}'"


def as_typed(words: Iterable[str], keys: Sequence[str]) -> list[str]:
    """Return the words, those of `keys` (patterns) and of `LISTS`, and all with a second "=", with values in quotes.

    `data.path=a.jsonl.gz,b.jsonl` means two files of one data set; unquoted, Hydra reads a sweep over two data sets
    (write `data.path=choice(a.jsonl,b.jsonl)` with -m for that), and stumbles over spaces and brackets in names.
    Several stages are a list in quotes: `lineage=["runs/a/seed0","runs/b/seed0"]`.
    """
    return [_as_typed(word, keys) for word in words]


def _as_typed(word: str, keys: Sequence[str]) -> str:
    key, equals, value = word.partition("=")
    of_a_folder = "=" in value and "(" not in value and not value.startswith("{")  # model.path=runs/a/b/seed0/export
    typed = of_a_folder or any(fnmatchcase(key, pattern) for pattern in (*keys, *LISTS))
    if not typed or not equals or value in ("", "null") or value.startswith(LEFT_ALONE):
        return word
    return f"{key}=[{quoted(value)}]" if key in LISTS else f"{key}={quoted(value)}"


def train_words(arguments: Sequence[str]) -> list[str]:
    """Return the overrides for conf/train.yaml; of a sweep each plain `pooler.<key>=<value>` as `choice(<value>)`.

    Hydra first composes the sweep's frame without the words that are swept: for `-m design=model4,model5
    pooler.mlp=false` that is the default pooler, which has no `mlp`. A sweep over one value waits for the job, as the
    design does.
    """
    words = as_typed(arguments, OF_TRAIN)
    if not any(word in ("-m", "--multirun") or word.startswith("sweep=") for word in words):
        return words
    return [_late(word) for word in words]


def _late(word: str) -> str:
    key, equals, value = word.partition("=")
    of_one_pooler = key.startswith("pooler.") and equals and value
    swept = "," in value or "(" in value
    return f"{key}=choice({value})" if of_one_pooler and not swept else word


def evaluate_words(arguments: Sequence[str], further_keys: Sequence[str] = ()) -> list[str]:
    """Return the overrides for conf/evaluate.yaml, or for one that has its keys and `further_keys`.

    Where only tasks or a folder are asked for, the default benchmark is taken out. Raises `UserError` for an argument
    that is no key=value, and for keys that run=... would leave without effect.
    """
    for argument in arguments:
        if "=" not in argument:
            raise UserError(f"The argument '{argument}' is no key=value. See python evaluate.py --help.")
    given = dict(argument.split("=", 1) for argument in arguments)
    if given.get("run", "null") != "null":
        fixed = FIXED_BY_A_RUN if "generator" in further_keys else (*FIXED_BY_A_RUN, *OF_ITS_NUMBERS)
        keys = [key.lstrip("+") for key in given]
        idle = [key for key in keys if key.split(".")[0] in fixed and key != "model.trust_remote_code"]
        if idle:
            raise UserError(
                f"{idle[0]}= has no effect with run=..., whose manifest fixes it. Leave it out, or give run=null: "
                "with lineage=<run folder> that scores the run's adapter under another pooler."
            )
    if given.get("readings", "null") != "null" and "pooler" in {key.lstrip("+").split(".")[0] for key in given}:
        raise UserError("pooler= has no effect with readings=..., which name the poolers. Leave one of them out.")
    others = [f"{key}={value}" for key, value in given.items() if key != "benchmark"]
    words = as_typed(others, (*OF_EVALUATE, *further_keys))
    if "benchmark" in given:
        return [*words, *_benchmark(given["benchmark"])]
    return words if not {"tasks_dir", "tasks"} & set(given) else [*words, "~benchmark"]


def asked_of_runs(arguments: Sequence[str]) -> list[str]:
    """Return the keys that count in place of what runs say, though the command line may give their defaults."""
    keys = []
    for argument in arguments:
        key = argument.partition("=")[0].lstrip("+")
        if key == "evaluation":  # {instructions: none, ...}, typed as one
            value = OverridesParser.create().parse_override(argument).value()
            keys += [f"{key}.{inner}" for inner in value] if isinstance(value, dict) else []
        elif key == "accelerator" or key.startswith("evaluation."):
            keys.append(key)
    return keys


def _benchmark(name: str) -> list[str]:
    """A name that is no option of conf/benchmark is one of mteb's."""
    if (name in options("benchmark") and name != "mteb") or name in ("null", ""):
        return [f"benchmark={name}"]
    return ["benchmark=mteb", f"benchmark.name={name if name.startswith(LEFT_ALONE) else quoted(name)}"]
