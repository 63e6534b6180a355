"""A run on a mix: interrupted it ends bit-equal, every design sees the same batches, and the manifest names the mix."""

import pytest
import torch
from safetensors.torch import load_file

from cli.errors import UserError
from records.manifest import read_manifest
from training.checks import check_sizes
from training.run import train_run


@pytest.fixture(scope="module")
def cell(compose_cell, pairs, tmp_path_factory):
    """Compose a cell that trains four quick steps on pairs, labelled texts and graded pairs."""
    folder = tmp_path_factory.mktemp("mix")
    texts = [
        f"the {w} of the {v}" for w in ("sum", "type", "shape") for v in ("array", "row", "index", "value", "argument")
    ]
    (folder / "classes.jsonl").write_text("".join(f'{{"text": "{t}", "label": "{t.split()[1]}"}}\n' for t in texts))
    (folder / "graded.jsonl").write_text(
        "".join(
            f'{{"first": "{t}", "second": "a new {t.split()[-1]}", "score": {i % 4}}}\n' for i, t in enumerate(texts)
        )
    )
    words = ["data=mix", "data@data.sources.pairs=jsonl", f"data.sources.pairs.path='{pairs}'"]
    words += [f"data@data.sources.classes=classes data.sources.classes.path='{folder}/classes.jsonl'"]
    words += [f"data@data.sources.graded=graded data.sources.graded.path='{folder}/graded.jsonl'"]
    words += ["data.sources.pairs.validation=4 data.sources.classes.validation=2 data.sources.graded.validation=4"]
    words += ["trainer.max_steps=4 trainer.global_batch_size=6 trainer.checkpoint_every=2 trainer.progress=false"]
    words += ["objective.warmup=1 logging.tensorboard=false trainer.validate_every=2"]

    def compose(pooler, attn, *more):
        return compose_cell(pooler, attn, *" ".join(words).split(), *more)

    return compose


def trained(folder):
    return {**load_file(folder / "adapter" / "adapter_model.safetensors"), **load_file(folder / "head.safetensors")}


WAYS = [("infonce", "data.one_source=true"), ("mixed", "data.one_source=false")]


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "word"), WAYS)
def test_an_interrupted_run_ends_bit_equal_and_designs_see_the_same(cell, tmp_path, power_cut, objective, word):
    mix = (
        "data.mix={pairs: .5, classes: .5}"
        if objective == "infonce"
        else "data.mix={pairs: .4, classes: .3, graded: .3}"
    )
    words = [f"objective={objective}", word, mix]
    cfg = cell("multilayer", "bi", *words)
    train_run(cfg, tmp_path / "whole")
    with power_cut(3):
        train_run(cfg, tmp_path / "broken")
    train_run(cfg, tmp_path / "broken")
    whole, resumed = trained(tmp_path / "whole"), trained(tmp_path / "broken")
    assert all(torch.equal(whole[k], resumed[k]) for k in whole.keys() | resumed.keys())
    train_run(cell("eos", "causal", *words), tmp_path / "other")
    one, broken, other = (read_manifest(tmp_path / f) for f in ("whole", "broken", "other"))
    for key in ("batch_order_sha256", "tokens", "data"):
        assert one[key] == broken[key] == other[key], key
    assert one["data"]["of_source"].keys() == {"pairs", "classes", "graded"}
    assert one["loss"] == broken["loss"]


@pytest.mark.slow
def test_graded_pairs_are_no_positives(cell):
    with pytest.raises(UserError, match="graded pairs need objective=mixed"):
        check_sizes(cell("mean", "bi", "data.mix.graded=.2"))
