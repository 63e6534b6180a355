"""The level of tests of main effects and interactions: `python -m benchmarks.calibrate.effect_level [sets=2000]`

Simulated tasks x (3 x 2) designs without the effect under test, with noise of several kinds and with strong main
effects that are the same on every task; prints how often each test rejects at .05. docs/decisions/factorial-effects.md
quotes it.
"""

from itertools import product

import numpy as np

from analysis.statistics.arrays import Floats
from benchmarks.arguments import number_of_sets
from benchmarks.calibrate.tables import per_cent, print_head, print_row
from cli.errors import guard

MAIN = np.array([0.0, 0.0, 3.0, 3.0, 9.0, 9.0]) + np.array([0.0, 4.0] * 3)  # no interaction
EFFECTS = (("pooler",), ("pooler", "attn"))


def f_test(vectors: Floats) -> float:
    """p of the repeated-measures F from orthonormal contrasts [n, df]."""
    from scipy.stats import f

    from analysis.questions.tested_effects import effect_test

    test = effect_test(vectors)
    return float(f.sf(test["F"], test["df"], test["df_error"]))


def aligned_ranks(values: Floats, contrasts: Floats) -> Floats:
    """Contrasts of ranks after alignment: cell and task means away, the estimated effect back, then all is ranked."""
    from scipy.stats import rankdata

    residual = values - values.mean(axis=0)
    residual = residual - residual.mean(axis=1, keepdims=True)
    effect = values.mean(axis=0) @ contrasts @ contrasts.T
    aligned: Floats = np.asarray(rankdata(np.round(residual + effect, 10)), dtype=np.float64).reshape(values.shape)
    return aligned @ contrasts


def noises(rng: np.random.Generator, n: int) -> dict[str, Floats]:
    """[n, 6] each: alike, skewed, tasks of unequal spread, designs of unequal spread, mixtures; each of mean zero."""
    normal, spread = rng.normal(size=(n, 6)), np.exp(rng.normal(0, 1, (n, 1)))
    skewed = np.exp(rng.normal(size=(n, 6))) - np.exp(0.5)
    designs = np.array([0.3, 0.3, 1.0, 1.0, 3.0, 3.0])
    return {
        "normal": normal,
        "skewed (lognormal)": skewed,
        "unequal tasks": spread * normal,
        "unequal designs": designs * normal,
        "both unequal": spread * designs * normal,
        "skewed, designs unequal": designs * skewed,
    }


def main() -> None:
    """Print a Markdown table: rejections at .05 in per cent."""
    from analysis.statistics.contrasts import effect_contrasts
    from analysis.statistics.sign_flip import sign_flip

    sets = number_of_sets(2000)
    contrasts = effect_contrasts({"pooler": 3, "attn": 2})
    print_head("n", "noise", "effect", "sign flip", "F", "aligned ranks", texts=3)
    for n in (8, 12):
        rng, p_values = np.random.default_rng(0), dict[tuple[str, tuple[str, ...]], list[list[float]]]()
        for _ in range(sets):
            for (kind, noise), effect in product(noises(rng, n).items(), EFFECTS):
                columns = contrasts[effect]
                values = noise + rng.normal(size=(n, 1)) + MAIN - MAIN @ columns @ columns.T
                vectors = values @ columns
                p = [sign_flip(vectors).p, f_test(vectors), f_test(aligned_ranks(values, columns))]
                p_values.setdefault((kind, effect), []).append(p)
        for (kind, effect), by_set in p_values.items():
            print_row(n, kind, " x ".join(effect), *per_cent((np.array(by_set) <= 0.05).mean(axis=0)))


if __name__ == "__main__":
    guard(main)
