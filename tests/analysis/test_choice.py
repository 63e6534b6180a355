"""Which designs and tasks are compared, in which order, and what is dropped."""

import pytest

from analysis.cli import read_arguments
from cli.errors import UserError

DESIGNS = ["multilayer-bi", "eos-bi", "mean-causal", "eos-causal", "zeta-causal"]


def fill(study, spread_scores):
    """Write five designs, of which one was scored before training too."""
    for k, design in enumerate(DESIGNS):
        study.run(design, spread_scores(0.3 + 0.01 * k))
    study.run("eos-causal", spread_scores(0.1), trained=False)
    return study


@pytest.fixture(scope="module")
def filled(new_study, spread_scores):
    """Not to be changed."""
    return fill(new_study(), spread_scores)


def test_config_order_not_the_scores_nor_the_folder(filled, read_words):
    result = read_words(f"scores={filled.root}")
    assert list(result.material.designs) == ["eos-causal", "eos-bi", "mean-causal", "multilayer-bi", "zeta-causal"]
    first = result.material.pairs.iloc[0]
    assert (first["first"], first["second"]) == ("eos-causal", "eos-bi")
    assert first["difference"] == pytest.approx(-0.02)


def test_order_can_be_changed(filled, read_words):
    words = (f"scores={filled.root}", "order.pooler=[multilayer,eos]", "order.attn=[bi,causal]")
    assert list(read_words(*words).material.designs)[:3] == ["multilayer-bi", "eos-bi", "eos-causal"]


def test_models_fix_the_order_and_take_globs(filled, read_words):
    result = read_words(f"scores={filled.root}", "models=[mean-causal,eos-*]")
    assert list(result.material.designs) == ["mean-causal", "eos-causal", "eos-bi"]
    full = read_words(f"scores={filled.root}", "models=[s__multilayer-bi,*-causal]")
    assert list(full.material.designs) == ["multilayer-bi", "eos-causal", "mean-causal", "zeta-causal"]


def test_a_published_model_answers_to_its_name_on_the_hub(tmp_path, read_words):
    (tmp_path / "wide.csv").write_text("model,STS12,STS13\nBAAI__bge-m3,.5,.6\nBAAI__bge-en,.4,.5\nx/y,.3,.4\n")
    words = (f"scores={tmp_path / 'wide.csv'}", "against=BAAI/bge-m3")
    assert list(read_words(*words, "models=[BAAI/bge-*]").material.designs) == ["BAAI__bge-m3", "BAAI__bge-en"]
    assert list(read_words(*words, "models=[BAAI/bge-m3,x/y]").material.designs) == ["BAAI__bge-m3", "x/y"]


@pytest.mark.parametrize("name", ["eos-causal-untrained", "'eos-causal (untrained)'", "*untrained"])
def test_untrained_is_compared_only_when_named(filled, read_words, name):
    result = read_words(f"scores={filled.root}", f"models=[{name},eos-causal]")
    assert list(result.material.designs) == ["eos-causal (untrained)", "eos-causal"]
    assert result.material.pairs.iloc[-1]["difference"] == pytest.approx(0.23)


def test_only_untrained_designs_are_compared(study, read_words, spread_scores):
    for design in ("mean-causal", "eos-causal"):
        study.run(design, spread_scores(0.3), trained=False)
    designs = list(read_words(f"scores={study.root}").material.designs)
    assert designs == ["eos-causal (untrained)", "mean-causal (untrained)"]


def test_unknown_names_have_neighbours(filled, read_words):
    with pytest.raises(UserError, match=r"models= names 'mean-casual'.*Nearest: mean-causal"):
        read_words(f"scores={filled.root}", "models=[mean-casual,eos-bi]")
    with pytest.raises(UserError, match=r"types= names 'Retreival'.*Nearest: Retrieval"):
        read_words(f"scores={filled.root}", "types=[Retreival]")
    with pytest.raises(UserError, match=r"tasks= names 'SST\*'"):
        read_words(f"scores={filled.root}", "tasks=[SST*]")
    with pytest.raises(UserError, match=r"against=mean-casual is not among .*Nearest: mean-causal"):
        read_words(f"scores={filled.root}", "against=mean-casual")
    with pytest.raises(UserError, match="Only one design"):
        read_words(f"scores={filled.root}", "models=eos-bi")


def test_types_and_tasks(filled, read_words):
    result = read_words(f"scores={filled.root}", "types=[sts,Retrieval]", "tasks=[STS*,Retrieval1]")
    assert {kind: len(tasks) for kind, tasks in result.material.types.items()} == {"Retrieval": 1, "STS": 8}
    one = read_words(f"scores={filled.root}", "types=[STS]")
    assert set(one.material.pairs["type"]) == {"STS"}  # no row "All" that would repeat it
    assert list(one.material.means.columns) == ["STS"]


def test_missing_cells(study, analyse_words, spread_scores):
    filled = fill(study, spread_scores)
    folder = filled.run("lastlayer-bi", spread_scores(0.4), seed=0)
    (folder / "STS3.json").unlink()
    with pytest.raises(
        UserError, match=r"differ: lastlayer-bi \(seed 0\) lacks STS3\. .*missing=drop_tasks, .*missing=drop_models"
    ):
        analyse_words(f"scores={filled.root}")
    result = analyse_words(f"scores={filled.root}", "missing=drop_tasks")
    assert len(result.material.matrix) == 15
    assert "STS3" not in set(result.material.frame["task"])
    assert any("(lastlayer-bi (seed 0) lacks 1): STS3." in note for note in result.notes)


def test_before_and_after(study, analyse_words, spread_scores):
    filled = fill(study, spread_scores)
    filled.run("eos-bi", {"STS0": 0.1}, trained=False)
    for design in DESIGNS:
        filled.run(design, spread_scores(0.33), seed=1)
    result = analyse_words(f"scores={filled.root}")
    assert list(result.material.gain.index.get_level_values("design").unique()) == ["eos-causal"]
    gain = result.material.gain
    assert gain.loc[("eos-causal", "gain"), "STS"] == pytest.approx((0.33 + 0.33) / 2 - 0.1)
    assert gain.loc[("eos-causal", "after"), "STS"] == pytest.approx(result.material.means.loc["eos-causal", "STS"])
    assert any("No before-and-after row for eos-bi" in note for note in result.notes)
    assert "Before training: seeds 0, after it: 0, 1 (eos-causal)." in result.notes
    assert set(result.material.whole_frame["design"]) == {*result.material.designs, "eos-causal (untrained)"}


def test_a_glob_names_the_scores_of_several_studies(tmp_path):
    for study in ("a", "b,lora.r=8", "other"):
        (tmp_path / study / "scores").mkdir(parents=True)
    settings = read_arguments([f"scores={tmp_path}/[ab]*/scores"])
    assert [p.parent.name for p in settings.scores] == ["a", "b,lora.r=8"]
    with pytest.raises(UserError, match="there is no such file or folder"):
        read_arguments([f"scores={tmp_path}/x*/scores"])
