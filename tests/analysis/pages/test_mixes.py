"""Class data, moved queries, losses and graded pairs: every table of the page is what its stored scores say."""

import pandas as pd
import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from tests.analysis.pages.markdown import DOCS, TABLES, number, section, table_rows

PAGE = DOCS / "mixes.md"


def answers(name, factors, *words):
    """Answers of the analysis of stored scores by name, and its material."""
    path = TABLES / f"{name}.csv.gz"
    result = analyse(read_arguments([f"scores={path}", f"factors=[pooler,attn,{factors}]", "items=none", *words]))
    return {answer.name: answer for answer in result.answers}, result.material


def test_shares_of_class_data():
    found, _ = answers("mix_shares", "data.mix.classes")
    (grid,) = found["curves"].grids
    levels = zip(*(row[2:] for row in grid.rows), strict=True)  # of each, eight types of a design, then of the next
    printed = [[cell.text + cell.mark for cell in level] for level in levels]
    wanted = [level[start : start + 8] for start in (0, 8) for level in printed]
    _, *rows = table_rows(section(PAGE, "How much class data: `sweep=mix`"))
    assert [[cell.replace("\\", "") for cell in row[2:]] for row in rows] == wanted
    caption = found["same_order"].grids[0].caption
    assert "depend on data.mix.classes (0, 0.1, 0.3, 0.5, 1; p < .0001 over tasks, p = .0264 over tasks" in caption
    said = section(PAGE, "How much class data: `sweep=mix`")
    assert "(p < .0001 over tasks, .026 over tasks and seeds)" in said


def test_queries_moved_by_the_instruction():
    found, material = answers("mix_queries", "pooler.query")
    kinds = {**material.types, "All": list(material.matrix.index)}
    pairs = material.pairs.set_index(["first", "second", "type"])
    text = section(PAGE, "Task-dependent queries: `pooler.query=instruction`").partition("### Three seeds")[2]
    _, *rows = table_rows(text)
    assert len(rows) == 4
    for (_, _, *fixed), (_, _, *moved), design in zip(
        rows[::2], rows[1::2], ("lastlayer-bi", "multilayer-bi"), strict=True
    ):
        names = [f"{design} query={of}" for of in ("fixed", "instruction")]
        means = [material.matrix.loc[tasks, names[0]].mean() for tasks in kinds.values()]
        assert list(map(number, fixed)) == pytest.approx(means, abs=5.1e-5)
        for kind, cell in zip(kinds, moved, strict=True):
            row = pairs.loc[(*names, kind)]
            mark = cell.replace("\\", "").lstrip("+-.0123456789")
            assert number(cell.split("\\")[0].removesuffix("(")) == pytest.approx(row["difference"], abs=5.1e-5)
            assert mark == ("*" if row["told"] else "(*)" if row["p"] <= 0.05 else "")
    effect = found["effects"].frames["effects"].set_index(["type", "effect"])
    told = effect.loc[("Summarization", "pooler.query")]
    assert (told["p_adjusted"], told["p_seeds_adjusted"]) == pytest.approx((0.023, 0.0005), abs=5e-4)
    assert "effect over both models (p .023 and .0005 after Holm)" in text
    of_all = effect.loc[("All", "pooler.query")]
    assert (of_all["p_adjusted"], of_all["p_seeds_adjusted"]) == pytest.approx((0.24, 0.48), abs=5.1e-3)
    assert "(p .24 over tasks, .48 over tasks and seeds)" in text


@pytest.mark.parametrize(
    ("name", "title", "factors"),
    [
        ("mix_losses", "### The loss of the classes", ["objective.classes", "data.one_source"]),
        ("mix_graded", "### Graded pairs in the mix", ["data.mix.graded"]),
    ],
)
def test_means_by_type(name, title, factors):
    scores = pd.read_csv(TABLES / f"{name}.csv.gz")
    by = ["pooler", "attn", *factors]
    means = scores.groupby([*by, "type"])["score"].mean().unstack("type").assign(all=scores.groupby(by)["score"].mean())
    text = PAGE.read_text(encoding="utf-8").partition(title)[2].partition("\n### ")[0]
    _, *rows = table_rows(text)
    assert [list(map(number, row[1 + len(factors) :])) for row in rows] == [
        pytest.approx(row, abs=5.1e-5) for row in means.sort_index().to_numpy().tolist()
    ]


def test_the_loss_of_the_classes():
    found, material = answers("mix_losses", "objective.classes,data.one_source")
    pairs = material.pairs[material.pairs["type"] == material.last]
    told = pairs[pairs["told"]].set_index(["first", "second"])
    mixed, contrast = "mean-bi classes=infonce one_source=false", "mean-bi classes=supcon one_source="
    assert len(pairs) == 28
    assert set(told.index) == {(mixed, f"{contrast}false"), (mixed, f"{contrast}true")}
    of = told.loc[[(mixed, f"{contrast}false"), (mixed, f"{contrast}true")]]
    assert of["difference"].tolist() == pytest.approx([0.0156, 0.0162], abs=5.1e-5)
    assert of["p_seeds_adjusted"].tolist() == pytest.approx([0.0027, 0.016], rel=0.02)
    effects = found["effects"].frames["effects"]
    effects = effects[effects["type"] == "All"].set_index("effect")
    assert not effects["told"].any()
    p = effects.loc["objective.classes x data.one_source", ["p_adjusted", "p_seeds_adjusted", "p_seeds"]]
    assert p.tolist() == pytest.approx([0.0001, 0.27, 0.092], rel=0.25)


def test_graded_pairs():
    found, material = answers("mix_graded", "data.mix.graded")
    pairs = material.pairs[material.pairs["type"] == material.last].set_index(["first", "second"])
    three = pairs.loc[("eos-causal graded=0", "eos-causal graded=0.3")]
    assert len(pairs) == 15
    assert not three["told"]
    assert (three["p_seeds"], three["p_seeds_adjusted"]) == pytest.approx((0.0061, 0.079), rel=0.01)
    curves = found["curves"].frames["curves"]
    told = curves[curves["told"]]
    assert set(zip(told["design_of_curve"], told["level"], strict=True)) == {("eos-causal", "0.3")}
    assert told["type"].tolist() == ["PairClassification", "Retrieval", "STS", "All"]
    assert (told["difference"] < 0).all()
    tenths = found["equivalence"].frames["equivalence"].set_index(["type", "first", "second"])
    names = [("All", f"{design} graded=0", f"{design} graded=0.1") for design in ("eos-causal", "mean-bi")]
    assert tenths.loc[names, "p_seeds"].tolist() == pytest.approx([0.016, 0.029], rel=0.02)
    assert tenths.loc[names, "p_seeds_adjusted"].tolist() == pytest.approx([0.24, 0.40], rel=0.02)
    assert (tenths.loc[names, "p_holm"] < 0.0002).all()
