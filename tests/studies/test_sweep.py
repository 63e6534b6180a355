"""Sweeps under Hydra's launchers: a cell that fails stops no other, is named with its error, and is seen by status."""

import json
import os
import re
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from studies.launchers import PLUGIN, SETTINGS, launcher_words
from studies.status import main as status_main
from studies.status import plain_table, rows

from cli.compose import composer
from cli.errors import UserError
from records.manifest import sealed
from records.progress import Progress, write_progress
from studies.sweep import RECORDS, Jobs
from tests.started import run_here, start
from tests.triples import write_triples


def installed(name):
    return name not in PLUGIN or bool(find_spec("hydra_plugins") and find_spec(f"hydra_plugins.{PLUGIN[name][0]}"))


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["none", "slurm_local"])
def test_a_cell_that_fails_stops_no_other_and_the_command_goes_on(launcher, small_model, tmp_path):
    if not installed(launcher):
        pytest.skip(f"launcher={launcher} is not installed")
    pairs = tmp_path / "pairs.jsonl"
    write_triples(pairs)
    words = [f"model.path={small_model}", "data=jsonl", f"data.path='{pairs}'", "data.validation=4", "accelerator=cpu"]
    words += ["trainer.max_steps=1", "trainer.global_batch_size=4", "trainer.progress=false", "max_length=48"]
    words += ["logging.tensorboard=false", f"runs_dir={tmp_path}", f"launcher={launcher}", "study=s", "seed=0"]
    sweep = ["train.py", "-m", *words, "lora.targets=choice([nope],[q_proj])"]
    done = (run_here if launcher == "none" else start)(*sweep)
    assert done.returncode == 2, done.stderr[-3000:]
    failed, last = done.stderr.splitlines()[-2:]
    assert failed.startswith("failed: lora.targets=[nope]: lora.targets names ['nope'], not in this model.")
    assert last.startswith("error: 1 of the sweep's 2 jobs failed; their last errors stand above. 1 ended well.")
    shown = {row.state: row for row in rows([tmp_path])}
    assert shown.keys() == {"done", "failed"}
    assert shown["failed"].note in failed
    record = next((tmp_path / RECORDS).iterdir())
    states = [json.loads((record / f"{number}.json").read_text()) for number in (0, 1)]
    assert json.loads((record / "folders.json").read_text()) == [state["folder"] for state in states], "as planned"
    assert not (record / "progress.json").exists(), "the sweep is over"
    if launcher == "none":
        again = run_here(*sweep)
        assert (again.returncode, "is finished; nothing to do" in again.stdout) == (2, True)


FULL = """
import errno, os, sys

def full(event, words):
    if event == "os.mkdir" and ".1.json." in os.fspath(words[0]):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), words[0])

sys.addaudithook(full)
from cli.errors import guard
from train import main
guard(main)
"""


@pytest.mark.slow
def test_a_job_whose_state_the_disk_does_not_take_is_named_without_a_trace(small_model, tmp_path):
    done = start("-c", FULL, "-m", f"model.path={small_model}", "check=true", f"runs_dir={tmp_path}", "seed=0,1")
    assert done.returncode == 2
    assert "FULL_ERROR" not in done.stderr
    assert "Traceback" not in done.stderr
    *_, said, failed, last = done.stderr.splitlines()
    assert re.match(r"error: .*No space left on device.*1\.json", said)
    assert failed.startswith("failed: seed=1: ")
    assert "No space left on device" in failed
    assert last.startswith("error: 1 of the sweep's 2 jobs failed; their last errors stand above. 1 ended well.")


@pytest.mark.parametrize("name", SETTINGS)
def test_a_launcher_is_hydras_own_with_the_settings_of_conf(name, monkeypatch):
    words = [f"launcher={name}", "launcher.more={mail-type: END}" if name == "slurm" else "trainer.devices=2"]
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    if not installed(name):
        extra = PLUGIN[name][1]
        with pytest.raises(UserError, match=rf'launcher={name} needs .* Install it: pip install "\.\[{extra}\]"'):
            launcher_words(words)
        return
    monkeypatch.setattr("studies.launchers.which", str)
    whole = [*words, "trainer.num_nodes=4", *launcher_words(words)]
    with composer() as make:
        cfg = make("train", whole, return_hydra_config=True)
        settings = cfg.hydra.launcher
        assert all(key in settings for key in SETTINGS[name])
        if name == "slurm":
            assert (settings.nodes, settings.tasks_per_node, settings.gpus_per_node) == (4, 1, 1)
            assert settings.additional_parameters == {"mail-type": "END"}
    assert launcher_words(["lora.r=8", "launcher=none"]) == []


@pytest.mark.skipif(not installed("slurm"), reason="launcher=slurm is not installed")
@pytest.mark.parametrize("words", [["train.py", "-m", "seed=0,1"], ["train.py"]], ids=" ".join)
def test_slurm_is_asked_for_on_a_machine_that_has_none(words, tmp_path, monkeypatch):
    command = tmp_path / "bin" / "srun"
    command.parent.mkdir()
    command.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(command.parent))
    done = run_here(*words, f"runs_dir={tmp_path / 'runs'}", "launcher=slurm")
    said = "launcher=slurm submits jobs to SLURM, and this machine has no sbatch. Give the command on a machine that"
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"error: {said}")
    assert not (tmp_path / "runs").exists()


def test_status_tells_running_from_stopped_and_names_what_waits(tmp_path):
    config = {"trainer": {"max_steps": 60}}
    folders = {name: tmp_path / f"study/{name}-bi/seed0" for name in ("ended", "runs", "stopped")}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        status = {"status": "finished", "steps": 60, "loss": 1.25} if name == "ended" else {"status": "running"}
        manifest = sealed({"manifest_version": 2, "config": config, **status})
        (folder / "manifest.json").write_text(json.dumps(manifest))
    write_progress(folders["runs"], Progress(20, 60, 2.0, 80.0))
    write_progress(folders["stopped"], Progress(10, 60, 3.0, 99.0, host="elsewhere", written=time.time() - 3600))
    scores = tmp_path / "study/scores/results/study__ended-bi/seed0@1a2b3c4d"
    scores.mkdir(parents=True)
    for task, value in (("A", 0.25), ("B", 0.75)):
        entry = {"main_score": value, "hf_subset": "default", "languages": ["eng-Latn"]}
        (scores / f"{task}.json").write_text(json.dumps({"task_name": task, "scores": {"test": [entry]}}))
    record = tmp_path / RECORDS / "20260101-000000-1"
    record.mkdir(parents=True)
    (record / "jobs.json").write_text(json.dumps([["pooler=runs"], ["pooler=mean", "seed=1"]]))
    (record / "0.json").write_text(json.dumps({"status": "running", "folder": str(folders["runs"])}))
    write_progress(record, Progress(0, 0))
    found = rows([tmp_path])
    assert [(Path(row.name).parent.name, row.state) for row in found[:3]] == [
        ("ended-bi", "done"),
        ("runs-bi", "running"),
        ("stopped-bi", "stopped"),
    ]
    assert (found[0].step, found[0].loss, found[0].score) == ("60", "1.250", "0.5000 (2)")
    assert (found[1].step, found[1].loss) == ("20 of 60", "2.000")
    assert found[1].left in ("80 s", "79 s")
    assert (found[3].name, found[3].state) == ("pooler=mean seed=1", "waiting")
    assert plain_table(found).splitlines()[-1] == "4 runs: 1 done, 1 running, 1 stopped, 1 waiting"
    refused = {"status": "failed", "folder": str(folders["ended"]), "error": "another configuration"}
    (record / "1.json").write_text(json.dumps({**refused, "written": time.time() + 9}))
    again = rows([tmp_path])[0]
    assert (again.state, again.note) == ("failed", "another configuration"), "the sweep asked for another run there"


GONE = Progress(0, 0, host="elsewhere", written=0.0)


def listed(place):
    return [(row.name.rpartition("/s/")[2], row.state) for row in rows([place])]


def finish(folder):
    folder.mkdir(parents=True)
    manifest = sealed(
        {"manifest_version": 2, "config": {"trainer": {"max_steps": 60}}, "status": "finished", "steps": 60}
    )
    (folder / "manifest.json").write_text(json.dumps(manifest))


def recorded(place, name, jobs, process):
    write_progress(place / RECORDS / name, process)
    (place / RECORDS / name / "jobs.json").write_text(json.dumps(jobs))


def test_a_folder_that_goes_while_the_runs_are_looked_for_hides_none(tmp_path, monkeypatch):
    """Drafts of other files come and go beside the runs; one goes between the list of folders and its own."""
    for folder in (tmp_path / "s" / "a" / "seed0", tmp_path / "s" / "b" / "seed1"):
        write_progress(folder, Progress(20, 60, 2.0, 80.0))
    (tmp_path / "s" / "b" / ".draft").mkdir()
    scan = os.scandir

    def gone(path="."):
        if Path(path).name == ".draft":
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", gone)
    names = [str(Path(row.name).relative_to(tmp_path)) for row in rows([tmp_path])]
    assert names == ["s/a/seed0", "s/b/seed1"]


def test_of_several_processes_the_first_keeps_the_record(tmp_path, monkeypatch):
    for name, value in {"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x", "GROUP_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("LOCAL_RANK", rank)
        jobs = Jobs(print)
        jobs.plan([f"runs_dir='{tmp_path}'", "study=s", "seed=0,1", "trainer.devices=2"])
        assert len(list(tmp_path.glob(f"{RECORDS}/*"))) == (rank == "0") == (jobs.record is not None)
    with jobs.told():
        deadline = time.monotonic() + 10
        while "waiting" not in plain_table(rows([tmp_path])) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert plain_table(rows([tmp_path])).splitlines()[-1] == "2 runs: 2 waiting"
    assert plain_table(rows([tmp_path])).splitlines()[-1] == "2 runs: 2 stopped"


def test_a_further_process_names_its_failed_jobs_too(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    done = run_here(
        "train.py", "-m", f"runs_dir={tmp_path}", "seed=0,1", f"model.path={tmp_path / 'none'}", "check=true"
    )
    assert done.returncode == 2
    assert [line[:15] for line in done.stderr.splitlines()[-3:-1]] == ["failed: seed=0:", "failed: seed=1:"]
    assert "2 of the sweep's 2 jobs failed" in done.stderr
    assert not (tmp_path / RECORDS).exists()


def test_a_cell_of_a_sweep_that_another_command_trained_is_listed_once(tmp_path):
    Jobs(print).plan([f"runs_dir='{tmp_path}'", "study=s", "pooler=mean,eos", "attn=bi", "lora.r=8", "seed=0,1"])
    finish(tmp_path / "s/mean-bi/seed1")
    assert listed(tmp_path) == [
        ("mean-bi/seed1", "done"),
        *((cell, "stopped") for cell in ("mean-bi/seed0", "eos-bi/seed0", "eos-bi/seed1")),
    ]


def test_all_sweeps_are_read_whichever_is_the_latest(tmp_path):
    recorded(tmp_path, "20260101-000000-1", [["seed=0"], ["seed=1"]], GONE)
    assert [row.state for row in rows([tmp_path])] == ["stopped", "stopped"]
    recorded(tmp_path, "20260101-000001-2", [["seed=2"], ["seed=3"]], Progress(0, 0))
    recorded(tmp_path, "20260101-000002-3", [["run=a", "tasks=[A]"], ["run=a", "tasks=[B]"]], Progress(0, 0))
    found = [("seed=2", "waiting"), ("seed=3", "waiting"), ("tasks=[A]", "waiting"), ("tasks=[B]", "waiting")]
    assert listed(tmp_path) == found, "what has no folder and a later sweep cannot be told from what was done since"
    at = tmp_path / RECORDS / "20260101-000001-2"
    folders = [str(tmp_path / f"s/mean-bi/seed{seed}") for seed in (2, 3)]
    (at / "folders.json").write_text(json.dumps(folders))
    (at / "0.json").write_text(json.dumps({"status": "running", "folder": folders[0], "written": time.time()}))
    assert [row.state for row in rows([tmp_path])] == ["running", *["waiting"] * 3], "it has not come to its first step"
    write_progress(at, GONE)
    assert sorted(row.state for row in rows([tmp_path])) == ["stopped", "stopped", "waiting", "waiting"]
    recorded(tmp_path, "20260101-000003-4", [["seed=2"], ["seed=3"]], Progress(0, 0))
    (tmp_path / RECORDS / "20260101-000003-4/folders.json").write_text(json.dumps(folders))
    assert [row.state for row in rows([tmp_path])] == ["waiting"] * 4, "a sweep that lives has the last word"


def test_watching_ends_with_the_process_that_cells_wait_for(tmp_path, monkeypatch):
    recorded(tmp_path, "20260101-000000-1", [["seed=0"], ["seed=1"]], Progress(0, 0))
    looks = []

    def sleep(seconds):
        looks.append([row.state for row in rows([tmp_path])])
        assert len(looks) < 3, "it goes on for ever"
        if len(looks) == 2:
            write_progress(tmp_path / RECORDS / "20260101-000000-1", GONE)

    monkeypatch.setattr("studies.status.time.sleep", sleep)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.argv", ["status", str(tmp_path), "watch=true"])
    status_main()
    assert looks == [["waiting", "waiting"]] * 2
    status_main()
    assert len(looks) == 2, "nothing waits for a process that has gone"
