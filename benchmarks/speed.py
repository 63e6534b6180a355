"""Speed of one cell: tokens a second of training and encoding, beside sentence-transformers and the machine's limits.

    python -m benchmarks.speed model=tiny pooler=multilayer attn=bi
    python -m benchmarks.speed model=qwen2_0_5b pooler=eos accelerator=gpu batch=256 rounds=10
    python -m benchmarks.speed model=mistral_7b random=true     # random weights of the published shape: no hub
    ... peer=false            # without sentence-transformers, which has no pooler of routers or experts
    ... profile=20            # operations of one step that are listed; 0: none

Other words are keys of train.py. All run in turn in one process, on the same texts; a figure is the median over
rounds, with the tenth and ninetieth percentile. Of matrix rate: FLOPs that the step runs for its real tokens, over
what large square products in the same number format reach in the same round; without second pass: each forward pass
counts once, however often GradCache and checkpointing repeat it.
"""

import gc
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from benchmarks.contestants import Config, DenseStep, OurStep, PeerStep, Step, texts_of
from cli.compose import HOME, composed, plain
from cli.errors import UserError, guard, quieten
from corpora.triples import Triple, read_triples
from encoders.backbone import empty_backbone
from encoders.precision import best_device, resolve_precision
from training.cost import training_flops
from training.set_up import check_devices

OWN = {"batch": 64, "rounds": 5, "peer": True, "random": False, "profile": 12}
SIDES = {"cpu": 2048, "cuda": 8192}  # of the square matrices that the matrix rate is taken on
PRODUCTS = 8
OURS, PEER, DENSE, ENCODING, MATRICES = "training", "sentence-transformers", "dense limit", "encoding", "matrices"
Batch = Sequence[Triple]
Contestant = Callable[[Batch], float]  # does the work of a batch and returns how much that was: tokens or FLOPs
Rates = dict[str, list[float]]  # work a second, by contestant and round


def main() -> None:
    """Measure the cell that the words describe, and print it."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    quieten()
    words, own = arguments(sys.argv[1:])
    config = plain(composed("train", ["objective.hard_negatives=1", *words]))
    device = best_device(config["accelerator"])
    check_devices(1, device)
    if config["trainer"]["threads"]:
        torch.set_num_threads(config["trainer"]["threads"])
    with TemporaryDirectory() as folder:
        if own["random"]:
            random_base(config["model"], Path(folder), device)
            config["model"]["path"] = folder
        measure(config, own, device)


def random_base(model: Config, folder: Path, device: torch.device) -> None:
    """Save a base of the shape that `model.architecture` states, with random weights and the bundled tokenizer."""
    shape = empty_backbone(model, torch.bfloat16).config
    with device:
        AutoModel.from_config(shape, dtype=torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(HOME / "assets" / "tiny").save_pretrained(folder)


def measure(config: Config, own: Mapping[str, Any], device: torch.device) -> None:
    """Print what one cell reaches. own: values of `OWN`."""
    work = batches(config, own["batch"], own["rounds"] + 1)
    ours = OurStep(config)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    ours(work[0])
    peak = peak_memory(device)
    others: dict[str, Step] = {PEER: PeerStep(config)} if own["peer"] else {}
    others[DENSE] = DenseStep(config)
    contestants: dict[str, Contestant] = {OURS: ours, **others, ENCODING: lambda batch: encode(ours, batch)}
    contestants[MATRICES] = lambda _: square_products(config, device)
    rates = in_turn(contestants, work)
    where = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU thread(s)"
    print(f"{config['model']['name']}, {config['pooler']['name']} x {config['attn']['name']} on {where}")
    print(f"{own['batch']} queries with a positive and a negative each; {own['rounds']} rounds; peak {peak}")
    kept = f"{kept_bytes(ours, work[0]) / 2**20:.2f} MiB a token are kept for the backward pass"
    print(f"{ours.setup.work.plan.token_budget:,} tokens a chunk; {kept}\n")
    print(report(rates, flops_a_token(ours, config, work[-1])))
    if own["profile"]:
        print(profile(ours, work[0], own["profile"], device))


def arguments(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the words of train.py, and the values of `OWN`. Raises `UserError` for a value of another kind."""
    own, rest = dict(OWN), []
    for word in words:
        key, _, value = word.partition("=")
        if key not in own:
            rest.append(word)
        elif key in ("peer", "random"):
            if value not in ("true", "false"):
                raise UserError(f"{word} must be true or false.")
            own[key] = value == "true"
        elif value.isdigit():
            own[key] = int(value)
        else:
            raise UserError(f"{word} must be a whole number.")
    return rest, own


def batches(config: Config, size: int, count: int) -> list[Batch]:
    """Return `count` batches of `size` triples with one hard negative each, drawn without replacement.

    No text occurs twice in a batch and none spells a special token, so every trainer computes the same loss.
    Raises `UserError` where the data holds too few.
    """
    pool = [t for t in read_triples(config["data"], config["cache_dir"]) if t.negatives]
    full, chosen, seen = list[Batch](), list[Triple](), set[str]()
    for i in np.random.default_rng(0).permutation(len(pool)):
        texts = set(texts_of([pool[i]]))
        if len(texts) == 3 and seen.isdisjoint(texts) and not any("<|" in text for text in texts):
            chosen.append(pool[i])
            seen |= texts
        if len(chosen) == size:
            full.append(chosen)
            chosen, seen = [], set()
        if len(full) == count:
            return full
    raise UserError(f"The data holds {len(full)} batches of {size}, not {count}. Lower batch or rounds.")


def in_turn(contestants: Mapping[str, Contestant], work: Sequence[Batch]) -> Rates:
    """Give every batch to every contestant, each round starting with another one; the first goes untimed."""
    names = list(contestants)
    rates: Rates = {name: [] for name in names}
    for number, batch in enumerate(work):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            gc.collect()
            start = time.perf_counter()
            done = contestants[name](batch)
            if number:
                rates[name].append(done / (time.perf_counter() - start))
    return rates


def encode(ours: OurStep, batch: Batch) -> int:
    """Encode the texts of a batch as evaluation does, to float32 vectors on the CPU; return the real tokens."""
    encoder, texts = ours.setup.text_encoder(), texts_of(batch)
    ours.module.eval()
    encoder.encode(texts)
    ours.module.train()
    return sum(map(len, encoder.tokenizer(texts)))


def square_products(config: Config, device: torch.device) -> float:
    """Multiply large square matrices in the format of the run's products; return the FLOPs."""
    side = SIDES[device.type]
    a = torch.randn(side, side, device=device, dtype=resolve_precision(config["precision"], device).compute)
    for _ in range(PRODUCTS):
        b = a @ a
    b[0, 0].item()  # waits for a GPU
    return 2.0 * PRODUCTS * side**3


def flops_a_token(ours: OurStep, config: Config, batch: Batch) -> dict[str, tuple[float, float]]:
    """Return the FLOPs of a real token in training and in encoding: all that is run, and each forward pass once."""
    (run, spared), flops = ours.run_tokens(batch), training_flops(config)
    return {OURS: (flops.of(run, spared) / run, flops.both), ENCODING: (flops.forward, flops.forward)}


def report(rates: Rates, flops: Mapping[str, tuple[float, float]]) -> str:
    """Return a Markdown table: tokens/s, the ratio of our training to it, and the share of the matrix rate.

    flops: of a token, all that is run and without the second pass of GradCache and checkpointing.
    """
    titles = ("what", "tokens/s", "training / this", "of matrix rate", "without second pass")
    lines = [f"| {' | '.join(titles)} |", "|---|--:|--:|--:|--:|"]
    for name in (name for name in rates if name != MATRICES):
        each = np.array(rates[name])
        ratio = "" if name in (OURS, ENCODING) else spread(np.array(rates[OURS]) / each, ".2f")
        shares = [spread(each * of_token / rates[MATRICES], ".2f") for of_token in flops.get(name, ())] or ["", ""]
        lines.append(f"| {name} | {spread(each, ',.0f')} | {ratio} | {' | '.join(shares)} |")
    return "\n".join([*lines, "", f"Matrix rate: {np.median(rates[MATRICES]) / 1e12:.3g} TFLOP/s."])


def spread(values: Any, form: str) -> str:
    """Return median, tenth and ninetieth percentile in words."""
    low, median, high = (format(value, form) for value in np.percentile(values, [10, 50, 90]))
    return f"{median} ({low} to {high})"


def kept_bytes(ours: OurStep, batch: Batch) -> float:
    """Return the bytes that autograd keeps of a token of the first chunk of a batch for the backward pass.

    Each storage counts once; parameters do not.
    """
    work, kept = ours.setup.work, dict[int, int]()
    rows = work.tokenizer.pairs(ours.laid_out(batch).texts)
    chunk = [rows[i] for i in work.chunks(rows)[0]]
    parameters = {p.untyped_storage().data_ptr() for p in work.encoder.parameters()}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = 0 if storage.data_ptr() in parameters else storage.nbytes()
        return tensor

    device = next(work.encoder.parameters()).device
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        vectors = work.encoder(work.tokenizer.batch(chunk).to(device))
    assert vectors.requires_grad  # and holds what is counted until here
    return sum(kept.values()) / sum(map(len, chunk))


def peak_memory(device: torch.device) -> str:
    """Return the largest allocation of the GPU, or the largest size of this process so far, in words."""
    if device.type == "cuda":
        return f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB on the GPU"
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB of the process"


def profile(step: Step, batch: Batch, rows: int, device: torch.device) -> str:
    """Return the operations of one step that take most time of their own."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else []
    with torch.profiler.profile(activities=kinds) as seen:
        step(batch)
    sort = f"self_{device.type}_time_total"
    table: str = seen.key_averages().table(sort_by=sort, row_limit=rows, max_name_column_width=40)
    return table


if __name__ == "__main__":
    guard(main)
