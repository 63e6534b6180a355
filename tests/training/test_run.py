"""A whole run in its folder: what it leaves, and that an interrupted one ends bit-equal."""

import json

import pytest
import torch
from safetensors.torch import load_file

from encoders.backbone import load_backbone
from encoders.loading import load_run, untrained
from records.errors import UserError
from records.run_folder import RunFolder
from tests.cells import CELLS
from training import contrastive
from training.checkpoints import LAST
from training.contrastive import check_sizes, train_cell
from training.facts import MAY_CHANGE, continued
from training.module import ContrastiveModule


@pytest.fixture(scope="module")
def cell(compose_cell, tmp_path_factory):
    """Compose a cell that trains four quick steps on forty triples in a file."""
    path = tmp_path_factory.mktemp("data") / "pairs.jsonl"
    words = ["sum", "array", "shape", "type", "argument", "value", "index", "column", "row", "matrix"]
    with path.open("w") as file:
        for i, a in enumerate(words):
            for b in words[i + 1 : i + 5]:
                row = {"query": f"the {a} of the {b}", "positive": f"returned {b} as {a}", "negative": f"a new {a}"}
                file.write(json.dumps(row) + "\n")
    quick = [
        "trainer.max_steps=4",
        "trainer.global_batch_size=8",
        "trainer.checkpoint_every=2",
        "trainer.progress=false",
    ]
    quick += [
        "data=jsonl",
        f"data.path='{path}'",
        "data.validation=4",
        "trainer.validate_every=2",
        "objective.warmup=1",
    ]

    def compose(pooler="multilayer", attn="bi", *overrides):
        return compose_cell(pooler, attn, *quick, "logging.tensorboard=false", *overrides)

    return compose


def trained(folder):
    return {**load_file(folder / "adapter" / "adapter_model.safetensors"), **load_file(folder / "head.safetensors")}


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_a_run_folder_is_complete_and_loads_as_it_was_trained(cell, tmp_path, pooler, attn):
    cfg = cell(pooler, attn)
    train_cell(cfg, RunFolder(tmp_path))
    manifest = RunFolder(tmp_path).manifest()
    assert manifest["status"] == "finished"
    assert manifest["steps"] == 4
    assert manifest["tokens"] > 0
    assert not (tmp_path / LAST).exists()
    texts = ["the sum of the array", "a new shape"]
    after, before = load_run(tmp_path, cfg), untrained(cfg)
    moved = abs(after.encode(texts) - before.encode(texts)).max()
    assert moved > 1e-4, "training changed nothing"
    assert after.fingerprint != before.fingerprint
    assert (pooler in ("lastlayer", "multilayer")) == bool(manifest["parameters"]["head"])


def test_an_interrupted_run_ends_bit_equal(cell, tmp_path, monkeypatch):
    cfg = cell()
    train_cell(cfg, RunFolder(tmp_path / "whole"))
    real = ContrastiveModule.training_step

    def killed(self, tick, index):
        if self.global_step == 3:
            raise SystemExit("the power went")
        return real(self, tick, index)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(ContrastiveModule, "training_step", killed)
        train_cell(cfg, RunFolder(tmp_path / "broken"))
    assert (tmp_path / "broken" / LAST).is_file()
    assert RunFolder(tmp_path / "broken").manifest()["status"] == "running"
    train_cell(cfg, RunFolder(tmp_path / "broken"))
    whole, resumed = trained(tmp_path / "whole"), trained(tmp_path / "broken")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[k], resumed[k]) for k in whole)
    one, other = (RunFolder(tmp_path / f).manifest() for f in ("whole", "broken"))
    for key in ("batch_order_sha256", "tokens", "flops", "loss", "validation_ndcg_at_10", "data", "code"):
        assert one[key] == other[key], key


def test_an_interruption_with_other_data_or_code_is_noticed():
    now = {"data": {"sha256": "a"}, "base_weights_sha256": "b", "tokenizer_sha256": "c", "threads": 2}
    now |= {key: "x" for key in MAY_CHANGE if key not in ("code", "threads")}
    now["code"] = {"commit": "1", "modules": {"encoders.encoder": "old", "poolers.eos": "same"}}
    assert continued(now, now) == now
    later = {**now, "code": {"commit": "2", "modules": {"encoders.encoder": "new", "poolers.eos": "same"}}}
    merged = continued(later, now)
    assert merged["code"]["modules"] == {"encoders.encoder": "old -> new", "poolers.eos": "same"}
    with pytest.raises(UserError, match=r"The training data changed .* \(data.sha256\)"):
        continued({**now, "data": {"sha256": "other"}}, now)


def test_two_poolers_see_the_same_batches_and_start_from_the_same_adapter(cell, tmp_path):
    folders = []
    for pooler in ("eos", "lastlayer"):
        folders.append(RunFolder(tmp_path / pooler))
        train_cell(cell(pooler, "bi", "objective.lr=0.0"), folders[-1])
    one, other = (f.manifest() for f in folders)
    assert one["batch_order_sha256"] == other["batch_order_sha256"]
    assert one["seeds"] == other["seeds"]
    a, b = (load_file(f.path / "adapter" / "adapter_model.safetensors") for f in folders)
    assert all(torch.equal(a[k], b[k]) for k in a)
    train_cell(cell("eos", "bi", "objective.lr=0.0", "seed=1"), RunFolder(tmp_path / "seed"))
    assert RunFolder(tmp_path / "seed").manifest()["batch_order_sha256"] != one["batch_order_sha256"]


def test_the_base_stays_bit_identical(cell, tmp_path, monkeypatch):
    kept = []
    real = contrastive.save_trained
    monkeypatch.setattr(
        contrastive, "save_trained", lambda encoder, *rest: (kept.append(encoder), real(encoder, *rest))
    )
    cfg = cell()
    train_cell(cfg, RunFolder(tmp_path))
    base = load_backbone(cfg["model"], torch.float32).state_dict()
    trained_base = {
        k.replace(".base_layer", ""): v for k, v in kept[0].backbone.state_dict().items() if "lora_" not in k
    }
    assert trained_base.keys() == base.keys()
    assert all(torch.equal(trained_base[k], base[k]) for k in base)
    saved = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert all("lora_" in name for name in saved), "only LoRA is in the adapter"


def test_nan_stops_and_names_step_and_batch(cell, tmp_path):
    with pytest.raises(UserError, match=r"loss is (nan|inf) at step \d+ \(examples"):
        train_cell(cell("mean", "bi", "objective.lr=1e30", "trainer.gradient_clip=0"), RunFolder(tmp_path))
    assert RunFolder(tmp_path).manifest()["status"] == "running"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.chunk_size=16", "smaller than trainer.chunk_size=16"),
        ("trainer.devices=3", "not divisible over trainer.devices=3"),
        ("trainer.global_batch_size=1", "no in-batch negatives"),
        ("trainer.max_steps=0", "trains nothing"),
        ("objective.temperature=0", "must be above zero"),
    ],
)
def test_sizes_that_do_not_fit(cell, override, message):
    with pytest.raises(UserError, match=message):
        check_sizes(cell("eos", "bi", override))


def test_two_processes_give_the_same_run(cell, tmp_path):
    """Through Lightning and its launcher, as a user starts it."""
    import subprocess
    import sys

    cfg = cell("multilayer", "bi")
    train_cell(cfg, RunFolder(tmp_path / "one"))
    words = ["pooler=multilayer", "attn=bi", f"model.path={cfg['model']['path']}", "precision=fp32", "max_length=48"]
    words += ["accelerator=cpu", "trainer.max_steps=4", "trainer.global_batch_size=8", "trainer.checkpoint_every=2"]
    words += ["data=jsonl", f"data.path='{cfg['data']['path']}'", "data.validation=4", "trainer.validate_every=2"]
    words += ["objective.warmup=1", "logging.tensorboard=false", "trainer.progress=false", "trainer.threads=1"]
    done = subprocess.run(
        [sys.executable, "train.py", *words, "trainer.devices=2", f"runs_dir={tmp_path / 'two'}"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    (folder,) = (tmp_path / "two").glob("*/multilayer-bi/seed=0")
    one, two = trained(tmp_path / "one"), trained(folder)
    assert max(float((one[k] - two[k]).abs().max()) for k in one) < 1e-4
    manifests = RunFolder(tmp_path / "one").manifest(), RunFolder(folder).manifest()
    assert manifests[0]["batch_order_sha256"] == manifests[1]["batch_order_sha256"]
    assert manifests[0]["tokens"] == manifests[1]["tokens"]


@pytest.mark.parametrize(("pooler", "attn"), CELLS)
def test_the_trained_encoder_is_the_loaded_one(cell, tmp_path, monkeypatch, pooler, attn):
    """In memory with LoRA apart, or from the folder with LoRA merged: the same vectors."""
    kept = []
    real = contrastive.save_trained
    monkeypatch.setattr(
        contrastive, "save_trained", lambda encoder, *rest: (kept.append(encoder), real(encoder, *rest))
    )
    cfg = cell(pooler, attn)
    train_cell(cfg, RunFolder(tmp_path))
    loaded = load_run(tmp_path, cfg)
    texts = ["the sum of the array", "a new shape"]
    rows = loaded.tokenizer(texts)
    with torch.no_grad():
        in_memory = kept[0].eval()(loaded.tokenizer.batch(rows)).numpy()
    assert abs(loaded.encode(texts) - in_memory).max() < 2e-6


def test_a_stopped_run_is_not_taken_for_finished(cell, tmp_path, monkeypatch):
    """Lightning's fit returns quietly after SIGTERM; the run must not be saved as if it had ended."""
    real = ContrastiveModule.training_step

    def stopping(self, tick, index):
        self.trainer.should_stop = self.global_step == 2
        return real(self, tick, index)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(ContrastiveModule, "training_step", stopping)
        train_cell(cell(), RunFolder(tmp_path))
    assert RunFolder(tmp_path).manifest()["status"] == "running"
    assert not (tmp_path / "head.safetensors").exists()
    train_cell(cell(), RunFolder(tmp_path))
    assert RunFolder(tmp_path).manifest()["steps"] == 4
