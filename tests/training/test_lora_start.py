"""LoRA that starts as finished runs: how adapters are combined, entry by entry, and the runs that start so."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from encoders.loading import load_run, untrained
from evaluation.candidates import candidates, configured
from evaluation.variants import read_by
from records.earlier_runs import ADAPTER
from records.manifest import read_manifest
from tests.training.raw_stages import quick_stage
from training.run import train_run
from training.set_up import combined

RANK, INPUTS, OUTPUTS = 3, 11, 7
ALL = min(INPUTS, OUTPUTS)  # a rank that leaves nothing out


@pytest.fixture(scope="module")
def parts():
    """(scaling, A, B) of three adapters in float64."""
    torch.manual_seed(0)
    one = {"dtype": torch.float64}
    return [(s, torch.randn(RANK, INPUTS, **one), torch.randn(OUTPUTS, RANK, **one)) for s in (2.0, 1.0, 0.5)]


def changes(parts):
    return [scaling * (b @ a).numpy() for scaling, a, b in parts]


def pruned(change, density):
    """The entries of largest size, as many as the share `density` of all, rounded down."""
    kept = sorted(np.ndindex(change.shape), key=lambda at: -abs(change[at]))[: int(density * change.size)]
    return np.array([[x if (i, j) in kept else 0.0 for j, x in enumerate(row)] for i, row in enumerate(change)])


def elected(trimmed, weights):
    """Mean of the weighted entries that have the sign of the entries' sum (TIES, arXiv 2306.01708, algorithm 1)."""
    merged = np.zeros(trimmed[0].shape)
    for at in np.ndindex(merged.shape):
        sign = 1 if sum(change[at] for change in trimmed) >= 0 else -1
        chosen = [w * change[at] for w, change in zip(weights, trimmed, strict=True) if change[at] * sign > 0]
        merged[at] = sum(chosen) / max(1, len(chosen))
    return merged


def dropped(change, density):
    """Entries kept with probability `density` and divided by it (DARE, arXiv 2311.03099, equation 4)."""
    return change * torch.bernoulli(torch.full(change.shape, density, dtype=torch.float64)).numpy() / density


@pytest.mark.parametrize("how", ["sum", "ties", "dare_linear", "dare_ties"])
def test_a_combination_is_that_of_the_products_entry_by_entry(parts, how):
    weights, density = [1.0, 0.5, -2.0], 0.4
    torch.manual_seed(5)
    sparse = {"ties": pruned, "dare_linear": dropped, "dare_ties": dropped}.get(how, lambda change, _: change)
    products = [sparse(change, density) for change in changes(parts)]
    pairs = zip(weights, products, strict=True)
    wanted = elected(products, weights) if how.endswith("ties") else sum(w * change for w, change in pairs)
    torch.manual_seed(5)
    a, b, left_out = combined(parts, weights, how, density, ALL)
    assert np.abs((b @ a).numpy() - wanted).max() < 1e-12
    assert not len(left_out)


def test_uniform_is_the_mean_of_the_products_and_keeps_the_factors_where_they_fit(parts):
    wanted = sum(changes(parts)) / 3
    a, b, left_out = combined(parts, [1 / 3] * 3, "uniform", 0.2, 3 * RANK)
    assert (len(a), len(left_out)) == (3 * RANK, 0)
    assert np.abs((b @ a).numpy() - wanted).max() < 1e-14
    (_, first, second), *_ = parts
    a, b, _ = combined([(1.0, first, second)], [1.0], "uniform", 0.2, RANK)
    assert torch.equal(a, first), "a single run is gone on with, factor by factor"
    assert torch.equal(b, second)


def test_what_a_rank_cannot_hold_is_left_out_and_counted(parts):
    wanted = sum(changes(parts)) / 3
    a, b, left_out = combined(parts, [1 / 3] * 3, "uniform", 0.2, 2)
    best = np.linalg.svd(wanted)
    assert np.abs((b @ a).numpy() - best.U[:, :2] * best.S[:2] @ best.Vh[:2]).max() < 1e-12
    assert np.abs(left_out.numpy() - best.S[2:]).max() < 1e-12
    assert torch.allclose((a @ a.T).diagonal(), (b.T @ b).diagonal()), "both factors are of one size"


@pytest.fixture(scope="module")
def cell(compose_cell, headed_model, lines):
    """Compose a run of MNTP: cell("lora.r=8")."""
    quick = [*quick_stage("mntp", headed_model, lines), "objective.lr=2e-2", "logging.csv=false"]
    return lambda *words, attn="bi": compose_cell("mean", attn, *quick, *words)


@pytest.fixture(scope="module")
def experts(cell, tmp_path_factory):
    """The folders of two runs of two steps."""
    folders = [tmp_path_factory.mktemp("runs") / name / "mean-bi" / "seed0" for name in ("one", "two")]
    for k, folder in enumerate(folders):
        train_run(cell("trainer.max_steps=2", f"seed={k}"), folder)
    return folders


def started_as(*folders):
    return "init.lora=[{}]".format(",".join(f"'{folder}'" for folder in folders))


def products(folder):
    """Scaling x B A of each layer, in float64."""
    tensors = {key: tensor.double() for key, tensor in load_file(folder / ADAPTER).items()}
    settings = json.loads((folder / "adapter" / "adapter_config.json").read_text())
    assert settings["target_modules"] == sorted(settings["target_modules"])  # the same bytes from every process
    scaling = settings["lora_alpha"] / settings["r"]
    return {k: scaling * tensors[k.replace("_A.", "_B.")] @ tensors[k] for k in tensors if "_A." in k}


def test_no_step_saves_the_combination_as_a_finished_run(cell, experts, tmp_path):
    words = ["trainer.max_steps=0", started_as(*experts)]
    for name, r in (("whole", 32), ("cut", 16)):
        train_run(cell(*words, f"lora.r={r}", f"lora.alpha={r}"), tmp_path / name)
    whole, cut = (read_manifest(tmp_path / name) for name in ("whole", "cut"))
    one, two, mean = products(experts[0]), products(experts[1]), products(tmp_path / "whole")
    assert max(float((mean[k] - (one[k] + two[k]) / 2).abs().max()) for k in mean) < 1e-7
    assert (whole["status"], whole["steps"], whole["tokens"], whole["flops"]) == ("finished", 0, 0, 0)
    assert whole["loss"] is whole["tokens_per_second"] is None
    assert [fact["run"] for fact in whole["start"]] == ["one/mean-bi/seed0", "two/mean-bi/seed0"]
    assert whole["held_out"]["before"] == whole["held_out"]["after"]
    assert whole["start_truncation"] == 0 < cut["start_truncation"] < 1
    lost = {k: products(tmp_path / "cut")[k] - mean[k] for k in mean}
    share = sum(float(x.square().sum()) for x in lost.values()) / sum(float(x.square().sum()) for x in mean.values())
    assert cut["start_truncation"] == pytest.approx(share**0.5, rel=1e-4)
    vectors = load_run(tmp_path / "whole", whole["config"]).encode(["the sum of two arrays"])
    assert np.abs(vectors - load_run(experts[0], whole["config"]).encode(["the sum of two arrays"])).max() > 1e-3


def test_going_on_from_one_run_begins_with_its_adapter_and_ends_bit_equal_when_killed(
    cell, experts, tmp_path, power_cut
):
    start = started_as(experts[0])
    train_run(cell("trainer.max_steps=0", start), tmp_path / "same")
    same, first = (load_file(folder / ADAPTER) for folder in (tmp_path / "same", experts[0]))
    assert all(torch.equal(same[key], first[key]) for key in first)
    further = cell("trainer.max_steps=3", started_as(*experts), "init.combine=dare_ties")
    train_run(further, tmp_path / "whole")
    with power_cut(2):
        train_run(further, tmp_path / "broken")
    train_run(further, tmp_path / "broken")
    whole, broken = (load_file(tmp_path / name / ADAPTER) for name in ("whole", "broken"))
    assert all(torch.equal(whole[key], broken[key]) for key in whole)
    one, other = (read_manifest(tmp_path / name) for name in ("whole", "broken"))
    for key in ("start", "start_truncation", "held_out", "loss"):
        assert one[key] == other[key], key


@pytest.mark.parametrize("more", [[], ["variants=[mean,eos]"]])
def test_what_evaluate_scores_as_untrained_is_the_start(cell, experts, tmp_path, more):
    """Not the bare base, whose gains would be the merge's."""
    start, texts = started_as(*experts), ["the sum of two arrays", "shape"]
    folders = [tmp_path / "s" / f"mean-bi{n}" / "seed0" for n in (0, 2)]
    for n, folder in zip((0, 2), folders, strict=True):
        train_run(cell(f"trainer.max_steps={n}", start), folder)
    cfg = configured([f"run={folders[1]}", "untrained=only", *more])
    (first, *_) = read_by(candidates(cfg), cfg["variants"]) if more else candidates(cfg)
    vectors = first.embeddings(None).embed(texts)
    wanted = load_run(folders[0], read_manifest(folders[0])["config"])
    assert np.abs(vectors - wanted.encode(texts)).max() < 1e-6
    bare = untrained(read_manifest(folders[0])["config"])
    assert np.abs(vectors - bare.encode(texts)).max() > 1e-3
    assert len({first.embeddings(None).fingerprint, bare.fingerprint, load_run(folders[1], cell()).fingerprint}) == 3
