"""`claims=`: sentences of a list, each on two designs, judged by the tests of the pairs that they name.

Holm is over the pairs of the list alone. That two designs are level holds only where equivalence is shown.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from analysis.grids.formats import percent
from analysis.grids.grid import Cell, Grid
from analysis.manifests.designs import names_of
from analysis.names import suggest
from analysis.questions.compared_pairs import BOTH, compare_pairs, corrected_pairs
from analysis.questions.equivalence import EQUIVALENT, within
from analysis.questions.pair_texts import correction_text
from analysis.questions.question import Answer, Material
from analysis.questions.tables import Row, filled, p_cell, pair_name
from analysis.settings import Settings
from analysis.statistics.seeds import FEWEST_SEEDS
from cli.errors import UserError, nearest

PLACE = 35
AHEAD, LEVEL = KINDS = ("ahead", "level")
FORM = "Write a list of {claim: <sentence>, ahead: <design>, behind: <design>}."
HOLDS, OTHER_WAY, NO_RUNS = "significant", "significant in the opposite direction", "no runs"
DIFFERENT, NO_DIFFERENCE = "significantly different", "no significant difference"
TESTED = ("p", "p_holm", "p_wilcoxon", "p_wilcoxon_holm", "p_equivalent", "p_equivalent_holm", "n_tasks", "n_seeds")


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
    """Return the tests of the claims' pairs, one row per (block of tasks, pair); these alone are one family."""
    settings, pairs = material.settings, material.pairs
    if material.control:  # pairs without it were not compared
        pairs = compare_pairs(material.matrix, material.blocks, settings, frame=material.frame)
    asked = {(claim.type, frozenset((claim.ahead, claim.behind))) for claim in claims}
    both = map(frozenset, zip(pairs["first"], pairs["second"], strict=True))
    pairs = pairs[[place in asked for place in zip(pairs["type"], both, strict=True)]].reset_index(drop=True)
    return pairs if pairs.empty else corrected_pairs(pairs, settings, pd.Series("claims", pairs.index))


def _judged(claim: Claim, tests: pd.DataFrame) -> Row:
    """Return the row of one claim: the design said to be ahead as `second`, differences, p of its own tests, verdict.

    `sign`: whether the published difference has the sign of a significant one.
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
    row |= {"mean_difference": side * test["mean_difference"], "low": low, "high": high}
    row |= {name: test[name] for name in TESTED}
    significant = test["significant"] == BOTH
    if claim.published is not None:
        same = "same" if claim.published * row["mean_difference"] > 0 else "opposite"
        row["sign"] = same if significant else NO_DIFFERENCE
    if test["n_seeds"] < FEWEST_SEEDS:
        return row | {"verdict": f"no claim, {test['n_seeds']} seeds"}
    found = DIFFERENT if level else HOLDS if row["mean_difference"] > 0 else OTHER_WAY
    verdict = found if significant else NO_DIFFERENCE
    if test["equivalent"] and (level or not significant):
        verdict = EQUIVALENT
    return row | {"verdict": verdict, "holds": verdict == (EQUIVALENT if level else HOLDS)}


def _grid(table: pd.DataFrame, tests: pd.DataFrame, settings: Settings) -> Grid:
    signed = settings.numbers.signed

    def cells(row: Row) -> list[Cell]:
        names, numbers = [row["claim"], pair_name(row), row["type"]], [Cell("-")] * 4
        if row["verdict"] != NO_RUNS:
            sizes = signed(row["mean_difference"]), settings.numbers.interval(row["low"], row["high"])
            p = "p_equivalent" if row["kind"] == LEVEL else "p"
            numbers = [*map(Cell, sizes), p_cell(row, p), p_cell(row, "p_wilcoxon")]
        published = Cell("-" if pd.isna(row["published"]) else signed(row["published"]))
        verdict = Cell(row["verdict"], "best" if row["holds"] else "")
        return [*map(Cell, names), *numbers, verdict, replace(published, below=tuple(filter(None, [row["sign"]])))]

    caption = (
        "Mean difference, ahead minus behind, with its interval over tasks and seeds (with fewer than"
        f" {FEWEST_SEEDS} seeds over tasks only). Below each p:"
        f" {correction_text(tests, settings, 'claims')}. A claim holds (bold) where it is significant over tasks and"
        f" seeds; that designs are level, where they are {within(settings)}."
        f" {NO_RUNS}: a design, or the type of task, is not among what is compared."
    )
    header = ["Claim", "Pair (ahead - behind)", "Tasks", "Difference", percent(settings.alpha)]
    header += ["p over tasks and seeds", "p Wilcoxon", "Verdict", "Published"]
    grid = Grid("claims", caption, header, left=3, title="Claims")
    return filled(grid, table, cells, settings.rows_shown, "claims; claims.csv has all.")
