"""Published designs: each composes, and each has a run folder of its own."""

from itertools import product

import pytest

from cli.compose import CONF, composed, flat, options, plain
from records.run_folder import run_folder

HEADS = ("lastlayer", "multilayer")
NAMES = sorted(options("design"))
MIXTURE = [name for name in NAMES if name.startswith("moee")]


def folder(name, *words):
    words = [f"design={name}", "study=designs", *words]
    return str(run_folder(plain(composed("train", words)), words))


def test_models_one_to_five_are_the_cells_of_the_study():
    cells = [("eos", "causal"), *product(HEADS, ("causal", "bi"))]
    found = {tuple(folder(f"model{k}").split("/")[-2].split("-")) for k in range(1, 6)}
    assert found == set(cells)


PAPER = sorted(f"paper/{path.stem}" for path in (CONF / "experiment" / "paper").glob("*.yaml"))


def config(*words):
    return plain(composed("train", words))


@pytest.mark.parametrize("experiment", PAPER)
@pytest.mark.parametrize("name", NAMES)
def test_a_design_keeps_its_keys_under_every_experiment_of_the_paper(name, experiment):
    design = dict(options("design")[name])
    cfg = flat(config(f"experiment={experiment}", f"design={name}"))
    for default in design.pop("defaults"):
        ((group, member),) = default.items()
        group = group.removeprefix("override /")
        assert group == "init" or cfg[f"{group}.name"] == member
    kept = {key: value for key, value in flat(design).items() if "${" not in str(value)}
    assert {key: cfg[key] for key in kept} == kept
    assert cfg["max_length"] == (1024 if name == "echo_long" else 512)


def test_a_recipe_gives_way_to_the_stages_that_are_typed():
    both = ["mntp:runs/llm2vec_mistral_7b+*/mean-bi/seed0", "simcse:runs/llm2vec_mistral_7b+*/mean-bi/seed0"]
    recipe = "experiment=llm2vec/supervised"
    assert config(recipe)["init"]["merge"] == both[:1]
    assert config(recipe, "init=mntp_simcse")["init"]["merge"] == both
    assert config(recipe, "design=llm2vec")["init"]["merge"] == both
