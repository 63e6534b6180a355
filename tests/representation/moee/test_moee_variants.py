"""MoEE's tables on a small mixture of experts: every cell is the score of its pooler run by evaluate.py alone."""

import pandas as pd
import pytest

from cli.compose import composed, plain
from evaluation.command import run
from representation.moee.moee_variants import means_of, section
from tests.representation.moee.moee_settings import asked

WORDS = ["moee_variants.alpha=0.5", "tasks=[DocsNetworkxPairClassification]"]


@pytest.fixture(scope="module")
def found(small_moe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("variants")
    return section(*asked(small_moe, folder, *WORDS)), folder


def test_every_template_attention_and_variant_once(found):
    frame = found[0].frames["moee_variants"]
    cells = frame.groupby(["encoder", "template", "attn", "variant"]).size()
    assert len(cells) == 2 * 2 * (4 + 6)
    assert (cells == 1).all()
    assert set(frame["encoder"]) == {"untrained"}
    assert [len(t.frame) for t in found[0].tables] == [4 * 4, 4 * 8]


CELLS = {
    ("instruct", "bi", "moee:routing/mean"): ["pooler.variant=routing", "pooler.routing_tokens=mean"],
    ("prompteol", "causal", "moee:hidden/last/mean"): ["pooler.variant=hidden", "pooler.hidden_layers=mean"],
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_its_pooler_scored_alone(found, small_moe, tmp_path, cell):
    words = ["run=null", f"template={cell[0]}", f"attn={cell[1]}", "pooler=moee", *CELLS[cell], WORDS[1]]
    words += ["precision=fp32", "accelerator=cpu", "max_length=32", "progress=false", "benchmark=docstrings_smoke"]
    words += [f"{key}={tmp_path}" for key in ("results", "runs_dir", "cache_dir")] + [f"model.path={small_moe}"]
    (outcome,) = run(plain(composed("evaluate", words)))
    frame = found[0].frames["moee_variants"].set_index(["template", "attn", "variant"])
    ((_, wanted),) = outcome.scores.values()
    assert frame.loc[cell, "score"] == pytest.approx(wanted)


def test_means_are_over_tasks_then_types():
    rows = [("Classification", "a1", 0.1), ("Classification", "a2", 0.3), ("Retrieval", "b", 0.8)]
    about = {"encoder": "untrained", "seed": 0, "template": "instruct", "attn": "bi", "variant": "moee:routing"}
    frame = pd.DataFrame([{**about, "type": k, "task": t, "score": s} for k, t, s in rows])
    means = means_of(frame, {"RW": "moee:routing"})
    assert list(means.columns) == [
        *("encoder", "template", "attn", "variant"),
        *("Retrieval", "Classification", "mean of types"),
    ]
    assert means.iloc[0, :4].tolist() == ["untrained", "instruct", "bi", "RW"]
    assert means.iloc[0, 4:].tolist() == pytest.approx([0.8, 0.2, 0.5])
