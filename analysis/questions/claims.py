"""`claims=`: sentences of a list, each on two designs, judged by the tests of the pairs that they name.

The correction is over the pairs of the list alone. That two designs are level holds only where equivalence is shown.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.manifests.designs import names_of
from analysis.names import suggest
from analysis.questions.compared_pairs import compare_pairs, corrected_pairs
from analysis.questions.design_by_type import simple_effects
from analysis.questions.equivalence import EQUIVALENT, NOT_TOLD, TOLD, equivalence_tests, within
from analysis.questions.pair_texts import correction_text, signed_rank_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled, p_cell, pair_name
from analysis.settings import Settings
from analysis.statistics.seeds import FEWEST_SEEDS
from cli.errors import UserError, nearest

PLACE = 35
AHEAD, LEVEL = KINDS = ("ahead", "level")
FORM = "Write a list of {claim: <sentence>, ahead: <design>, behind: <design>}."
HOLDS, OTHER_WAY, NO_RUNS = "told", "told the other way", "no runs"
# columns of the tests that a claim is judged by -> their names in claims.csv, whose endings `p_cell` knows
TESTED = {name: name for name in ("p", "p_adjusted", "p_min_adjusted", "reachable", "p_seeds")}
TESTED |= {"p_seeds_adjusted": "p_adjusted_seeds"}


class Claim(NamedTuple):
    """One sentence and the pair of designs that it is about, by the names that the tables give them.

    `kind`: ahead, or level, which takes equivalence; `type`: the type of task, "" for all tasks compared;
    `published`: the difference as published, ahead minus behind, between -1 and 1.
    """

    claim: str
    ahead: str
    behind: str
    kind: str = AHEAD
    type: str = ""
    published: float | None = None


def answer(material: Material) -> Answer | None:
    """Return the table `claims`; None without `claims=`. Raises UserError for what is no list of claims."""
    settings = material.settings
    if not settings.claims:
        return None
    labels = {name: label for label, design in material.designs.items() for name in names_of(label, design)}
    claims = [_named(claim, labels, material) for claim in read_claims(settings.claims)]
    tests = _tests(material, claims)
    if tests.empty:
        name = claims[0].ahead
        raise UserError(f"claims= names no two designs that are compared, but {name!r}. {suggest(name, labels)}")
    table = pd.DataFrame([_judged(claim, tests) for claim in claims])
    for_file = table.assign(verdict=table["verdict"].replace(EQUIVALENT, within(replace(settings, unit="fraction"))))
    table["verdict"] = table["verdict"].replace(EQUIVALENT, within(settings))
    counts = ", ".join(f"{name} {count}" for name, count in Counter(table["verdict"]).items())
    note = f"Claims that hold: {table['holds'].sum()} of {len(table)} ({counts})."
    grid = _grid(table, tests, settings)
    return Answer("claims", grids=[grid], frames={"claims": for_file}, notes=[note], main=True)


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Return the claims of a YAML list. Raises UserError with file and entry for what is no claim."""
    import yaml

    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
        return tuple(Claim(**entry) for entry in entries)
    except (OSError, ValueError, TypeError, yaml.YAMLError, RecursionError) as error:
        raise UserError(f"claims={path} cannot be read: {' '.join(str(error).split())}. {FORM}") from error


def _named(claim: Claim, labels: dict[str, str], material: Material) -> Claim:
    """Return the claim with the names of its designs as labels; a design that is not compared keeps its name."""
    if claim.kind not in KINDS:
        raise UserError(f"claims=: kind: {claim.kind} is not known. {nearest(claim.kind, KINDS)}")
    ahead, behind = (labels.get(name, name) for name in (claim.ahead, claim.behind))
    return claim._replace(ahead=ahead, behind=behind, type=claim.type or material.last)


def _tests(material: Material, claims: list[Claim]) -> pd.DataFrame:
    """Return the tests of the claims' pairs, corrected over these alone, one row per (block of tasks, pair).

    Columns: those of `simple_effects`; with the ending `_level` the tests of equivalence; `within_margin`.
    """
    settings, pairs = material.settings, material.pairs
    if material.control:  # pairs without it were not compared
        pairs = compare_pairs(material.matrix, material.blocks, settings, frame=material.frame)
    asked = {(claim.type, frozenset((claim.ahead, claim.behind))) for claim in claims}
    both = map(frozenset, zip(pairs["first"], pairs["second"], strict=True))
    pairs = pairs[[place in asked for place in zip(pairs["type"], both, strict=True)]].reset_index(drop=True)
    if pairs.empty:
        return pairs
    tests = simple_effects(corrected_pairs(pairs, settings), material.matrix, material.blocks, settings)
    alike = equivalence_tests(replace(material, pairs=tests), tests["type"].unique().tolist())
    return tests.assign(within_margin=alike["told"], **{f"{name}_level": alike[name] for name in TESTED})


def _judged(claim: Claim, tests: pd.DataFrame) -> Row:
    """Return the row of one claim: the design said to be ahead as `second`, differences, p of its own tests, verdict.

    `sign`: whether the published difference has the sign that was told.
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
        return row | {"verdict": f"no claim, {test['n_seeds']} seeds"}
    told = TOLD if level else HOLDS if row["difference"] > 0 else OTHER_WAY
    verdict = told if test["told"] else NOT_TOLD
    if test["within_margin"] and (level or not test["told"]):
        verdict = EQUIVALENT
    return row | {"verdict": verdict, "holds": verdict == (EQUIVALENT if level else HOLDS)}


def _grid(table: pd.DataFrame, tests: pd.DataFrame, settings: Settings) -> Grid:
    signed = settings.numbers.signed

    def cells(row: Row) -> list[Cell]:
        names, numbers = [row["claim"], pair_name(row), row["type"]], [Cell("-")] * 5
        if row["verdict"] != NO_RUNS:
            ends = settings.numbers.interval(row["low"], row["high"])
            sizes = signed(row["difference"]), ends, signed(row["hodges_lehmann"])
            seeds = Cell("-") if np.isnan(row["p_seeds"]) else p_cell(row, settings, "_seeds")
            numbers = [*map(Cell, sizes), p_cell(row, settings), seeds]
        published = Cell("-" if pd.isna(row["published"]) else signed(row["published"]))
        verdict = Cell(row["verdict"], "best" if row["holds"] else "")
        return [*map(Cell, names), *numbers, verdict, replace(published, below=tuple(filter(None, [row["sign"]])))]

    caption = (
        "Differences ahead minus behind. Mean: over tasks and the seeds of both, with its interval (with fewer than"
        f" {FEWEST_SEEDS} seeds over tasks alone). Typical: Hodges-Lehmann. p over tasks:"
        f" {signed_rank_text(tests, settings)}; p over tasks and seeds: of the mean; below each p:"
        f" {correction_text(tests, settings, 'claims')}. A claim holds (bold) where both tests tell it; that"
        f" designs are level, where they are {within(settings)}."
        f" {NO_RUNS}: a design, or the type of task, is not among what is compared."
    )
    header = ["Claim", "Pair (ahead - behind)", "Tasks", "Mean", f"{percent(settings.alpha)} of the mean", "Typical"]
    header += ["p over tasks", "p over tasks and seeds", "Verdict", "Published"]
    grid = Grid("claims", caption, header, left=3, title="Claims")
    return filled(grid, table, cells, settings.rows_shown, "claims; claims.csv has all.")
