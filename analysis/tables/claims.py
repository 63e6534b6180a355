"""`claims=`: sentences of a list, each on two designs, judged by the primary test of the pairs that they name.

Holm is over the pairs of the list alone. That two designs are level holds only where equivalence is shown.
"""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.formats import count_of, level, p_is, p_text
from analysis.manifests.designs import names_of
from analysis.names import listed, suggest
from analysis.render import BEST, Section
from analysis.statistics.seeds import FEWEST_SEEDS, FEWEST_TASKS
from analysis.tables.compared_pairs import BOTH, compare_pairs, corrected_pairs, from_design, pairs_among
from analysis.tables.comparison import Comparison
from analysis.tables.marks import family_text
from analysis.tables.sensitivity import by_source
from cli.errors import UserError, nearest

AHEAD, LEVEL = KINDS = ("ahead", "level")
FORM = "Write a list of {claim: <sentence>, ahead: <design>, behind: <design>}."
LEVEL_P = " Of a level claim, p and Holm p are those of equivalence."
HOLDS, OTHER_WAY, NO_RUNS = "significant", "significant in the opposite direction", "no runs"
DIFFERENT, NO_DIFFERENCE, EQUIVALENT = "significantly different", "no significant difference", "equivalent"
TESTED = ["mean_difference", "low", "high", "p", "p_holm", "p_wilcoxon", "p_wilcoxon_holm"]
TESTED += ["p_equivalent", "p_equivalent_holm", "detectable", "n_tasks", "n_seeds"]


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


def section(compared: Comparison) -> Section | None:
    """Return the table of claims; None without `claims=`. Raises UserError for what is no list of claims."""
    settings = compared.settings
    if not settings.claims:
        return None
    labels = {name: label for label, design in compared.designs.items() for name in names_of(label, design)}
    claims = [_named(claim, labels, compared) for claim in read_claims(settings.claims)]
    tests = _tests(compared, claims)
    if tests.empty:
        claim = claims[0]
        if {claim.ahead, claim.behind} <= {*compared.matrix.columns}:
            raise UserError(f"claims= names no type that is compared. {suggest(claim.type, compared.blocks)}")
        names = f"{claim.ahead!r} and {claim.behind!r}"
        raise UserError(f"claims= names no two designs that are compared, but {names}. {suggest(claim.ahead, labels)}")
    table = pd.DataFrame([_judged(claim, tests) for claim in claims])
    counts = ", ".join(f"{count} x {name}" for name, count in Counter(table["verdict"]).items())
    note = f"Claims that hold: {table['holds'].sum()} of {len(table)} ({counts})."
    known = {*compared.matrix.columns, *compared.blocks}
    unknown = dict.fromkeys(n for c in claims for n in (c.ahead, c.behind, c.type) if n not in known)
    if unknown:
        nears = "; ".join(f"{name}: {suggest(name, known)}" for name in unknown)
        note += f" Outside the family are claims without runs or tasks of theirs. {nears}"
    notes = [note, *_changed_by_source(compared, claims, tests)]
    shown = _shown(table, compared)
    caption = (
        f"Mean difference, ahead minus behind, with its {level(settings.alpha)} interval;"
        f" {family_text(tests, 'claim')}. A claim holds (bold) where it is significant over tasks and seeds; that"
        f" designs are level, where they are equivalent within {compared.unit.margin(settings.rope)}."
        f"{LEVEL_P * (LEVEL in set(table['kind']))}"
    )
    formats = dict.fromkeys(("p over tasks and seeds", "Holm p", "p Wilcoxon"), p_text)
    emphasis = {(k, "Verdict"): BEST for k in np.flatnonzero(table["holds"])}
    made = compared.table("claims", "Claims", caption, shown, formats=formats, left=3, emphasis=emphasis)
    return Section("claims", "Claims", [made], frames={"claims": table}, notes=notes, main=True)


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Return the claims of a YAML list. Raises UserError with file and entry for what is no claim."""
    import yaml

    try:
        claims = tuple(Claim(**entry) for entry in yaml.safe_load(path.read_text(encoding="utf-8")))
        for claim in claims:
            _check(claim)
        if not claims:
            raise ValueError("there is no claim")
        return claims
    except (OSError, ValueError, TypeError, yaml.YAMLError, RecursionError) as error:
        raise UserError(f"claims={path} cannot be read: {' '.join(str(error).split())}. {FORM}") from error


def _check(claim: Claim) -> None:
    """Raise ValueError for an entry of another kind, which YAML makes of a number or a list."""
    *texts, published = claim
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise ValueError(f"{wrong[0]} must be a text, in quotes")
    if claim.ahead == claim.behind:
        raise ValueError(f"{claim.ahead} is ahead and behind")
    number = isinstance(published, int | float) and not isinstance(published, bool)
    if published is not None and not (number and 0 < abs(published) <= 1):
        raise ValueError(f"published: {published} must be a number from -1 to 1, other than 0 (points divided by 100)")


def _named(claim: Claim, labels: dict[str, str], compared: Comparison) -> Claim:
    """Return the claim with the names of its designs as labels; a design that is not compared keeps its name."""
    if claim.kind not in KINDS:
        raise UserError(f"claims=: kind: {claim.kind} is not known. {nearest(claim.kind, KINDS)}")
    ahead, behind = (labels.get(name, name) for name in (claim.ahead, claim.behind))
    return claim._replace(ahead=ahead, behind=behind, type=claim.type or compared.last)


def _tests(compared: Comparison, claims: list[Claim]) -> pd.DataFrame:
    """Return the tests of the claims' pairs, one row per (block of tasks, pair); these alone are one family."""
    settings, designs = compared.settings, set(compared.matrix.columns)
    wanted = {(of.type, frozenset((of.ahead, of.behind))) for of in claims if of.type in compared.blocks}
    wanted = {place for place in wanted if place[1] <= designs}
    pairs = compare_pairs(compared.matrix, compared.blocks, settings, frame=compared.frame, named=len(wanted))
    both = map(frozenset, zip(pairs["first"], pairs["second"], strict=True))
    pairs = pairs[[place in wanted for place in zip(pairs["type"], both, strict=True)]].reset_index(drop=True)
    return pairs if pairs.empty else _one_family(pairs, compared)


def _one_family(pairs: pd.DataFrame, compared: Comparison) -> pd.DataFrame:
    return corrected_pairs(pairs, compared.settings, pd.Series("claims", pairs.index))


def _changed_by_source(compared: Comparison, claims: list[Claim], tests: pd.DataFrame) -> list[str]:
    """Say of which claims on all tasks the significance changes where sources of tasks are the units."""
    coarse = by_source(compared)
    of_all = [claim for claim in claims if claim.type == compared.last]
    fine = tests["type"] == compared.last
    if coarse is None or tests[fine]["p"].isna().all() or coarse.pairs["p"].isna().all():
        return []
    rough = _one_family(pd.concat([_tests(coarse, of_all), tests[~fine]], ignore_index=True), compared)
    rows = [(_judged(claim, tests), _judged(claim, rough)) for claim in of_all]
    changed = [row for before, row in rows if _shown_by(row) != _shown_by(before)]
    holms = [row["p_equivalent_holm" if row["kind"] == LEVEL else "p_holm"] for row in changed]
    pairs = compared.pair_texts(pd.DataFrame(changed, columns=["first", "second"]))
    texts = list(dict.fromkeys(f"{pair} ({p_is(p)})" for pair, p in zip(pairs, holms, strict=True)))
    return [
        f"With the {len(coarse.matrix)} sources of the {len(compared.matrix)} tasks as units (Holm,"
        f" {count_of(len(rough), 'pair')}) the result changes for {listed(texts, len(texts)) or 'no pair'}."
    ]


def _shown_by(row: dict[str, Any]) -> str:
    """The verdict of a claim's row; "" where it shows neither a difference nor that designs said to be level are so."""
    return row["verdict"] if row["holds"] or row["verdict"] in (OTHER_WAY, DIFFERENT) else ""


def _judged(claim: Claim, tests: pd.DataFrame) -> dict[str, Any]:
    """Return the row of one claim: the design said to be ahead as `second`, its difference, p and verdict.

    `sign`: whether the published difference has the sign of a significant one.
    """
    row: dict[str, Any] = {"claim": claim.claim, "second": claim.ahead, "first": claim.behind, "kind": claim.kind}
    row |= {"type": claim.type, "published": claim.published, "holds": False, "sign": "", "verdict": NO_RUNS}
    both = pairs_among(tests[tests["type"] == claim.type], [claim.ahead, claim.behind])
    found = from_design(both, claim.behind).to_dict("records")
    if not found:
        return row
    (test,), level_claim = found, claim.kind == LEVEL
    row |= {name: test[name] for name in TESTED}
    significant, higher = test["significant"] == BOTH, test["mean_difference"] > 0
    if test["n_seeds"] < FEWEST_SEEDS:
        return row | {"verdict": f"no claim: {test['n_seeds']} of {FEWEST_SEEDS} seeds"}
    if np.isnan(test["p"]):
        return row | {"verdict": f"no claim: {test['n_tasks']} of {FEWEST_TASKS} tasks"}
    if claim.published is not None:
        same = "same" if (claim.published > 0) == higher else "opposite"
        row["sign"] = same if significant else NO_DIFFERENCE
    different = DIFFERENT if level_claim else HOLDS if higher else OTHER_WAY
    verdict = different if significant else NO_DIFFERENCE
    if test["equivalent"] and (level_claim or not significant):
        verdict = EQUIVALENT
    return row | {"verdict": verdict, "holds": verdict == (EQUIVALENT if level_claim else HOLDS)}


def _shown(table: pd.DataFrame, compared: Comparison) -> pd.DataFrame:
    """The table as it is printed; what has no runs has dashes. p: of equivalence where designs are said to be level."""
    table = table.reindex(columns=dict.fromkeys([*table, *TESTED]))
    unit, of_level = compared.unit, table["kind"] == LEVEL
    return pd.DataFrame(
        {
            "Claim": table["claim"],
            "Pair (ahead - behind)": compared.pair_texts(table),
            "Tasks": table["type"],
            "Difference": table["mean_difference"].map(unit.signed),
            f"{level(compared.settings.alpha)} interval": list(map(unit.interval, table["low"], table["high"])),
            "p over tasks and seeds": table["p"].mask(of_level, table["p_equivalent"]),
            "Holm p": table["p_holm"].mask(of_level, table["p_equivalent_holm"]),
            "p Wilcoxon": table["p_wilcoxon"],
            "Verdict": table["verdict"],
            "Published": [unit.signed(np.nan if value is None else value) for value in table["published"]],
            "Its sign": table["sign"],
        }
    )
