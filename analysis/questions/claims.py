"""Claims of a list, judged: each names a pair of designs, and the tests are those that all pairs have.

docs/decisions/claims.md says what is corrected together, and which estimate stands beside which interval.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.claims import LEVEL, Claim
from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.names import suggest
from analysis.questions.compared_pairs import compare_pairs, corrected_pairs
from analysis.questions.design_by_type import simple_effects
from analysis.questions.equivalence import EQUIVALENT, NOT_TOLD, TOLD, equivalence_tests, within
from analysis.questions.pair_texts import correction_text, signed_rank_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled, p_cell, pair_name
from analysis.scores.labels import names_of
from analysis.scores.task_types import known_types
from analysis.settings import Settings
from analysis.statistics.seeds import FEWEST_SEEDS
from cli.errors import UserError
from cli.help import CONF

PLACE = 35
METHODS = (
    "Claims of a list were judged by the tests of the pairs that they name, corrected over these alone; that two"
    " designs are level was taken to hold only where equivalence was shown."
)
HOLDS, OTHER_WAY, NO_RUNS = "told", "told the other way", "no runs"
# columns of the tests that a claim is judged by -> their names in claims.csv, whose endings `p_cell` knows
TESTED = {name: name for name in ("p", "p_adjusted", "p_min_adjusted", "reachable", "p_seeds")}
TESTED |= {"p_seeds_adjusted": "p_adjusted_seeds"}


def answer(material: Material) -> Answer | None:
    """Return the table `claims`; None without `claims=`. Raises UserError for a design or a type that cannot be."""
    if not material.settings.claims:
        return None
    settings, claims = material.settings.of_other_tests, [_asked(claim, material) for claim in material.settings.claims]
    tests = _tests(material, claims)
    runs = material.frame.groupby("design")["seed"].nunique().to_dict()
    table = pd.DataFrame([_judged(claim, tests, runs) for claim in claims])
    for_file = table.assign(verdict=table["verdict"].replace(EQUIVALENT, within(replace(settings, unit="fraction"))))
    table["verdict"] = table["verdict"].replace(EQUIVALENT, within(settings))
    grid = _grid(table, tests, settings)
    return Answer(
        "claims", grids=[grid], frames={"claims": for_file}, notes=_notes(table), methods=[METHODS], main=True
    )


def _asked(claim: Claim, material: Material) -> Claim:
    """Return the claim with the names of its designs as labels; a design that is not compared keeps its name."""
    labels = {name: label for label, design in material.designs.items() for name in names_of(label, design)}
    poolers, attentions = ({file.stem for file in (CONF / group).glob("*.yaml")} for group in ("pooler", "attn"))
    for name in (claim.ahead, claim.behind):
        pooler, _, attention = name.split(" ")[0].rpartition("-")
        if name not in labels and not (pooler in poolers and attention in attentions):
            neither = "neither compared nor a <pooler>-<attn> of conf/"
            raise UserError(f"claims= names {name!r}, which is {neither}. {suggest(name, labels)}")
    types = {"", *material.blocks, *known_types().values()}
    if claim.type not in types:
        raise UserError(f"claims= names the type {claim.type!r}. {suggest(claim.type, types - {''})}")
    ahead, behind = (labels.get(name, name) for name in (claim.ahead, claim.behind))
    if ahead == behind:
        raise UserError(f"claims= compares {ahead} with itself ({claim.claim!r}). Name two designs.")
    return claim._replace(ahead=ahead, behind=behind, type=claim.type or material.last)


def _tests(material: Material, claims: list[Claim]) -> pd.DataFrame:
    """Return the tests of the claims' pairs, corrected over these alone, one row per (block of tasks, pair).

    Columns: those of `simple_effects`; with the ending `_level` the tests of equivalence; `within_margin`.
    """
    settings, pairs = material.settings.of_other_tests, material.pairs
    if material.control:  # pairs without it were not compared
        pairs = compare_pairs(material.matrix, material.blocks, settings, frame=material.frame)
    asked = {(claim.type, frozenset((claim.ahead, claim.behind))) for claim in claims}
    both = map(frozenset, zip(pairs["first"], pairs["second"], strict=True))
    pairs = pairs[[place in asked for place in zip(pairs["type"], both, strict=True)]].reset_index(drop=True)
    if pairs.empty:
        return pairs
    tests = simple_effects(corrected_pairs(pairs, settings), material.matrix, material.blocks, settings)
    alike = equivalence_tests(replace(material, pairs=tests), settings.rope, tests["type"].unique().tolist())
    return tests.assign(within_margin=alike["told"], **{f"{name}_level": alike[name] for name in TESTED})


def _judged(claim: Claim, tests: pd.DataFrame, runs: dict[str, int]) -> Row:
    """Return the row of one claim: the design said to be ahead as `second`, differences, p of its own tests, verdict.

    `sign`: whether the published difference has the sign that was told. runs: design -> how many.
    """
    kind, pair = claim.type, {claim.ahead, claim.behind}
    row: Row = {"claim": claim.claim, "second": claim.ahead, "first": claim.behind, "kind": claim.kind, "type": kind}
    row |= {"published": claim.published, "holds": False, "sign": "", "verdict": NO_RUNS}
    matches = tests[(tests["type"] == kind) & tests["first"].isin(pair) & tests["second"].isin(pair)].to_dict("records")
    if not matches:
        return row
    (test,), level = matches, claim.kind == LEVEL
    side = 1 if test["second"] == claim.ahead else -1
    low, high = sorted((side * test["low"], side * test["high"]))
    row |= {"n_tasks": test["n_pairs"], "n_seeds": test["n_seeds"], "difference": side * test["mean"]}
    row |= {"low": low, "high": high, "hodges_lehmann": side * test["hodges_lehmann"]}
    row |= {name: test[f"{column}_level" if level else column] for column, name in TESTED.items()}
    if claim.published is not None:
        same = "same" if claim.published * row["difference"] > 0 else "opposite"
        row["sign"] = f"{HOLDS} {same}" if test["told"] else NOT_TOLD
    if test["n_seeds"] < FEWEST_SEEDS:
        of_runs = "copies of one run" if test["copies"] else _few_runs(claim, runs)
        return row | {"verdict": f"no claim, {of_runs}"}
    told = TOLD if level else HOLDS if row["difference"] > 0 else OTHER_WAY
    verdict = told if test["told"] else NOT_TOLD
    if test["within_margin"] and (level or not test["told"]):
        verdict = EQUIVALENT
    return row | {"verdict": verdict, "holds": verdict == (EQUIVALENT if level else HOLDS)}


def _few_runs(claim: Claim, runs: dict[str, int]) -> str:
    """Return "2 runs each", or of the design that has fewer "1 run of c"."""
    fewer = min((claim.ahead, claim.behind), key=lambda name: runs[name])
    each = "each" if runs[claim.ahead] == runs[claim.behind] else f"of {fewer}"
    return f"{runs[fewer]} run{'s' if runs[fewer] > 1 else ''} {each}"


def _notes(table: pd.DataFrame) -> list[str]:
    """Count the verdicts, and the published signs."""
    counts = ", ".join(f"{name} {count}" for name, count in Counter(table["verdict"]).items())
    notes = [f"Claims that hold: {table['holds'].sum()} of {len(table)} ({counts})."]
    signs = table[table["sign"] != ""]
    if len(signs):
        same = int((signs["published"].astype(float) * signs["difference"] > 0).sum())
        counts = ", ".join(f"{name} {count}" for name, count in Counter(signs["sign"]).items())
        notes.append(f"Signs of {len(signs)} published differences: {counts}; {same} of the means have that sign.")
    return notes


def _grid(table: pd.DataFrame, tests: pd.DataFrame, settings: Settings) -> Grid:
    published, signed = bool(table["published"].notna().any()), settings.numbers.signed

    def cells(row: Row) -> list[Cell]:
        names, numbers = [row["claim"], pair_name(row), row["type"]], [Cell("-")] * 5
        if row["verdict"] != NO_RUNS:
            names[2] += f" (n = {row['n_tasks']:.0f})"
            ends = settings.numbers.interval(row["low"], row["high"])
            sizes = signed(row["difference"]), ends, signed(row["hodges_lehmann"])
            seeds = Cell("-") if np.isnan(row["p_seeds"]) else p_cell(row, settings, "_seeds", star=False)
            numbers = [*map(Cell, sizes), p_cell(row, settings, star=False), seeds]
        size = "-" if pd.isna(row["published"]) else signed(row["published"])
        sign = [Cell(size, below=tuple(filter(None, [row["sign"]])))] if published else []
        return [*map(Cell, names), *numbers, Cell(row["verdict"], "best" if row["holds"] else ""), *sign]

    header = ["Claim", "Pair (ahead - behind)", "Tasks", "Mean", f"{percent(settings.alpha)} of the mean", "Typical"]
    header += ["p over tasks", "p over tasks and seeds", "Verdict", *(["Published"] if published else [])]
    grid = Grid("claims", _caption(tests, settings), header, left=3, title="Claims")
    return filled(grid, table, cells, settings.rows_shown, "claims; claims.csv has all.")


def _caption(tests: pd.DataFrame, settings: Settings) -> str:
    absent = f"{NO_RUNS}: a design, or the type of task, is not among what is compared."
    if tests.empty:
        return absent
    return (
        "Differences ahead minus behind. Mean: over tasks and the seeds of both, with Student's interval of that mean"
        f" over tasks and the pair's seeds, uncorrected (with fewer than {FEWEST_SEEDS} seeds both over tasks"
        " alone). Typical: Hodges-Lehmann, the estimate of the test over tasks, which is the"
        f" {signed_rank_text(tests, settings)}. p over tasks and seeds: of the mean. Below each p:"
        f" {correction_text(tests, settings, 'claims')}. A claim holds (bold) where both tests tell it; that designs"
        f" are level, where they are {within(settings)}, and its p are of two one-sided tests at that margin. {absent}"
    )
