"""The commands that are disturbed, on a small base and a few texts, and what of their files must be the same."""

import hashlib
import io
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records.atomic import write_text

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("sum", "array", "shape", "type", "argument", "value", "index", "column", "row", "matrix")
TRAINER = ("max_steps=6", "global_batch_size=8", "checkpoint_every=1", "validate_every=3", "progress=false")
# What time, memory and place move; all else of a file must be the same.
VOLATILE = {
    "seconds",
    "tokens_per_second",
    "peak_memory_bytes",
    "evaluation_time",
    "evaluation_phases",
    "date",
    "hours",
}
VOLATILE |= {"manifest_sha256", "states"}  # a digest of these, and what a cache had already
UNCOUNTED = {"logs", "tensorboard", "run_settings.jsonl", "progress.json"}  # each attempt adds to them, or has its own


@dataclass(frozen=True)
class Command:
    """A command line. words: {place} stands for the folder of a trial. after: the command whose files it needs.

    results: the folder below the place whose files must be the same.
    """

    name: str
    words: tuple[str, ...]
    results: str
    after: str = ""


def commands(work: Path) -> list[Command]:
    """Return all commands, those that others need first. work: the folder that `write_inputs` has filled."""
    usual = ["max_length=16", "precision=fp32", "accelerator=cpu", f"model.path='{work / 'base'}'"]
    usual += ["runs_dir={place}/runs", "cache_dir={place}/cache", "study=chaos"]
    steps = [*usual, "logging.tensorboard=false", "objective.warmup=1", *(f"trainer.{word}" for word in TRAINER)]
    pairs = ["data=jsonl", f"data.path='{work / 'pairs.jsonl'}'", "data.validation=4"]
    texts = ["data=text", f"data.path='{work / 'texts.txt'}'", "data.validation=8"]
    graded = ["data=graded", f"data.path='{work / 'graded.jsonl'}'", "data.validation=4"]

    def train(name: str, *words: str) -> Command:
        return Command(name, ("train.py", *steps, *words), "runs")

    run = "{place}/runs/chaos/lastlayer-bi/seed=0"
    scored, of_study = f"tasks_dir={work / 'tasks'}", ("seeds=[0]", "designs=[eos-causal,mean-bi]", "jobs=2")
    scoring = [f"run={run}", scored, "cache_dir={place}/cache", "progress=false"]
    scratch = [f"model.architecture.{k}" for k in ("hidden_size=32", "num_hidden_layers=1", "intermediate_size=32")]
    clm = ["experiment=pretrain_tiny", "data.packages=[omegaconf]", "data.held_out=[pluggy]", "data.development=[]"]
    clm += ["runs_dir={place}/runs", f"cache_dir={work / 'docstrings'}", "objective.export={place}/runs/export"]
    clm += ["precision=fp32", "accelerator=cpu", "objective.sequence_length=32", "objective.batch=2", *scratch]
    clm += ["objective.held_out_percent=20", "objective.warmup=1", "model.vocab_size=300", "trainer.max_steps=6"]
    clm += ["trainer.threads=1", "trainer.checkpoint_every=1", "trainer.progress=false"]
    return [
        train("infonce", *pairs, "pooler=lastlayer", "attn=bi"),
        train("distil", *pairs, "objective=distil", "pooler=mean", "attn=bi"),
        train("mixed", *graded, "objective=mixed", "pooler=mean", "attn=bi"),
        train("simcse", *texts, "objective=simcse", "pooler=mean", "attn=bi"),
        train("mntp", *texts, "objective=mntp", "pooler=mean", "attn=bi"),
        train("next_token", *texts, "objective=next_token", "objective.held_out_percent=20", "attn=causal"),
        Command("clm", ("train.py", *clm), "runs"),
        train("frozen", *pairs, "backbone.frozen=true", "pooler=lastlayer", "attn=bi"),
        train("two processes", *pairs, "pooler=mean", "attn=causal", "trainer.devices=2"),
        train("sweep", "-m", *pairs, "pooler=eos,mean", "attn=causal", "seed=0,1"),
        Command("evaluate", ("evaluate.py", *scoring), "runs/chaos/scores", "infonce"),
        Command("analysis", ("-m", "analysis", f"scores={work / 'scores.csv'}", "report=true", "out={place}/o"), "o"),
        Command("export", ("-m", "encoders.export", f"run={run}", "to={place}/model"), "model", "infonce"),
        Command("study", ("study.py", *of_study, *steps[:-1], *pairs, scored), "runs"),
    ]


def write_inputs(work: Path) -> None:
    """Write a base model of two layers, pairs, texts, tasks and scores to the folder `work`."""
    import numpy as np
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(ROOT / "assets" / "tiny")
    tokenizer.save_pretrained(work / "base")
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "max_position_embeddings": 64,
    }
    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    ends: dict[str, Any] = {
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    shape = LlamaConfig(vocab_size=len(tokenizer), initializer_range=0.2, **sizes, **heads, **ends)
    LlamaForCausalLM(shape).save_pretrained(work / "base")

    two = [(a, b) for i, a in enumerate(WORDS) for b in WORDS[i + 1 : i + 5]]
    texts = [f"the {a} of the {b} is returned as a new {a}" for a, b in two]
    write_text(work / "texts.txt", "\n".join(texts) + "\n")
    _write_lines(
        work / "pairs.jsonl",
        (
            {"query": f"the {a} of {b}", "positive": t, "negative": [f"no {a}"], "scores": [0.9, 0.1]}
            for (a, b), t in zip(two, texts, strict=True)
        ),
    )
    grades = ({"first": f"the {a}", "second": f"a {b}", "score": len(a) - len(b)} for a, b in two)
    _write_lines(work / "graded.jsonl", grades)
    labelled = [{"text": text, "label": a} for (a, _), text in zip(two, texts, strict=True)]
    for name, kind, files in (
        ("Classes", "Classification", {"train": labelled, "test": labelled}),
        ("Graded", "STS", {"test": [{"sentence1": a, "sentence2": b, "score": len(a)} for a, b in two]}),
        ("Groups", "Clustering", {"test": [{"sentences": r["text"], "labels": r["label"]} for r in labelled]}),
    ):
        write_text(work / "tasks" / name / "task.json", json.dumps({"name": name, "type": kind}))
        for part, rows in files.items():
            _write_lines(work / "tasks" / name / f"{part}.jsonl", rows)
    draw = np.random.default_rng(0)
    lines = [f"{m},t{t},STS,{s},{draw.random():.4f}" for m in ("a", "b", "c") for t in range(12) for s in range(3)]
    write_text(work / "scores.csv", "\n".join(["model,task,type,seed,score", *lines]) + "\n")


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_text(path, (json.dumps(row) + "\n" for row in rows))


def contents(folder: Path) -> dict[str, str]:
    """Return file -> sha256 of what is in it, without what time and memory move; logs and hidden drafts do not count.

    {"": "absent"} where there is no folder.
    """
    if not folder.is_dir():
        return {"": "absent"}
    digests = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part in UNCOUNTED or part.startswith(".") for part in parts):
            digests["/".join(parts)] = hashlib.sha256(_settled(path)).hexdigest()
    return digests


def _settled(path: Path) -> bytes:
    """The bytes of a file; of a checkpoint, a card and of JSON what time does not move."""
    if path.suffix == ".json":
        try:
            return json.dumps(_without_times(json.loads(path.read_bytes())), sort_keys=True).encode()
        except ValueError:
            pass
    data = path.read_bytes()
    if path.suffix == ".ckpt":  # objective=clm keeps its last one
        return _of_checkpoint(data)
    if path.name == "README.md":
        data = b"\n".join(line for line in data.splitlines() if not line.startswith(b"| hours"))
    return data


def _of_checkpoint(data: bytes) -> bytes:
    """Weights, moments and step of a checkpoint; seconds, and how often Lightning's loop began anew, are no result."""
    import torch

    try:
        checkpoint = torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # damaged: then it is what it is
        return data
    kept = io.BytesIO()
    torch.save([checkpoint[key] for key in ("state_dict", "optimizer_states", "global_step")], kept)
    return kept.getvalue()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(one) for key, one in value.items() if key not in VOLATILE}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def reset(place: Path, kept: Path | None) -> None:
    """Make `place` an empty folder, or a copy of `kept`; its own inode stays, as it may be a file system."""
    place.mkdir(exist_ok=True)
    for path in place.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if kept is not None:
        shutil.copytree(kept, place, dirs_exist_ok=True, symlinks=True)
