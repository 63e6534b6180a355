"""trainer.average: the mean of the weights after each of the last steps is saved, also after a kill amid them."""

import re
from functools import cache

import pytest
import torch
from safetensors.torch import load_file

from cli.errors import UserError
from records.identity import different_keys
from records.run_folder import RunFolder
from tests.training.raw_stages import quick_stage
from training import run as training_run
from training.checks import check_sizes
from training.module import StepModule
from training.run import train_run

SHARE, STEPS, FIRST = 0.6, 4, 2  # .6 of four steps are two


@pytest.fixture(scope="module")
def config(compose_cell, pairs, headed_model, lines):
    """Compose a run of four steps, each with a checkpoint and held-out scores."""

    def compose(objective, *words):
        words = [*quick_stage("mntp", headed_model, lines), "trainer.checkpoint_every=1", *words]
        if objective == "infonce":
            words += ["objective=infonce", "data=jsonl", f"data.path='{pairs}'", "data.validation=4"]
        return compose_cell("lastlayer" if objective == "infonce" else "mean", "bi", *words, "trainer.validate_every=1")

    return compose


def trained(folder):
    """Every trained tensor of a finished run."""
    head, adapter = load_file(folder / "head.safetensors"), load_file(folder / "adapter" / "adapter_model.safetensors")
    return {name.removeprefix("base_model.model."): tensor for name, tensor in (adapter | head).items()}


def copies(module):
    """The same of a module, as it is now."""
    wrapped = re.compile(r"^encoder\.(backbone|pooler)\.|\.default")
    return {wrapped.sub("", name): p.detach().clone() for name, p in module.trained().items()}


@pytest.fixture(scope="module")
def watched(config, tmp_path_factory):
    """Train once: folder, weights after each step, and the weights and scores of each look at the held-out texts."""

    @cache
    def train(objective, *words):
        folder, after, looks = tmp_path_factory.mktemp("run"), [], []
        update, fit = StepModule._update, training_run.fit

        def watched_update(module, *step):
            update(module, *step)
            after.append(copies(module))

        def watched_fit(cfg, module, *rest):
            scores = module.objective.held_out_scores

            def look():
                looks.append((copies(module), scores()))
                return looks[-1][1]

            module.objective.held_out_scores = look
            fit(cfg, module, *rest)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StepModule, "_update", watched_update)
            patch.setattr(training_run, "fit", watched_fit)
            train_run(config(objective, *words), RunFolder(folder))
        return folder, after, looks

    return train


def mean(copies):
    """By stacking in float64, not by running sums."""
    return {name: torch.stack([c[name] for c in copies]).double().mean(dim=0) for name in copies[0]}


def assert_equal(found, wanted):
    """Entries differ by the last rounding at most."""
    assert found.keys() == wanted.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor.double(), wanted[name].double(), rtol=2**-23, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["infonce", "mntp"])
def test_the_mean_of_the_last_steps_is_saved_and_scored_and_steps_are_as_without(watched, objective):
    off, steps_off, _ = watched(objective)
    folder, steps, looks = watched(objective, f"trainer.average={SHARE}")
    assert len(steps) == len(steps_off) == len(looks) == STEPS
    for one, other in zip(steps, steps_off, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in other)
    assert_equal(trained(off), steps_off[-1])
    assert_equal(trained(folder), mean(steps[FIRST:]))
    assert any(not torch.equal(tensor, trained(off)[name]) for name, tensor in trained(folder).items())
    for number, (seen, _) in enumerate(looks):
        assert_equal(seen, mean(steps[FIRST : number + 1]) if number >= FIRST else steps[number])
    scores, manifest = looks[-1][1], RunFolder(folder).manifest()
    stated = manifest["held_out"]["after"] if objective == "mntp" else {"nDCG@10": manifest["validation_ndcg_at_10"]}
    assert stated == scores


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["infonce", "mntp"])
def test_a_run_killed_amid_the_mean_ends_bit_equal(config, watched, tmp_path, power_cut, objective):
    cfg = config(objective, f"trainer.average={SHARE}")
    with power_cut(FIRST + 1):
        train_run(cfg, RunFolder(tmp_path))
    train_run(cfg, RunFolder(tmp_path))
    whole, resumed = trained(watched(objective, f"trainer.average={SHARE}")[0]), trained(tmp_path)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.parametrize("share", ["0", "1.5", "tail"])
def test_what_is_no_share_is_refused(config, share):
    with pytest.raises(UserError, match=f"trainer.average={share} must be a number, .* null: the last weights"):
        check_sizes(config("infonce", f"trainer.average={share}"))


def test_it_is_compared_and_a_run_of_an_older_version_had_none(config):
    off, on = config("infonce"), config("infonce", f"trainer.average={SHARE}")
    older = {**off, "trainer": {key: value for key, value in off["trainer"].items() if key != "average"}}
    assert different_keys(older, off) == []
    assert different_keys(older, on) == ["trainer.average: None -> 0.6"]
