"""A base that is not bundled composes a recipe of its own: one epoch, a warm-up of a tenth."""

import pytest

from cli.compose import HOME, composed, own_keys, plain, with_recipe
from evaluation.candidates import candidates, configured
from records.manifest import read_manifest
from records.run_folder import run_folder
from tests.started import start
from tests.triples import quick_run
from training.run import in_steps, train_run


@pytest.mark.parametrize(
    ("words", "study", "lr"),
    [
        ([], "bundled", 2e-3),
        (["model=tiny_moe", "pooler=mean"], "bundled", 2e-3),
        (["model=smollm2_135m"], "finetune", 2e-4),
        (["model=mistral_7b"], "finetune", 1e-4),
        (["model.path=some/folder", "study=mine"], "mine", 2e-4),
        (["model=mistral_7b", "experiment=bundled"], "bundled", 2e-3),
        (["experiment=paper/mistral_7b"], "mistral_7b", 1e-5),
    ],
)
def test_the_recipe_follows_the_base(words, study, lr):
    config = composed("train", with_recipe(words))
    assert (config.study, config.objective.lr) == (study, lr)


@pytest.mark.parametrize("base", [["model=mistral_7b"], ["model.path=some/folder", "text_length=128"], ["attn=bi"]])
def test_an_untrained_base_is_encoded_and_named_as_its_runs_are(base):
    words = [*with_recipe(base), "reference_fault=none"]
    train, (untrained,) = plain(composed("train", words)), candidates(configured(["run=null", *base]))
    keys = {*own_keys("encoder")} - {"init"}
    assert {k: untrained.manifest["config"][k] for k in keys} == {k: train[k] for k in keys}
    assert untrained.manifest["study"] == run_folder(train, words).parent.parent.name


def test_a_sweep_has_one_recipe():
    mixed = ("model=tiny,mistral_7b", "model=glob(qwen*)", "model=choice(qwen2_0_5b,tiny)", "model.path=a,assets/b")
    for word in mixed:
        assert with_recipe([word]) == ["experiment=finetune", word]
    for word in ("model=tiny,tiny_moe", "model=glob(tiny*)", "model.path=choice(assets/tiny,assets/tiny_moe)"):
        assert with_recipe([word]) == [word]


@pytest.mark.slow
def test_an_epoch_is_so_many_steps_in_the_manifest(small_model, pairs, tmp_path):
    words = [f"model.path={small_model}", "pooler=mean", "attn=bi", "data=jsonl", f"data.path={pairs}", "max_length=16"]
    words += ["data.validation=4", "trainer.global_batch_size=4", "logging.tensorboard=false", "precision=fp32"]
    config = plain(composed("train", with_recipe(words)))
    train_run(config, tmp_path)
    manifest = read_manifest(tmp_path)
    trained = manifest["data"]["trained_on"]
    assert manifest["steps"] == trained // 4 > 5
    assert manifest["config"]["trainer"]["max_steps"] is None


@pytest.mark.slow
@pytest.mark.skipif(not (HOME / "cache/models/smollm2_135m").is_dir(), reason="make smollm2 brings it")
def test_a_real_language_model_is_trained_and_scored(pairs, tmp_path):
    words = ["model=smollm2_135m", "pooler=multilayer", "attn=bi", "text_length=16", "trainer.threads=1"]
    done = start("train.py", *words, *quick_run(pairs), f"runs_dir={tmp_path}")
    assert done.returncode == 0, done.stderr[-2000:]
    (folder,) = tmp_path.glob("finetune*/multilayer-bi/seed0")
    manifest = read_manifest(folder)
    assert (manifest["steps"], manifest["config"]["objective"]["lr"]) == (2, 2e-4)
    scoring = [f"run={folder}", "benchmark=docstrings_smoke", "tasks=[DocsNetworkxPairClassification]"]
    done = start("evaluate.py", *scoring, "embeddings=false", "overlap=null")
    assert done.returncode == 0, done.stderr[-2000:]
    assert len([*tmp_path.rglob("DocsNetworkxPairClassification.json")]) == 1


def test_a_warm_up_below_one_is_a_share_of_the_steps():
    config = {"trainer": {"max_steps": None}, "objective": {"warmup": 0.1}}
    assert in_steps(config, 50) == {"trainer": {"max_steps": 50}, "objective": {"warmup": 5}}
    config = {"trainer": {"max_steps": 20}, "objective": {"warmup": 7}}
    assert in_steps(config, 50) == config
