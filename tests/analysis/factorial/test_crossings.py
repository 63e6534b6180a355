"""Which designs form a complete crossing, and what is left out."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from analysis.manifests.designs import Design
from analysis.tables.crossings import complete_grid, crossing_of, factor_table, varying

PLAIN, HEADS, TOKENS, ATTNS = (
    ["eos", "mean", "weightedmean"],
    ["lastlayer", "multilayer"],
    ["last", "mean", "all"],
    ["causal", "bi"],
)


def table(rows, names=("pooler", "attn", "pooler.tokens")):
    return pd.DataFrame(rows, index=["-".join(filter(None, row)) for row in rows], columns=list(names))


def eighteen():
    plain = [(p, a, "") for p, a in product(PLAIN, ATTNS)]
    return table(plain + [(p, a, t) for p, t, a in product(HEADS, TOKENS, ATTNS)])


def test_a_full_crossing_is_used_whole_and_needs_no_note():
    rows = [(p, a, "all" if p in HEADS else "") for p, a in product(PLAIN + HEADS, ATTNS)]
    found, notes = crossing_of(table(rows))
    assert found.levels == {"pooler": PLAIN + HEADS, "attn": ATTNS}
    assert found.designs == list(table(rows).index)
    assert notes == []


def test_eighteen_designs_give_three_factors():
    three, notes = crossing_of(eighteen())
    assert three.levels == {"pooler": HEADS, "attn": ATTNS, "pooler.tokens": TOKENS}
    assert three.designs[:4] == [
        "lastlayer-causal-last",
        "lastlayer-causal-mean",
        "lastlayer-causal-all",
        "lastlayer-bi-last",
    ]
    assert len(notes) == 1
    assert "12 of 18 designs" in notes[0]
    assert "left out: eos-causal, eos-bi, mean-causal, mean-bi, weightedmean-causal, weightedmean-bi." in notes[0]


def test_a_missing_cell_drops_a_level_and_names_it():
    kept = eighteen().drop(index="multilayer-bi-mean")
    three, notes = crossing_of(kept)
    assert three.levels["pooler.tokens"] == ["last", "all"]
    assert len(three.designs) == 8
    assert "8 of 17 designs" in notes[0]


def test_a_factor_with_one_level_left_is_held():
    rows = [*[(p, a, "8") for p, a in product(PLAIN, ATTNS)], ("eos", "causal", "16")]
    found, (note,) = crossing_of(table(rows, ("pooler", "attn", "lora.r")))
    assert found.fixed == {"lora.r": "8"}
    assert len(found.designs) == 6
    assert "at lora.r 8 are over 6 of 7 designs" in note


def test_nothing_crossed():
    assert crossing_of(table([("eos", "causal", ""), ("mean", "bi", "")]))[0] is None
    assert "no two of pooler, attn" in crossing_of(table([("eos", "causal", ""), ("mean", "bi", "")]))[1][0]
    assert crossing_of(factor_table({"a": Design("a"), "b": Design("b")})) == (None, [])


def test_designs_alike_in_all_factors_are_named():
    rows = table([(p, a, "") for p, a in product(PLAIN, ATTNS)] + [("eos", "bi", "")])
    found, (note,) = crossing_of(rows)
    assert found is None
    assert note.startswith("No factorial effects: eos-bi, eos-bi do not differ in pooler, attn")


def test_the_search_is_the_largest_of_all_sub_grids():
    """Against every choice of levels of every factor, on random incomplete tables."""
    rng = np.random.default_rng(4)
    levels = {"a": list("xyz"), "b": list("12"), "c": list("uvw")}
    every = list(product(*levels.values()))
    for _ in range(40):
        held = [cell for cell in every if rng.random() < 0.75]
        best = (0, 0)
        for choice in product(*([s for s in product([0, 1], repeat=len(own)) if any(s)] for own in levels.values())):
            own = [
                [x for x, on in zip(names, picked, strict=True) if on]
                for names, picked in zip(levels.values(), choice, strict=True)
            ]
            crossed = sum(len(x) > 1 for x in own)
            if crossed >= 2 and set(product(*own)) <= set(held):
                best = max(best, (crossed, len(list(product(*own)))))
        found = complete_grid(pd.DataFrame(held, columns=list(levels)))
        size = found and (sum(len(x) > 1 for x in found.values()), len(list(product(*found.values()))))
        assert (size or (0, 0)) == best
        assert found is None or set(product(*found.values())) <= set(held)


@pytest.mark.parametrize("trained", [True, False])
def test_factor_table_from_designs(trained):
    designs = {
        "x": Design("x"),
        "eos-bi": Design("m", pooler="eos", attn="bi"),
        "l": Design(
            "l", pooler="lastlayer", attn="bi", trained=trained, factors={"pooler": "lastlayer", "pooler.tokens": "all"}
        ),
    }
    found = factor_table(designs)
    assert list(found.columns) == ["pooler", "attn", "training", "pooler.tokens"]
    assert found.to_numpy().tolist() == [
        [""] * 4,
        ["eos", "bi", "after", ""],
        ["lastlayer", "", "after" if trained else "before", "all"],
    ]
    assert list(varying(found).columns) == ["pooler", *([] if trained else ["training"])]
