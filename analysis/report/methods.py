"""The methods paragraph: the tests that were really used, with the settings of this run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analysis.grids.formats import fraction
from analysis.names import listed
from analysis.scores.task_types import known_types
from analysis.statistics.correction import correction_name
from analysis.statistics.sign_flip import EXACT_UP_TO, SEED
from analysis.tables.notes import seed_notes
from analysis.tables.result_json import versions

if TYPE_CHECKING:
    from analysis.analyse import Result


RANKS = (
    "All designs together were compared by Friedman's test on the ranks within tasks [@friedman1937] with the F of Iman"
    " and Davenport [@iman1980]; average ranks that differ by less than Nemenyi's critical difference [@nemenyi1963;"
    " @demsar2006] are not told apart."
)
BORDA = "Designs are also ranked by Borda count, with a bootstrap of the tasks for the rank's interval."
EQUIVALENCE = (
    "Two designs were called equivalent within {rope:g} where two one-sided signed-rank tests [@schuirmann1987] of"
    " their differences, shifted by that margin either way, were both significant after the same correction; pairs that"
    " were neither told apart nor equivalent are not told. The posterior of a mean difference is Student's, with the"
    " prior of Jeffreys [@box1973]."
)
POWER = (
    "The power to detect the observed difference and one of {delta:g}, and the number of tasks needed, were simulated"
    " from each pair's own differences [@efron1993]."
)
VARIANCE = "The variance of scores was split into design, task, seed and their interactions [@searle1992]."
SEEDS = (
    "Intervals over tasks and seeds come from the two-way random model with Satterthwaite's degrees of freedom"
    " [@satterthwaite1946]."
)
CLUSTERS = (
    "Tasks that share a source (cluster={cluster}) were also taken as one unit, whose differences flip their signs"
    " together [@winkler2015]; intervals over such units have the error and degrees of freedom of Bell and McCaffrey"
    " [@bell2002]."
)
ITEMS = (
    "Within single tasks designs were compared over the task's items by swapping the two designs on an item"
    " [@pitman1937]."
)
SENTENCES = {
    "items": ITEMS,
    "ranks": RANKS,
    "borda": BORDA,
    "equivalence": EQUIVALENCE,
    "power": POWER,
    "variance": VARIANCE,
    "seeds": SEEDS,
    "clusters": CLUSTERS,
}


def section_methods(result: "Result") -> Iterator[str]:
    """Yield a sentence for each section that printed a table, with the settings of this run."""
    for section in result.sections:
        if section.grids and section.name in SENTENCES:
            yield SENTENCES[section.name].format(**vars(result.settings))


ZEROS = {
    "wilcox": "Differences of zero were dropped before ranking",
    "pratt": "Differences of zero were ranked and then dropped [@pratt1959]",
    "zsplit": "Differences of zero were ranked, and half of their ranks given to either side",
}
CORRECTIONS = {
    "holm": "p-values were corrected by Holm's step-down procedure [@holm1979]",
    "bh": "p-values were corrected by the procedure of Benjamini and Hochberg, which bounds the rate of false"
    " discoveries [@benjamini1995]",
}


def methods(result: "Result") -> list[str]:
    """Return the sentences, citations as [@key]."""
    return [
        *_compared(result),
        *_control(result),
        *_pairs(result),
        *_corrected(result),
        *_sizes(result),
        *_effects(result),
        *section_methods(result),
        _software(result),
    ]


def _compared(result: "Result") -> Iterator[str]:
    tasks, kinds = len(result.matrix), {kind: len(own) for kind, own in result.types.items()}
    types = (
        f" of {len(kinds)} types ({', '.join(f'{kind}: {n}' for kind, n in kinds.items())})" if len(kinds) > 1 else ""
    )
    kind = f" of the type {next(iter(kinds))}" if len(kinds) == 1 else ""
    yield f"We compared {len(result.designs)} designs on {tasks} tasks{types}{kind}{_benchmark(result)}."
    if any(design.pooler for design in result.designs.values()):
        yield "The designs are cells of the grid pooling x attention [@tang2024]."
    yield from seed_notes(result.frame, list(result.designs))


def _benchmark(result: "Result") -> str:
    """mteb's own tasks, or others that its program scored."""
    if all(task in known_types() for task in result.matrix.index):
        return " of MTEB [@muennighoff2023]"
    folders = all(path.is_dir() for path in result.settings.scores)
    return ", scored with the program of MTEB [@muennighoff2023]" if folders else ""


def _control(result: "Result") -> Iterator[str]:
    """Where manifests prove it; foreign scores prove nothing and nothing is claimed."""
    if not any(design.runs for design in result.designs.values()):
        return
    factors = listed(result.settings.factors)
    but = listed([key for note in result.footnotes for key in note.keys])
    allowed = f", except in {but}, which we let through" if but else ""
    agree = f"agree in everything but the factors ({factors}) and what follows from them"
    yield f"The manifests of all runs {agree}{allowed}."


def _pairs(result: "Result") -> Iterator[str]:
    settings = result.settings
    which = f"Each design was compared with {result.control}" if result.control else "Every two designs were compared"
    yield (
        f"{which} by the two-sided Wilcoxon signed-rank test [@wilcoxon1945] with the task as the pairing unit; the"
        " direction of each difference was fixed beforehand. p is exact, with ties too: the distribution of the rank"
        " sum over all signs, given the ranks [@hollander1973]."
    )
    dropped = int(result.pairs["n_zero"].sum())
    found = (
        f"; there were {dropped:,} such differences in {len(result.pairs):,} tests" if dropped else "; there were none"
    )
    yield (
        f"{ZEROS[settings.zeros]}{found}. Differences were rounded to {settings.decimals} decimals, so that rounding"
        " makes no rank."
    )


def _corrected(result: "Result") -> Iterator[str]:
    settings, pairs = result.settings, result.pairs
    alpha = fraction(settings.alpha)
    if settings.correction == "none":
        yield f"No correction for the {len(pairs):,} tests was made; the level of significance is {alpha}."
    else:
        what = "of one task type" if settings.family == "type" else "of all task types together"
        how = CORRECTIONS.get(settings.correction, f"p-values were corrected by {settings.correction}")
        size = int(pairs["family_size"].max())
        pairs_of = f"over the {size:,} pairs" if size > 1 else "over the single pair"
        yield f"{how[0].upper()}{how[1:]} {pairs_of} {what}; the level of significance is {alpha}."
    name = correction_name(settings.correction)
    for word, said in (("no", ""), ("uncorrected", f" after {name}")):
        kinds = [str(k) for k, own in pairs.groupby("type", sort=False) if (own["reachable"] == word).all()]
        if kinds:
            yield f"The number of tasks is too small for any data to reach {alpha}{said} on {', '.join(kinds)}."


def _sizes(result: "Result") -> Iterator[str]:
    """Effect sizes, and the further columns of the table of pairs that this run has."""
    columns, level = set(result.pairs.columns), f"{100 * (1 - result.settings.alpha):g} %"
    yield "The effect size is the matched-pairs rank-biserial correlation, (W+ - W-) / (W+ + W-) [@kerby2014]."
    if "hodges_lehmann" in columns:
        yield (
            f"The size of a difference is its Hodges-Lehmann estimate with the exact {level} interval that inverts the"
            f" same test{_zeros_of_sizes(result)} [@hodges1963]; stars and signs in tables and figures are theirs. Mean"
            " differences stand beside them without a mark."
        )
    if "mean_low" in columns and result.pairs["mean_low"].notna().any():
        yield f"The {level} interval of a mean difference is Student's over tasks [@student1908]."
    checks = {
        "p_permutation": "the paired permutation test of the mean [@pitman1937]",
        "p_sign": "the sign test [@dixon1946]",
        "p_t": "the paired t test",
    }
    found = [text for column, text in checks.items() if column in columns and result.pairs[column].notna().any()]
    if found:
        yield f"As cross-checks the table of pairs also holds {_joined(found)}."


def _zeros_of_sizes(result: "Result") -> str:
    """Under the rule of Wilcoxon the estimate leaves out what the test drops."""
    dropped = result.settings.zeros == "wilcox" and (result.pairs["n_zero"] > 0).any()
    return ", differences of zero left out as there" if dropped else ""


def _effects(result: "Result") -> Iterator[str]:
    if not result.effects:
        return
    names = " and ".join(found.crossing.name for found in result.effects)
    tests = [found.tests for found in result.effects]
    size = max(int(table["family_size"].max()) for table in tests)
    corrected = correction_name(result.settings.correction)
    after = f"; {corrected} over the effects of one task type (family of {size})" if corrected else ""
    yield (
        f"Main effects and interactions ({names}) were tested over tasks by sign flips of within-task contrasts"
        f" [@winkler2014], with the F of the repeated-measures analysis as the statistic{after}."
    )
    if not all(table["exact"].astype(bool).all() for table in tests):
        flips = max(
            int(table.loc[~table["exact"].astype(bool), "flips"].max()) for table in tests if not table["exact"].all()
        )
        yield (
            f"With more than {EXACT_UP_TO} tasks up to {flips:,} random flips were drawn (seed {SEED}), and"
            " p = (b + 1) / (m + 1) [@phipson2010]."
        )


def _software(result: "Result") -> str:
    """Name what ran, no package that is merely installed."""
    found = versions(result.settings.figures)
    used = ", ".join(f"{name} {number}" for name, number in found.items() if name != "python")
    return f"Computed with Python {found['python']} ({used})."


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
