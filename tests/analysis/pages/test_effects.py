"""Effects on the pages are what the program makes of stored scores, whose columns name the factors."""

import re
from functools import cache

import pytest

from analysis.analyse import analyse
from analysis.cli import read_arguments
from analysis.grids.markdown import markdown_grid
from tests.analysis.pages.markdown import DOCS, TABLES, section, table_rows

POOLINGS = ("lastlayer", "multilayer", "mean")
ORDER = f"models=[eos-causal,{','.join(f'{name}-{attn}' for name in POOLINGS for attn in ('causal', 'bi'))}]"
PAGES = {
    "study.md": ("scores=ten_seeds", "seeds=[0,1,2]", ORDER),
    "ten_seeds.md": ("scores=ten_seeds", ORDER),
    "factorial.md": ("scores=factorial", "factors=[pooler,attn,pooler.tokens]"),
}
TESTS, MEANS = "Main effects and interactions", "Marginal means"
MODELS = {
    "Model 2": "lastlayer-causal",
    "the bidirectional mean": "mean-bi",
    "Model 5": "multilayer-bi",
    "Model 4": "lastlayer-bi",
    "the causal mean": "mean-causal",
}


def result(*words):
    stored = [re.sub(r"^scores=(\w+)$", rf"scores={TABLES}/\1.csv.gz", word) for word in words]
    return analyse(read_arguments([*stored, "items=none"]))


@cache
def grids_of(page):
    return {grid.name: grid for grid in result(*PAGES[page]).grids()}


@pytest.mark.parametrize(
    ("page", "grid", "title"),
    [
        ("study.md", "effects", TESTS),
        ("study.md", "marginals", MEANS),
        ("ten_seeds.md", "effects", TESTS),
        ("factorial.md", "effects", TESTS),
        ("factorial.md", "marginals", MEANS),
        ("factorial.md", "effects-wide", f"{TESTS} over more designs"),
        ("factorial.md", "marginals-wide", f"{MEANS} over more designs"),
    ],
)
def test_the_tables_of_effects(page, grid, title):
    made = table_rows(markdown_grid(grids_of(page)[grid]))
    assert len(made) > 3
    assert made == table_rows(section(TABLES / page, title))


def test_the_effect_of_attention():
    last = table_rows(markdown_grid(grids_of("study.md")["marginals"]))[-2:]
    causal, bi = (re.search(r"\(([+-]\.\d+),", row[-1])[1] for row in last)
    assert float(bi) - float(causal) == pytest.approx(0.0171, abs=1e-4)
    assert "mean pooling +.0171 (F 70.8" in (DOCS / "study.md").read_text(encoding="utf-8")
    assert "ahead of the causal ones, by .0171" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def depends(*words):
    """p that the lead over Model 1 is the same at all lengths: over tasks; over tasks and seeds."""
    found = result("scores=real_lengths", "factors=[pooler,attn,trainer.max_steps]", *words)
    (answer,) = (answer for answer in found.answers if answer.name == "same_order")
    return [float(p) for p in re.findall(r"p = (\.\d+)", answer.grids[0].caption)]


def test_whether_a_lead_depends_on_the_length_of_training():
    text = (DOCS / "real-data.md").read_text(encoding="utf-8")
    told = text.partition("design x length beside Model 1 alone: p .0078")[2].partition(";\n")[0]
    for name, design in MODELS.items():
        over_tasks, over_seeds = depends(f"models=[eos-causal*,{design}*]")
        said = float(re.search(rf"{name} (\.\d+)", told)[1])
        assert over_tasks == pytest.approx(0.0078, abs=5e-5)
        assert over_seeds == pytest.approx(said, abs=5.1e-4 if said >= 0.01 else 5.1e-5)
    over_tasks, over_seeds = depends("models=[eos-causal*,multilayer-causal*]")
    assert (over_tasks, over_seeds) == pytest.approx((0.047, 0.118), abs=5e-4)
    assert f"Model 3 is not told to depend on the length ({over_tasks:.3f}".replace("0.", ".") in text
    assert depends() == pytest.approx((0.0078, 0.0017), abs=5.1e-5)
    assert "Over all seven designs: told (.0078; .0017)" in text
