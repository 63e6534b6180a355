"""Published designs: each composes, each has a run folder of its own, and the sweeps train all of them."""

import pytest
import yaml

from records.config import CONF, composed, plain
from records.run_folder import choices_of, run_folder

NAMES = sorted(path.stem for path in (CONF / "published").glob("*.yaml"))
MIXTURE = [name for name in NAMES if name.startswith("moee")]


def folder(name, *words):
    words = [f"published={name}", "study=designs", *words]
    return str(run_folder(plain(composed("train", words)), choices_of(words)).path)


def swept(name):
    text = (CONF / "sweep" / f"{name}.yaml").read_text()
    return [word.strip() for word in yaml.safe_load(text)["hydra"]["sweeper"]["params"]["published"].split(",")]


def test_no_two_share_a_run_folder():
    dense = {folder(name) for name in NAMES if name not in MIXTURE}
    mixture = {folder(name, "model=tiny_moe") for name in MIXTURE}
    assert len(dense) + len(mixture) == len(NAMES)


def test_the_sweeps_train_all_of_them():
    dense, mixture = swept("designs"), swept("designs_moe")
    assert sorted([*dense, "echo_long"]) == [name for name in NAMES if name not in MIXTURE]
    assert set(MIXTURE) <= set(mixture)
    assert set(mixture) <= set(NAMES)


def test_models_one_to_five_are_the_cells_of_the_study():
    for k in range(1, 6):
        words = [f"cell=m{k}", "study=designs"]
        assert folder(f"model{k}") == str(run_folder(plain(composed("train", words)), choices_of(words)).path)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("e5", ("mean", "bi", "e5", True)),
        ("gritlm", ("mean", "bi", "gritlm", False)),
        ("repllama", ("eos", "causal", "repllama", False)),
        ("echo_last", ("eos", "causal", "echo", False)),
        ("nv_embed", ("latent", "bi", "instruct", False)),
        ("bellm", ("eos", "bi_last", "instruct", False)),
    ],
)
def test_what_is_published(name, found):
    cfg = plain(composed("train", [f"published={name}"]))
    pooler = cfg["pooler"]
    assert (
        pooler["name"],
        cfg["attn"]["name"],
        cfg["template"]["name"],
        pooler.get("pool_instruction", False),
    ) == found
