"""The weight of routing weights in MoEE's sum, by its score on development data.

python -m evaluation.alpha model=tiny_moe

Words are those of evaluate.py; alphas=0,0.5,1 gives the values, scored from one forward pass. Test tasks are refused:
what is chosen on them is no longer measured by them.
"""

import sys
from collections.abc import Sequence

from cli.errors import UserError, guard
from evaluation.candidates.candidates import configured
from evaluation.command import run
from evaluation.report import aligned, type_means
from evaluation.scoring import Outcome

ALPHAS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
DEVELOPMENT = "docs_dev"


def main(arguments: Sequence[str]) -> None:
    """Score every alpha on the development benchmark; print the curve and the best."""
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return
    given = [a.partition("=")[2] for a in arguments if a.startswith("alphas=")]
    words = [a for a in arguments if not a.startswith("alphas=")]
    alphas = _numbers(given[0]) if given else ALPHAS
    named = [a for a in words if a.startswith(("benchmark=", "tasks_dir=", "tasks="))]
    if named and named != [f"benchmark={DEVELOPMENT}"]:
        raise UserError(f"alpha is chosen on benchmark={DEVELOPMENT}, not on {named[0]}. Take that word away.")
    words = [*words, "run=null", "progress=false", *([] if named else [f"benchmark={DEVELOPMENT}"])]
    print(curve(_scored(alphas, words)))


def _scored(alphas: Sequence[float], words: list[str]) -> list[tuple[float, dict[str, float]]]:
    """Alpha and its scores by task type; from one forward pass for all, unless words set the pooler or its reading."""
    if not any(word.startswith(("pooler", "token_choice.")) for word in words):
        readings = ",".join(f"moee:sum@{alpha:.9f}" for alpha in alphas)
        outcomes = _run([*words, f"readings=[{readings}]", "study=moee_alpha"])
        return list(zip(alphas, map(type_means, outcomes), strict=True))
    rows = []
    for alpha in alphas:
        extras = [f"pooler.alpha={alpha}", f"study=moee_alpha_{alpha:g}"]  # each alpha's scores in a folder of its own
        (outcome,) = _run(["pooler=moee", *words, "pooler.reading=sum", *extras])
        rows.append((alpha, type_means(outcome)))
    return rows


def _run(words: list[str]) -> list[Outcome]:
    return run(configured(words))


def curve(rows: Sequence[tuple[float, dict[str, float]]]) -> str:
    """A table of alpha against the scores by task type and their mean; the best mean, the smaller alpha at a tie."""
    kinds = sorted({kind for _, means in rows for kind in means})
    table = [["alpha", *kinds, "mean of types"]]
    overall = {alpha: sum(means.values()) / len(means) for alpha, means in rows}
    for alpha, means in rows:
        table.append([f"{alpha:g}", *(f"{means[k]:.4f}" for k in kinds), f"{overall[alpha]:.4f}"])
    best = max(overall, key=lambda alpha: (overall[alpha], -alpha))
    return f"{aligned(table)}\n\nBest on {DEVELOPMENT}: pooler.alpha={best:g}"


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(a) for a in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 0:
        raise UserError(f"alphas={text} must be numbers of at least 0, with commas between: alphas=0,0.5,1.")
    return numbers


if __name__ == "__main__":
    guard(lambda: main(sys.argv[1:]))
