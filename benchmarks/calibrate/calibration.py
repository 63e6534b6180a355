"""Levels of the tests and coverage of the intervals, by simulation. docs/calibration.md quotes the tables.

    python -m benchmarks.calibrate.calibration ../shared/data/mteb_results/mteb_eng_v2_wide.csv.gz  # published
    python -m benchmarks.calibrate.calibration               # without the csv: spreads of the embedded study's designs
    python -m benchmarks.calibrate.calibration --quick       # a smoke test of a few seconds
    ... figure=docs/figures/power                          # also draw the power curves (pdf and png)

    ... only=tests,families,intervals,equivalence,power    # some of these tables alone

Prints Markdown tables; every rate in per cent with its Monte Carlo standard error.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

from analysis.statistics.correction import passes
from analysis.statistics.intervals import student_interval
from analysis.statistics.wilcoxon import p_above_zero
from benchmarks.calibrate.null_intervals import INTERVALS, covers
from benchmarks.calibrate.null_tests import ALPHA, PROCEDURES, TESTS, WILCOX, block_means, pairwise
from benchmarks.calibrate.null_worlds import BLOCK, PSEUDOMEDIAN, SD, WORLDS, Spreads, five_designs, read_spreads
from benchmarks.calibrate.tables import Rates, above, below, draw, measure, print_power, print_table
from cli.errors import UserError, guard, nearest
from records.manifest import code

DIFFERENCES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
SPREADS = (0.02, 0.06)  # standard deviation of the differences: designs of one study; published models
POWER_OF = ("signed-rank, wilcox", "sign test", "permutation of the mean", "paired t")
FAMILY_WORLDS = (
    "exchangeable",
    "symmetric",
    "real, as they are",
    "exchangeable, rounded to .01",
    "exchangeable, fifth design better",
    "exchangeable, related, rho .6",
)
MARGIN = 0.005  # of the equivalence tests: the default of rope=
CENTRES = {"at the margin": 1.0, "half the margin": 0.5, "no difference": 0.0}
EQUIVALENCE_SIZES = (8, 20, 41, 60, 120, 240, 600)
EQUIVALENCE_WORLDS = (
    "symmetric",
    "real, as they are",
    "real, pseudomedian 0",
    "unequal spread",
    "heavy tails",
    "skewed, mean 0",
)


@dataclass(frozen=True)
class Plan:
    """Repetitions of each rate (tests; intervals and power), the numbers of tasks, and where the figure goes."""

    reps: int = 10_000
    interval_reps: int = 4_000
    sizes: tuple[int, ...] = (5, 8, 12, 20, 41, 60)
    equivalence_sizes: tuple[int, ...] = EQUIVALENCE_SIZES
    figure: str = ""


QUICK = Plan(20, 20, (5, 12), (5, 12))


def false_positives(plan: Plan, spreads: Spreads, world: str, n: int) -> Rates:
    """Return test -> share rejected at 5 %; with related tasks also on the means of the blocks."""
    d = WORLDS[world](_rng(world, n), spreads, plan.reps, n)
    rates = {name: float(passes(test(d), ALPHA).mean()) for name, test in TESTS.items()}
    if world.startswith("related"):
        rates["signed-rank on block means"] = float(passes(WILCOX(block_means(d)), ALPHA).mean())
    return rates


def coverage(plan: Plan, spreads: Spreads, world: str, n: int) -> Rates:
    """Return interval -> share that holds the population mean; where the pseudomedian is 0, Hodges-Lehmann alone."""
    d = WORLDS[world](_rng(world, n), spreads, plan.interval_reps, n)
    mean = SD * (1 - float(np.log(2))) if world == "skewed, median 0" else 0.0
    rates = {}
    for name, interval in INTERVALS.items():
        if world == "real, pseudomedian 0" and name != "Hodges-Lehmann":
            continue  # their target, the mean, is another one for each pair
        bounds = interval(d)
        rates[name] = float(covers(bounds, mean).mean())
        if name == "Hodges-Lehmann" and world == "skewed, mean 0":
            rates["Hodges-Lehmann, of its own target"] = float(covers(bounds, SD * (PSEUDOMEDIAN - 1)).mean())
    return rates


def family_wise(plan: Plan, spreads: Spreads, world: str, n: int) -> Rates:
    """Return procedure -> share of repetitions with at least one false rejection among five designs."""
    rng, reps = _rng(world, n), plan.reps
    kind = world.partition(",")[0]
    scores = five_designs(rng, spreads, reps, n, kind)
    if world.endswith("rounded to .01"):
        scores = np.round(scores, 2)
    if world.endswith("rho .6"):
        shared = np.repeat(five_designs(rng, spreads, reps, -(-n // BLOCK), kind), BLOCK, axis=1)[:, :n]
        scores = np.sqrt(0.6) * shared + np.sqrt(0.4) * scores
    if not world.endswith("better"):
        return {name: float(procedure(scores).mean()) for name, procedure in PROCEDURES.items()}
    scores[:, :, -1] += 2 * SD
    return {"signed-rank, Holm, the 6 equal pairs of 10": float(pairwise(scores, WILCOX, better=1).mean())}


def power_of_tests(plan: Plan, spreads: Spreads, spread: str, n: int) -> Rates:
    """Return "difference test" -> share rejected; symmetric differences of standard deviation `spread`."""
    rates: Rates = {}
    for difference in DIFFERENCES:
        d = WORLDS["symmetric"](_rng(spread, n), spreads, plan.interval_reps, n) * (float(spread) / SD) + difference
        rates |= {f"{difference} {name}": float(passes(TESTS[name](d), ALPHA).mean()) for name in POWER_OF}
    return rates


def called_equivalent(share: float, plan: Plan, spreads: Spreads, world: str, n: int) -> Rates:
    """Return method -> share called equivalent within .005 at 5 %; standard deviation .02, uncorrected.

    The centre is `share` margins. The two one-sided signed-rank tests, and for comparison Student's 90 % interval
    within the margin.
    """
    d = WORLDS[world](_rng(world, n), spreads, plan.interval_reps, n) * (SPREADS[0] / SD) + share * MARGIN
    both = np.maximum(p_above_zero(d + MARGIN), p_above_zero(MARGIN - d))  # `equivalence`
    low, high = student_interval(d, 0.9)
    by_t = (low > -MARGIN) & (high < MARGIN)
    return {"signed-rank": float(passes(both, ALPHA).mean()), "t": float(by_t.mean())}


def _rng(world: str, n: int) -> np.random.Generator:
    return np.random.default_rng([n, *world.encode()])


RATES = {
    "tests": ("False positives at 5 %", false_positives, WORLDS),
    "families": ("Any false positive among five designs", family_wise, FAMILY_WORLDS),
    "intervals": ("Coverage of 95 % intervals", coverage, WORLDS),
}


def print_rates(name: str, plan: Plan, spreads: Spreads) -> None:
    """Print the table `name` of `RATES`."""
    title, job, worlds = RATES[name]
    reps, bad = (plan.interval_reps, below) if name == "intervals" else (plan.reps, above(plan.reps))
    print_table(title, measure(job, plan, spreads, worlds), reps, bad)


def print_equivalence(plan: Plan, spreads: Spreads) -> None:
    """Print how often pairs are called equivalent: a false claim at the margin, a right one elsewhere."""
    sized = replace(plan, sizes=plan.equivalence_sizes)
    for name, share in CENTRES.items():
        table = measure(partial(called_equivalent, share), sized, spreads, EQUIVALENCE_WORLDS)
        bad = above(plan.interval_reps) if share == 1 else lambda _: False
        print_table(f"Called equivalent within .005: {name}", table, plan.interval_reps, bad)


def print_powers(plan: Plan, spreads: Spreads) -> None:
    """Print the power of the tests and draw it where a figure is asked for."""
    power = measure(power_of_tests, plan, spreads, [str(sd) for sd in SPREADS])
    print_power(power)
    if plan.figure:
        draw(power, Path(plan.figure))


TABLES: dict[str, Callable[[Plan, Spreads], None]] = {
    **{name: partial(print_rates, name) for name in RATES},
    "equivalence": print_equivalence,
    "power": print_powers,
}


def main() -> None:
    """Print the tables that the words ask for."""
    words = sys.argv[1:]
    keys = {key: value for key, equals, value in (word.partition("=") for word in words) if equals}
    plan = replace(QUICK if "--quick" in words else Plan(), figure=keys.get("figure", ""))
    paths = [Path(word) for word in words if word != "--quick" and not word.startswith(("figure=", "only="))]
    if paths and not paths[0].is_file():
        raise UserError(f"{paths[0]} is not a file. Name the csv of published scores, or none for our own study.")
    wanted = keys["only"].split(",") if keys.get("only") else list(TABLES)
    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        raise UserError(f"only={keys['only']}: there is no table {unknown[0]!r}. {nearest(unknown[0], TABLES)}")
    spreads = read_spreads(paths[0] if paths else None)
    commit = (code()["commit"] or "")[:7]
    print(f"{date.today()}, commit {commit}. Spreads: {spreads.source}, {len(spreads.pairs):,} pairs.")
    print(f"{plan.reps:,} repetitions of each test, {plan.interval_reps:,} of each interval and power.")
    for name in wanted:
        TABLES[name](plan, spreads)


if __name__ == "__main__":
    guard(main)
