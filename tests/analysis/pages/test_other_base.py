"""Another base, and four times as many steps: what the pages say of them is what the stored scores give."""

import re

import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from tests.analysis.pages.markdown import DOCS, TABLES, number, section, table_rows

REAL, STUDY = DOCS / "real-data.md", DOCS / "study.md"
BASE, LONGER = "Another base", "Four times as many steps"


def result(*stored, words):
    paths = ",".join(f"{TABLES / name}.csv.gz" for name in stored)
    return analyse(read_arguments([f"scores=[{paths}]", "items=none", *words]))


def flat(page, title):
    """A section as one line, as a reader has its sentences."""
    return " ".join(section(page, title).split())


def numbers(text, pattern):
    """The numbers that a sentence states where `pattern` has N."""
    found = re.search(re.escape(pattern).replace("N", r"([+-]?\.\d+)"), text)
    assert found, pattern
    return [float(said) for said in found.groups()]


def of_pair(found, one, other):
    """The row of a pair over all tasks, `one` less `other`."""
    pairs = found.material.pairs_on(found.material.last)
    (row,) = pairs[pairs["first"].isin((one, other)) & pairs["second"].isin((one, other))].to_dict("records")
    sign = 1 if row["second"] == one else -1
    return row | {"difference": sign * row["difference"], "hodges_lehmann": sign * row["hodges_lehmann"]}


def effects(found):
    (answer,) = (answer for answer in found.answers if answer.name == "effects")
    frames = (answer.frames[name] for name in ("effects", "marginal_means"))
    tests, means = (frame[frame["type"] == found.material.last] for frame in frames)
    return tests.set_index("effect"), means.set_index("level")


def depends(found):
    """p that differences between designs are the same on each level: over tasks; over tasks and seeds."""
    (answer,) = (answer for answer in found.answers if answer.name == "same_order")
    return [float(p) for p in re.findall(r"p = (\.\d+)", answer.grids[0].caption)]


def test_the_table_of_the_other_base():
    found = result("stories", words=["models=[*60 steps]", "against=stories eos-causal 60 steps"])
    matrix, (head, *rows) = found.material.matrix, table_rows(section(REAL, BASE))
    kinds = {"STS (2)": ["SICK-R", "STSBenchmark"], "mean of 8": list(matrix.index)}
    tasks = {cell: kinds.get(cell) or [t for t in matrix.index if t.startswith(cell)] for cell in head[2:10]}
    assert len(rows) == matrix.shape[1] == 7
    for name, _, *cells in rows:
        model = f"stories {name.split('`')[1]} 60 steps"
        means = [matrix.loc[of_cell, model].mean() for of_cell in tasks.values()]
        assert list(map(number, cells[:8])) == pytest.approx(means, abs=5.1e-5)
        if cells[-1]:
            pair = of_pair(found, model, "stories eos-causal 60 steps")
            said = re.fullmatch(r"(\.\d+); (\.\d+)(: told)?", cells[-1])
            assert number(cells[-2]) == pytest.approx(pair["difference"], abs=5.1e-5)
            wanted = pair["p_adjusted"], pair["p_seeds_adjusted"]
            assert (float(said[1]), float(said[2])) == pytest.approx(wanted, abs=5.1e-4)
            assert bool(said[3]) == pair["told"]


def test_its_effects_and_those_of_both_bases():
    text = flat(REAL, BASE)
    tests, means = effects(result("stories", words=["models=[*60 steps]"]))
    crossed, pooling, attention = (tests.loc[name] for name in ("pooler x attn", "pooler", "attn"))
    assert f"**Told: pooler x attention** (F {crossed['F']:.1f};" in text
    said = numbers(text, "over tasks p N, over tasks and seeds N), and the main effect of pooling (N, N)")
    wanted = [of[p] for of in (crossed, pooling) for p in ("p_adjusted", "p_seeds_adjusted")]
    assert said == pytest.approx(wanted, abs=5.1e-4)
    assert tests["told"].to_dict() == {"pooler": True, "attn": False, "pooler x attn": True}
    said = numbers(text, "That of attention is not (N for bi, p N and N)")
    bi = means.loc["bi", "mean"] - means.loc["causal", "mean"]
    assert said == pytest.approx([bi, attention["p_adjusted"], attention["p_seeds_adjusted"]], abs=5.1e-3)
    assert said[0] == pytest.approx(bi, abs=5.1e-5)
    both = result("real_lengths", "stories", words=["models=[*60 steps]", "factors=[pooler,attn,model.path]"])
    said = numbers(text, "depend on the base: told** (p N over tasks, N over tasks and seeds)")
    assert said == pytest.approx(depends(both), abs=5.1e-5)
    tests, _ = effects(both)
    smallest = tests.index[tests["p"] < 0.008].tolist()
    assert smallest == ["pooler", "model.path", "pooler x attn", "attn x model.path"]
    assert not tests["told"].any()
    assert "four have the smallest p that eight tasks allow, attention x base among them (F 21.6, p .0078" in text
    said = numbers(text, "N after Holm over seven, so none of the seven is told; over seeds N)")
    row = tests.loc["attn x model.path"]
    assert said == pytest.approx([row["p_adjusted"], row["p_seeds_adjusted"]], abs=5.1e-4)


def test_the_effects_of_60_steps_on_real_pairs():
    tests, _ = effects(result("real_lengths", words=["models=[*60 steps]"]))
    said = numbers(flat(REAL, "60 steps"), "are told (over tasks p N each; over tasks and seeds N, N and N)")
    over_seeds = tests.loc[["attn", "pooler", "pooler x attn"], "p_seeds_adjusted"].tolist()
    assert said == pytest.approx([tests["p_adjusted"].max(), *over_seeds], abs=5.1e-4)
    assert tests["told"].all()


def test_the_other_base_after_240_steps():
    text, one, other = flat(REAL, BASE), "stories multilayer-bi", "stories eos-causal"
    words = [f"models=[{other}*,{one}*]", "factors=[pooler,attn,trainer.max_steps]"]
    found = result("stories", words=words)
    late, early = (of_pair(found, f"{one} {n} steps", f"{other} {n} steps") for n in (240, 60))
    means = found.material.matrix.mean()
    said = numbers(
        text, "means N and N, N; of the six pairs of two designs at two lengths p N, over tasks and seeds N)"
    )
    wanted = [*(means[f"{name} 240 steps"] for name in (one, other)), late["difference"], late["p_adjusted"]]
    assert said == pytest.approx([*wanted, late["p_seeds_adjusted"]], abs=5.1e-4)
    assert said[:3] == pytest.approx(wanted[:3], abs=5.1e-5)
    assert numbers(text, "told at 60 steps, too (over seeds N;") == pytest.approx(
        [early["p_seeds_adjusted"]], abs=5.1e-4
    )
    assert late["told"]
    assert early["told"]
    gains = [of_pair(found, f"{name} 240 steps", f"{name} 60 steps") for name in (other, one)]
    said = numbers(text, "(Model 1 N, Model 5 N; over seeds p N each)")
    assert said[:2] == pytest.approx([gain["difference"] for gain in gains], abs=5.1e-5)
    assert not any(gain["told"] for gain in gains)
    assert [said[2]] * 2 == pytest.approx([gain["p_seeds_adjusted"] for gain in gains], abs=5.1e-3)
    said = numbers(text, "is not told here (N at 60 steps; p N and N)")
    assert said == pytest.approx([early["difference"], *depends(found)], abs=5.1e-3)


def test_four_times_as_many_steps_on_docstrings():
    text, one, other = flat(STUDY, LONGER), "multilayer-bi", "eos-causal"
    found = result("embedded_lengths", words=["factors=[pooler,attn,trainer.max_steps]"])
    means, rows = found.material.matrix.mean(), table_rows(section(STUDY, LONGER))[1:]
    for (_, *cells), name in zip(rows[:2], (other, one), strict=True):
        gain = of_pair(found, f"{name} 240 steps", f"{name} 60 steps")
        wanted = means[f"{name} 60 steps"], means[f"{name} 240 steps"], gain["difference"]
        assert list(map(number, cells[:3])) == pytest.approx(wanted, abs=5.1e-5)
        said = re.fullmatch(r"< \.0001; (\.\d+)(: told)?", cells[3])
        assert gain["p_adjusted"] < 1e-4
        assert float(said[1]) == pytest.approx(gain["p_seeds_adjusted"], abs=5.1e-4)
        assert bool(said[2]) == gain["told"]
    apart = [of_pair(found, f"{one} {n} steps", f"{other} {n} steps") for n in (60, 240)]
    assert list(map(number, rows[2][1:3])) == pytest.approx([pair["difference"] for pair in apart], abs=5.1e-5)
    said = [float(p) for p in re.findall(r"\.\d+", rows[2][4])]
    assert said == pytest.approx([apart[1]["p_adjusted"], apart[1]["p_seeds_adjusted"]], abs=5.1e-3)
    assert not any(pair["told"] for pair in apart)
    said = numbers(text, "(typical N [N, N])")
    alone = of_pair(result("embedded_lengths", words=["models=[*240 steps]"]), f"{one} 240 steps", f"{other} 240 steps")
    assert said == pytest.approx([alone[name] for name in ("hodges_lehmann", "hl_low", "hl_high")], abs=5.1e-5)
    said = numbers(text, "not told here (over tasks p N, over tasks and seeds N)")
    assert said == pytest.approx(depends(found), abs=5.1e-3)
    (answer,) = (answer for answer in found.answers if answer.name == "equivalence")
    table = answer.frames["equivalence"].query("type == 'All'").set_index(["first", "second"])
    level = table.loc[f"{other} 240 steps", f"{one} 240 steps"]
    assert numbers(text, "passes over tasks (p N)") == pytest.approx([level["p_holm"]], abs=5.1e-4)
    assert level["p_seeds_adjusted"] > 0.05
    gain = result("embedded_lengths", words=[f"models=[{one}*]"])
    alone = of_pair(gain, f"{one} 240 steps", f"{one} 60 steps")
    assert numbers(text, "by itself it is: p over seeds N)") == pytest.approx([alone["p_seeds"]], abs=5.1e-4)
    assert alone["told"]
