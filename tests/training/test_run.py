"""A whole run: a stopped one is not finished, and what was trained outlasts what fails after it."""

import json

import pytest
import torch
from safetensors.torch import load_file

from cli.errors import UserError
from records.manifest import read_manifest
from tests.started import start
from tests.triples import quick_run
from training.checks import MAY_CHANGE, check_sizes, continued
from training.large_batch import LargeBatch
from training.loop import LAST
from training.module import StepModule
from training.objectives.infonce import InfoNCE
from training.run import begin, build, train_run
from training.validation import Validation


@pytest.fixture(scope="module")
def cell(compose_cell, pairs):
    """Compose a cell that trains four quick steps on the triples of a file."""
    words = [*quick_run(pairs, 4, checkpoint=2), "trainer.validate_every=2", "logging.csv=true"]
    return lambda pooler="multilayer", attn="bi", *more: compose_cell(pooler, attn, *words, *more)


def trained(folder):
    return {**load_file(folder / "adapter" / "adapter_model.safetensors"), **load_file(folder / "head.safetensors")}


def test_an_interruption_with_other_data_or_code_is_noticed():
    now = {"data": {"sha256": "a"}, "base_weights_sha256": "b", "tokenizer_sha256": "c", "threads": 2}
    now |= {key: "x" for key in MAY_CHANGE if key not in ("code", "threads")}
    now["code"] = {"commit": "1", "sha256": "old"}
    assert continued(now, now) == now
    later = {**now, "code": {"commit": "2", "sha256": "new"}}
    merged = continued(later, now)
    assert merged["code"]["sha256"] == "old -> new"
    with pytest.raises(UserError, match=r"The training data changed .* \(data.sha256\)"):
        continued({**now, "data": {"sha256": "other"}}, now)


@pytest.mark.slow
def test_texts_that_max_length_cuts_are_counted_and_a_warm_up_longer_than_the_run_is_named(cell, tmp_path, capsys):
    rows = [{"query": f"the {i}", "positive": f"a sum of {i} arrays" * (1 + 9 * (i % 2))} for i in range(20)]
    (tmp_path / "long.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = [f"data.path='{tmp_path}/long.jsonl'", "trainer.max_steps=1", "trainer.global_batch_size=16"]
    train_run(cell("mean", "bi", *words, "objective.warmup=5"), tmp_path / "run")
    assert read_manifest(tmp_path / "run")["texts_cut"] == pytest.approx(0.25, abs=0.05)  # half the positives
    said = capsys.readouterr().out
    tokens = read_manifest(tmp_path / "run")["tokens"]
    assert f"About {tokens:,} tokens, {tokens:,} in the first step. warning: max_length=48 cuts 2" in said
    assert "objective.warmup=5 is longer than the run, and cut to its 1 steps" in said


@pytest.mark.slow
def test_a_run_that_compares_nothing_or_whose_held_out_query_has_no_room_is_refused(cell, tmp_path):
    rows = [{"query": f"the {i}", "positive": "always the same"} for i in range(20)]
    (tmp_path / "same.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(UserError, match="No query meets another document than its own"):
        train_run(cell("mean", "bi", f"data.path='{tmp_path}/same.jsonl'"), tmp_path / "run")
    rows = [{"query": f"q{i}", "positive": f"p{i}", **({} if i else {"instruction": "long " * 99})} for i in range(20)]
    (tmp_path / "same.jsonl").write_text("\n".join(map(json.dumps, rows)))  # the first is held out
    with pytest.raises(UserError, match="no room for the text"):
        train_run(cell("mean", "bi", f"data.path='{tmp_path}/same.jsonl'"), tmp_path / "run")
    assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.slow
def test_sources_smaller_than_a_batch_are_not_counted(cell, tmp_path):
    counts = {"a": 20, "b": 20, "c": 5}
    rows = [{"query": f"{s} {i}", "positive": f"to {s}{i}", "source": s} for s, n in counts.items() for i in range(n)]
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = f"data.path='{tmp_path}/few.jsonl'", "data.one_source=true", "trainer.max_steps=1", "data.validation=3"
    train_run(cell("mean", "bi", *words), tmp_path / "run")
    assert read_manifest(tmp_path / "run")["data"]["trained_on"] == 40 - 3, "records 0, 15 and 30 are held out"


@pytest.mark.slow
def test_nan_after_the_last_step_names_the_run_and_the_text(cell, tmp_path):
    """The loss of the only step is finite; its update is what breaks the weights, and validation sees it first."""
    words = ("objective.lr=1e30", "trainer.gradient_clip=0", "trainer.max_steps=1", "objective.warmup=0")
    with pytest.raises(UserError, match=rf"Validation \(queries\) of {tmp_path}: .*the first is '"):
        train_run(cell("mean", "bi", *words), tmp_path)
    assert read_manifest(tmp_path)["status"] == "running"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.global_batch_size=1", "no in-batch negatives"),
        ("trainer.max_steps=0", "trains nothing"),
        ("trainer.threads=0", "trainer.threads=0 must be a whole number, at least 1; null: one for each core"),
    ],
)
def test_sizes_that_do_not_fit(cell, override, message):
    with pytest.raises(UserError, match=message):
        check_sizes(cell("eos", "bi", override))


def test_a_pooler_that_returns_another_shape_is_named(cell, tmp_path):
    module = build(cell("mean", "bi"), tmp_path)[0]
    module.encoder.pooler.forward = lambda states, tokens: torch.ones(len(tokens.roles), 1)
    with pytest.raises(UserError, match=r"The pooler \w+ returned \[\d+, 1\] for \d+ texts. Return \[B, E\]"):
        module.objective.backward(*module.prepared(0)[1:], 0)


def test_a_compiler_that_fails_is_one_line_with_its_remedy(cell, tmp_path, monkeypatch):
    def broken(*_):
        raise OSError("no triton for this card")

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda layer, **how: real(layer, backend=broken, **how))
    with pytest.raises(UserError, match=r"torch.compile fails on this machine \(.*\). Give compile=never"):
        train_run(cell("mean", "bi", "compile=always"), tmp_path / "run")


def test_threads_are_those_of_the_run_whatever_ran_before(cell, tmp_path, monkeypatch):
    monkeypatch.setattr("training.run.THREADS", 4)
    monkeypatch.setattr(torch, "set_num_threads", (found := []).append)
    for _ in "ab":  # jobs of a sweep
        begin(cell("eos", "bi", "trainer.devices=2", "trainer.threads=null"))
    assert found == [2, 2]
    module = build(cell("eos", "bi"), tmp_path)[0]
    module.on_train_start()  # after Lightning's launcher, which sets its own number
    assert found[2:] == [torch.get_num_threads()]


@pytest.mark.slow
def test_two_processes_give_the_same_run_and_leave_the_next_of_a_sweep_alone(cell, tmp_path):
    """Through Lightning and its launcher, as a user starts it; with a batch that two do not divide."""
    cfg = cell("multilayer", "bi")
    cfg["trainer"]["global_batch_size"] = 7
    train_run(cfg, tmp_path / "one")
    words = ["pooler=multilayer", "attn=bi", f"model.path={cfg['model']['path']}", "precision=fp32", "max_length=48"]
    words += ["accelerator=cpu"]
    words += [*quick_run(cfg["data"]["path"], 4, checkpoint=2), "trainer.validate_every=2", "trainer.threads=1"]
    words += ["trainer.global_batch_size=7"]
    done = start("train.py", "-m", *words, "experiment=bundled", "trainer.devices=2,1", f"runs_dir={tmp_path / 'two'}")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("loss") == 2, "each run ends once, in one process"
    both = (tmp_path / "two").glob("*/multilayer-bi/seed0")
    after, folder = sorted(both, key=lambda f: read_manifest(f)["config"]["trainer"]["devices"])
    one, two, next_run = (trained(f) for f in (tmp_path / "one", folder, after))
    assert max(float((one[k] - two[k]).abs().max()) for k in one) < 1e-4
    assert all(torch.equal(one[k], next_run[k]) for k in one), "no process of the run before takes part"
    manifests = read_manifest(tmp_path / "one"), read_manifest(folder)
    assert manifests[0]["batch_order_sha256"] == manifests[1]["batch_order_sha256"]
    assert manifests[0]["tokens"] == manifests[1]["tokens"]


@pytest.mark.slow
def test_a_stopped_run_is_not_taken_for_finished(cell, tmp_path, monkeypatch, capsys):
    """Lightning's fit returns quietly after SIGTERM; the run must not be saved as if it had ended."""
    real = StepModule.training_step

    def stopping(self, tick, index):
        self.trainer.should_stop = self.global_step == 2
        return real(self, tick, index)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(StepModule, "training_step", stopping)
        train_run(cell(), tmp_path)
    assert read_manifest(tmp_path)["status"] == "running"
    assert not (tmp_path / "head.safetensors").exists()
    train_run(cell(), tmp_path)
    assert (read_manifest(tmp_path)["steps"], "goes on after step 2." in capsys.readouterr().out) == (4, True)


@pytest.mark.slow
def test_a_damaged_checkpoint_is_named(cell, tmp_path, power_cut):
    with power_cut(3):
        train_run(cell(), tmp_path)
    (tmp_path / LAST).write_bytes((tmp_path / LAST).read_bytes()[:5000])
    with pytest.raises(UserError, match=r"last.ckpt cannot be read: .* Delete it: the same command then begins anew"):
        train_run(cell(), tmp_path)
    with power_cut(1):
        train_run({**cell(), "resume": False}, tmp_path)
    assert not (tmp_path / LAST).exists(), "the next command must not go on from what was to be replaced"


@pytest.mark.slow
def test_what_fails_after_the_last_step_costs_no_step(cell, tmp_path, monkeypatch):
    steps, real = [], StepModule.training_step
    monkeypatch.setattr(StepModule, "training_step", lambda self, *tick: (steps.append(1), real(self, *tick))[1])
    cfg = cell("mean", "bi", "trainer.checkpoint_every=0", "trainer.validate_every=0")
    for place in ((Validation, "score"), (InfoNCE, "facts")):
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
            patch.setattr(*place, lambda *_: 1 / 0)
            train_run(cfg, tmp_path / "again")
        assert read_manifest(tmp_path / "again")["status"] == "running"
    train_run(cfg, tmp_path / "again")
    assert len(steps) == 4, "no step was run again"
    train_run(cfg, tmp_path / "whole")
    again, whole = trained(tmp_path / "again"), trained(tmp_path / "whole")
    assert all(torch.equal(again[k], whole[k]) for k in whole)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [(3, "nan", 1.0), (1, "inf", 0), (3, "inf", 1.0)])
def test_the_same_command_goes_on_after_a_gradient_that_is_not_finite(cell, tmp_path, monkeypatch, spoil):
    """One entry of one gradient is spoilt, and the loss is fine: neither weights nor checkpoint ever have it."""
    at, value, clip = spoil
    cfg, real = cell("lastlayer", "bi", f"trainer.gradient_clip={clip}"), LargeBatch.backward

    def spoilt(self, rows, loss_of, step):
        loss = real(self, rows, loss_of, step)
        if step == at:
            next(p for p in self.encoder.parameters() if p.grad is not None).grad.view(-1)[0] = float(value)
        return loss

    message = rf"Step {at} is not finite in this process \(loss \d.*, gradient norm (nan|inf); examples .*Lower"
    with monkeypatch.context() as patch, pytest.raises(UserError, match=message):
        patch.setattr(LargeBatch, "backward", spoilt)
        train_run(cfg, tmp_path / "spoilt")
    assert (tmp_path / "spoilt" / LAST).exists() == (at == 3)
    train_run(cfg, tmp_path / "spoilt")
    train_run(cfg, tmp_path / "whole")
    expected, found = trained(tmp_path / "whole"), trained(tmp_path / "spoilt")
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())
    assert all(weight.isfinite().all() for weight in expected.values())
