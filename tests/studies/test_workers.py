"""Commands side by side: order, failures, a stop; and numbers that are those of the commands by themselves."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from studies.workers import Job, run_jobs
from tests.started import start
from tests.triples import write_triples

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import os, pathlib, sys
place, name, code = sys.argv[1:]
with open(place, "a") as file:
    file.write(f"{name} {os.getpid()}\\n")
sys.exit(int(code))
"""


@pytest.fixture
def script(tmp_path):
    """A job that notes its name and process, and leaves with a code."""
    file, place = tmp_path / "note.py", tmp_path / "noted"
    file.write_text(SCRIPT)

    def job(name, code=0, after=()):
        return Job(name, (str(file), str(place), name, str(code)), tuple(after))

    return job, lambda: [line.split() for line in place.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_jobs_wait_for_those_before_them_and_a_failed_one_stops_no_other(script, count):
    job, noted = script
    jobs = [job("late", after=["first"]), job("first"), job("wrong", code=2), job("never", after=["wrong"])]
    told = []
    codes = run_jobs(jobs, count, ["json"], lambda one, code, seconds: told.append((one.name, code)))
    assert codes == {"first": 0, "late": 0, "wrong": 2} == dict(told)
    names = [name for name, _ in noted()]
    assert sorted(names) == ["first", "late", "wrong"]
    assert names.index("first") < names.index("late")
    assert len({process for _, process in noted()}) == 3


STOPPED = """
from studies.workers import Job, run_jobs
run_jobs([Job("long", ({place!r},))], 1, ["json"], print)
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_stop_reaches_what_runs(tmp_path, sent):
    place, process_id = tmp_path / "long.py", tmp_path / "id"
    place.write_text(f"import os, time\nopen({str(process_id)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    main = subprocess.Popen([sys.executable, "-c", STOPPED.format(place=str(place))], cwd=ROOT)
    _until(lambda: process_id.exists() and process_id.read_text())
    main.send_signal(sent)
    assert main.wait(300) == (128 + sent if sent == signal.SIGTERM else -sent)
    _until(lambda: not Path(f"/proc/{process_id.read_text()}/exe").exists())


def _until(true):
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    pytest.fail("A minute was not enough.")


@pytest.mark.slow
def test_a_study_has_the_numbers_of_its_commands(tmp_path):
    """Trained and scored in processes of one server, and as train.py and evaluate.py by themselves."""
    write_triples(tmp_path / "pairs.jsonl")
    words = ["data=jsonl", f"data.path={tmp_path / 'pairs.jsonl'}", "data.validation=4", "max_length=16"]
    words += ["trainer.max_steps=2", "trainer.global_batch_size=8", "study=small", "logging.tensorboard=false"]
    scored = ["benchmark=docs_smoke", "tasks=[DocsNetworkxClassification]", "embeddings=memory"]
    both = tmp_path / "both", tmp_path / "alone"
    done = start(
        "study.py", "designs=[eos-causal,lastlayer-causal]", "seeds=[0,1]", *words, *scored, f"runs_dir={both[0]}"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "[9 of 9]" in done.stdout
    for pooler in ("eos", "lastlayer"):
        for seed in (0, 1):
            cell = [f"pooler={pooler}", "attn=causal", f"seed={seed}", "trainer.progress=lines", f"runs_dir={both[1]}"]
            assert start("train.py", *cell, *words).returncode == 0
            folder = both[1] / "small" / f"{pooler}-causal" / f"seed={seed}"
            assert start("evaluate.py", f"run={folder}", "untrained=also", *scored, "progress=false").returncode == 0
    names = sorted(p.relative_to(both[1]) for p in both[1].rglob("*") if p.suffix in (".safetensors", ".json"))
    assert len([n for n in names if n.name == "DocsNetworkxClassification.json"]) == 8
    for name in names:
        if name.suffix == ".safetensors":
            one, two = (load_file(place / name) for place in both)
            assert one.keys() == two.keys()
            assert all((one[key] == two[key]).all() for key in one), name
        elif "results" in name.parts and name.name.startswith("Docs"):
            one, two = (json.loads((place / name).read_text())["scores"] for place in both)
            assert one == two, name
