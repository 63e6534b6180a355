"""readings=[moee:...]: what the words mean, what they are called, and scores that are those of each pooler alone."""

import re

import pytest

from cli.compose import composed, plain
from cli.errors import UserError
from evaluation.candidates import candidates, configured, pooler_word
from evaluation.command import run
from evaluation.readings import check_readings, read_by
from tests.evaluation.test_readings import scores

MEANT = {
    "moee:sum": ("moee", {}),
    "moee:sum@1": ("moee", {}),
    "moee:hidden": ("moee_hidden", {"reading": "hidden"}),
    "moee:hidden/last/all": ("moee_hidden_last_all", {"reading": "hidden", "hidden_layers": "all"}),
    "moee:hidden/mean": ("moee_hidden_mean", {"reading": "hidden", "hidden_tokens": "mean", "routing_tokens": "mean"}),
    "moee:routing": ("moee_routing", {"reading": "routing"}),
    "moee:routing/mean": (
        "moee_routing_mean",
        {"reading": "routing", "hidden_tokens": "mean", "routing_tokens": "mean"},
    ),
    "moee:concat/last/mean": ("moee_concat_last_mean", {"reading": "concat", "hidden_layers": "mean"}),
    "moee:sum@0.5/mean": ("moee_sum_0.5_mean", {"alpha": 0.5, "hidden_tokens": "mean", "routing_tokens": "mean"}),
    "moee:sum@2": ("moee_sum_2", {"alpha": 2.0}),
}


@pytest.fixture
def words(small_moe, folder) -> list[str]:
    setting = ["attn=bi", f"model.path={small_moe}", "precision=fp32", "text_length=24", "accelerator=cpu"]
    return ["run=null", *setting, f"tasks_dir={folder}", "tasks=[Asked,Graded,Pairs]", "progress=false"]


def test_what_the_words_mean(small_moe, tmp_path):
    """Each is pooler=moee with these keys, and has a name of its own."""
    cfg = plain(composed("evaluate", [f"model.path='{small_moe}'", f"runs_dir='{tmp_path}'"]))
    usual = plain(composed("evaluate", ["pooler=moee"]))["pooler"]
    for name, (word, changed) in MEANT.items():
        (found,) = read_by(candidates(cfg), check_readings(name))
        assert found.manifest["pooler"] == word
        assert found.manifest["config"]["pooler"] == {**usual, **changed}
    assert len(read_by(candidates(cfg), list(MEANT))) == len(MEANT) - 1, "moee:sum@1 is moee:sum"


def test_names_tell_poolers_apart():
    usual = plain(composed("evaluate", ["pooler=moee"]))["pooler"]
    assert pooler_word({**usual, "hidden_tokens": "mean"}) == "moee_sum_hmean_rlast"
    assert pooler_word({**usual, "routing_tokens": "mean"}) == "moee_sum_hlast_rmean"


@pytest.mark.parametrize(
    "wrong",
    ["moee", "moee:HS", "moee:hidden@2", "moee:routing/last/all", "moee:sum@", "moee:sum@-1", "moee:hidden/all"],
)
def test_what_is_misspelt_is_refused(wrong):
    with pytest.raises(UserError, match=r"no reading 'moee.*of a mixture of experts moee:<hidden"):
        check_readings([wrong])


def test_a_mixed_list_scores_as_each_pooler_alone(words, tmp_path, capsys):
    listed = "mean,layer:1/eos,moee:hidden,moee:routing/mean,moee:sum@0.5"
    places = [f"runs_dir={tmp_path / 'at_once'}", f"cache_dir={tmp_path / 'one'}"]
    run(configured([*words, f"readings=[{listed}]", *places]))
    texts = re.findall(r"3 new scores, (\d+) texts", capsys.readouterr().out)
    assert [int(n) > 0 for n in texts] == [True, False, False, False, False], "one pass serves all"
    alone = [
        ["pooler=mean"],
        ["pooler=layer", "pooler.layer=1", "pooler.pooling=eos"],
        ["pooler=moee", "pooler.reading=hidden"],
        ["pooler=moee", "pooler.reading=routing", "pooler.hidden_tokens=mean", "pooler.routing_tokens=mean"],
        ["pooler=moee", "pooler.alpha=0.5"],
    ]
    for own in alone:
        run(configured([*words, *own, f"runs_dir={tmp_path / 'alone'}", f"cache_dir={tmp_path / 'two'}"]))
    together, apart = scores(tmp_path / "at_once"), scores(tmp_path / "alone")
    assert together == apart
    assert sorted(together) == [
        f"embedded__{name}-bi-untrained"
        for name in ("layer1_eos", "mean", "moee_hidden", "moee_routing_mean", "moee_sum_0.5")
    ]
    names = [sorted(p.name for p in (tmp_path / run).rglob("seed*")) for run in ("at_once", "alone")]
    assert names[0] == names[1], "the same encoder has the same fingerprint"


def test_readings_of_routers_are_scored_in_every_number_format(words, tmp_path, capsys):
    """Weights are stored in the format of the products, states are float32 next to them."""
    for precision in ("mixed", "bf16"):
        place = [f"results={tmp_path / precision}", f"cache_dir={tmp_path / precision}", f"precision={precision}"]
        run(configured([*words, *place, "readings=[mean,moee:routing]", "tasks=[Graded]"]))
        assert capsys.readouterr().out.count("1 new scores") == 2
