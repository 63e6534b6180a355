"""Which designs and tasks are compared, in which order, and what is dropped."""

import pytest

from analysis.cli import read_arguments
from cli.errors import UserError

DESIGNS = ["multilayer-bi", "eos-bi", "mean-causal", "eos-causal", "zeta-causal"]


@pytest.fixture(scope="module")
def filled(new_study, spread_scores):
    """Five designs, of which one was scored before training too. Not to be changed."""
    study = new_study()
    for k, design in enumerate(DESIGNS):
        study.run(design, spread_scores(0.3 + 0.01 * k))
    study.run("eos-causal", spread_scores(0.1), trained=False)
    return study


def test_config_order_not_the_scores_nor_the_folder(filled, read_words):
    result = read_words(f"scores={filled.root}")
    assert list(result.compared.designs) == ["eos-causal", "eos-bi", "mean-causal", "multilayer-bi", "zeta-causal"]
    first = result.compared.pairs.iloc[0]
    assert (first["first"], first["second"]) == ("eos-causal", "eos-bi")
    assert first["mean_difference"] == pytest.approx(-0.02)
    words = (f"scores={filled.root}", "order.pooler=[multilayer,eos]", "order.attn=[bi,causal]")
    assert list(read_words(*words).compared.designs)[:3] == ["multilayer-bi", "eos-bi", "eos-causal"]


def test_models_fix_the_order_and_take_globs(filled, read_words):
    result = read_words(f"scores={filled.root}", "models=[mean-causal,eos-*]")
    assert list(result.compared.designs) == ["mean-causal", "eos-causal", "eos-bi"]
    full = read_words(f"scores={filled.root}", "models=[s__multilayer-bi,*-causal]")
    assert list(full.compared.designs) == ["multilayer-bi", "eos-causal", "mean-causal", "zeta-causal"]


def test_a_name_goes_before_the_glob_that_it_is_too(tmp_path, read_words):
    (tmp_path / "wide.csv").write_text("model,STS12,STS13\nm1,.5,.6\nm[1],.4,.5\nm2,.3,.4\n")
    assert list(read_words(f"scores={tmp_path}/wide.csv", "models=['m[1]',m2]").compared.designs) == ["m[1]", "m2"]


def test_a_published_model_answers_to_its_name_on_the_hub(tmp_path, read_words):
    (tmp_path / "wide.csv").write_text("model,STS12,STS13\nBAAI__bge-m3,.5,.6\nBAAI__bge-en,.4,.5\nx/y,.3,.4\n")
    words = (f"scores={tmp_path / 'wide.csv'}", "against=BAAI/bge-m3")
    assert list(read_words(*words, "models=[BAAI/bge-*]").compared.designs) == ["BAAI__bge-m3", "BAAI__bge-en"]
    assert list(read_words(*words, "models=[BAAI/bge-m3,x/y]").compared.designs) == ["BAAI__bge-m3", "x/y"]


@pytest.mark.parametrize("name", ["eos-causal-untrained", "*untrained"])
def test_untrained_is_compared_only_when_named(filled, read_words, name):
    result = read_words(f"scores={filled.root}", f"models=[{name},eos-causal]")
    assert list(result.compared.designs) == ["eos-causal (untrained)", "eos-causal"]
    assert result.compared.pairs.iloc[-1]["mean_difference"] == pytest.approx(0.23)


def test_unknown_names_have_neighbours(filled, read_words):
    for word, message in (
        ("models=[mean-casual,eos-bi]", r"models= names 'mean-casual'.*Nearest: mean-causal"),
        ("types=[Retreival]", r"types= names 'Retreival'.*Nearest: Retrieval"),
        ("tasks=[SST*]", r"tasks= names 'SST\*'"),
        ("against=mean-casual", r"against=mean-casual is not among .*Nearest: mean-causal"),
        ("models=eos-bi", "Only one design"),
    ):
        with pytest.raises(UserError, match=message):
            read_words(f"scores={filled.root}", word)


def test_types_and_tasks(filled, read_words):
    result = read_words(f"scores={filled.root}", "types=[sts,Retrieval]", "tasks=[STS*,Retrieval1]")
    assert {kind: len(tasks) for kind, tasks in result.compared.types.items()} == {"Retrieval": 1, "STS": 8}
    one = read_words(f"scores={filled.root}", "types=[STS]")
    assert set(one.compared.pairs["type"]) == {"STS"}  # no row "All" that would repeat it


def test_a_glob_names_the_scores_of_several_studies(tmp_path):
    for study in ("a", "b+lora.r-8", "other"):
        (tmp_path / study / "scores").mkdir(parents=True)
    settings = read_arguments([f"scores={tmp_path}/[ab]*/scores"])
    assert [p.parent.name for p in settings.scores] == ["a", "b+lora.r-8"]
    with pytest.raises(UserError, match="there is no such file or folder"):
        read_arguments([f"scores={tmp_path}/x*/scores"])
