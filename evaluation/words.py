"""Words of evaluate.py, and of programs that have its keys, as overrides of their configuration."""

from collections.abc import Sequence

from cli.compose import options, quoted, readable, with_recipe
from cli.errors import UserError

# Keys that the manifest of a run fixes, and most of them a foreign model: they would be without effect.
FIXED = (
    *("model", "attn", "pooler", "reference_fault", "head", "seed", "study", "init", "template", "compile"),
    *("text_length", "max_length", "normalize", "padding_side", "precision", "tf32", "deterministic", "token_budget"),
)


def evaluate_words(arguments: Sequence[str]) -> list[str]:
    """Return the overrides for conf/evaluate.yaml, or for one that has its keys.

    A benchmark that is no option is one of mteb's; where only tasks or a folder are asked for, the default one is taken
    out. An untrained base gets the recipe of its runs. Raises `UserError` for keys that run=... would leave
    without effect.
    """
    words = readable(arguments)
    given = dict(word.split("=", 1) for word in words)
    run, foreign = (given.get(key, "null") != "null" for key in ("run", "foreign"))
    of_the_model = {"evaluation", *FIXED} - {"precision", "study"}
    fixed = FIXED if run else of_the_model if foreign else ()
    keys = [key.lstrip("+") for key in given]
    idle = [key for key in keys if key.split(".")[0] in fixed and key != "model.trust_remote_code"]
    if idle and run:
        raise UserError(
            f"{idle[0]}= has no effect with run=..., whose manifest fixes it. Leave it out, or give run=null: "
            "with init.merge=<run folder> that scores the run's adapter under another pooler."
        )
    if idle:
        raise UserError(f"{idle[0]}= has no effect with foreign=..., a model with settings of its own. Leave it out.")
    words = words if run or foreign else with_recipe(words, "evaluate")
    if given.get("variants", "null") != "null" and "pooler" in {key.lstrip("+").split(".")[0] for key in given}:
        raise UserError("pooler= has no effect with variants=..., which name the poolers. Leave one of them out.")
    others = [word for word in words if not word.startswith("benchmark=")]
    if given.get("benchmark", "null") != "null":
        return [*others, *_benchmark(given["benchmark"])]
    return others if not {"tasks_dir", "tasks", "benchmark"} & set(given) else [*others, "~benchmark"]


def _benchmark(value: str) -> list[str]:
    name = value.strip("'\"")
    if name in options("benchmark") and name != "mteb":
        return [f"benchmark={name}"]
    if value.startswith("["):
        raise UserError(f"benchmark={value} must be one name. A job for each: -m benchmark='choice(...)'.")
    return ["benchmark=mteb", f"benchmark.name={value if value.startswith('choice(') else quoted(name)}"]
