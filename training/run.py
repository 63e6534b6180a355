"""A run from its configuration to its folder and its manifest: the steps in order, the same for every objective."""

import gc
import resource
import sys
from collections import Counter
from contextlib import nullcontext
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.utilities import rank_zero_only

from cli.errors import UserError, quieten
from corpora.copies import keep_texts
from corpora.mix import facts
from corpora.triples import Triple, described
from encoders.compiled import elementwise
from encoders.identity import base_fingerprints, base_revision, instruction_sets
from encoders.precision import Precision, best_device
from encoders.text_encoder import usual_budget
from records.files import alone_in, of_file, stream_seed
from records.manifest import code, environment, read_manifest, write_manifest
from records.run_folder import START
from training.batches import order_of
from training.budget import choose
from training.checks import check_compared, check_examples, check_sizes, continued, is_finished, refuse_changed
from training.cost import check, parameters, training_flops
from training.loop import LAST, fit
from training.module import StepModule
from training.objectives.objective import objective_class
from training.set_up import SetUp, fit_statistics, sample, save_trained, set_up
from training.validation import SHOWN, HeldOut

Config = dict[str, Any]
THREADS = torch.get_num_threads()  # as the process started, before a job of a sweep sets its own
MANY = 0.2  # of the texts: from there on that they are cut is a warning


def run(config: Config, folder: Path) -> None:
    """Train into `folder` unless it says that the run is finished; check=true only counts it.

    config: conf/train.yaml as composed and resolved. An interrupted run continues. Raises `UserError`.
    """
    if not config["check"] and finished(config, folder):
        print(f"{folder} is finished; nothing to do.")
        return
    begin(config)
    if config["check"]:
        check(config)
    else:
        train_run(config, folder)


def finished(config: Config, folder: Path) -> bool:
    """Tell whether `folder` holds this run, finished. Raises `UserError` for another run, data, base or stages."""
    if not is_finished(folder, config):
        return False
    examples = objective_class(config["objective"]["name"]).read(config["data"], config["cache_dir"])
    refuse_changed(config, folder, examples)
    keep_texts(read_manifest(folder)["data"], config["cache_dir"], examples)  # the cache may have been deleted
    (folder / LAST).unlink(missing_ok=True)  # a kill may have come between the last manifest and this
    return True


def begin(config: Config) -> None:
    """Refuse what cannot be, silence the libraries, and set the number of threads."""
    check_sizes(config)
    if not config["check"]:
        best_device(config["accelerator"])  # a GPU that is not there is missed before the data are read
    quieten()
    threads, devices = config["trainer"]["threads"], config["trainer"]["devices"]
    torch.set_num_threads(threads or max(1, THREADS // devices))


def train_run(config: Config, folder: Path) -> None:
    """Train into `folder`; continue where an earlier attempt was interrupted. One process at a time does."""
    first = rank_zero_only.rank == 0  # type: ignore[attr-defined]  # of several processes, one writes
    with alone_in(folder) if first else nullcontext():
        try:
            _train(config, folder, first)
        except RuntimeError as error:
            if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                raise
            fault = f"torch.compile fails on this machine ({str(error).splitlines()[0]})"
            raise UserError(f"{fault}. Give compile=never, which is torch's own operators.") from error
        finally:
            gc.collect()  # modules refer to themselves, and the next job of a sweep needs their memory on the GPU


def build(config: Config, folder: Path) -> tuple[StepModule, list[Triple], SetUp]:
    """Return the steps of a run before the first one, its examples and encoder. folder: the run's, for messages."""
    kind = objective_class(config["objective"]["name"])
    examples = kind.read(config["data"], config["cache_dir"])
    kept, held_out = kind.split(examples, config)
    check_examples(config, kept)
    setup = set_up(config, str(folder))
    encoder = setup.encoder
    kind.check_width(config["objective"], encoder.pooler.embedding_dim)
    if encoder.pooler.lacks_statistics:
        fit_statistics(encoder, setup.tokenizer, sample(config, kept, setup.tokenizer), usual_budget(config))
    objective = kind(setup, kept, held_out)
    order = order_of(config, objective.examples)
    return StepModule(objective, order, in_steps(config, order.steps_per_epoch)), examples, setup


def in_steps(config: Config, epoch: int) -> Config:
    """Return `config` with a number of steps where it says one epoch, and with warm-up in steps where it is a share."""
    steps = epoch if config["trainer"]["max_steps"] is None else config["trainer"]["max_steps"]
    warmup = config["objective"]["warmup"]
    warmup = round(warmup * steps) if 0 < warmup < 1 else warmup
    trainer, objective = {**config["trainer"], "max_steps": steps}, {**config["objective"], "warmup": warmup}
    return {**config, "trainer": trainer, "objective": objective}


def _train(config: Config, folder: Path, first: bool) -> None:
    module, examples, setup = build(config, folder)
    encoder, objective, kind, t = setup.encoder, module.objective, type(module.objective), module.cfg["trainer"]
    assert encoder.training, "dropout would be off"
    check_compared(module)
    objective.held_out_rows()  # a held-out text that finds no room is refused before the first step
    manifest = opening_manifest(config, module, examples, setup.precision)
    if config["resume"] and (folder / LAST).exists():
        manifest = continued(manifest, read_manifest(folder))  # its checkpoint says the tokens of a forward pass
    else:
        objective.work.resize(choose(module, folder))
    if first:
        if not config["resume"]:  # or the next command would go on from what this one shall replace
            (folder / LAST).unlink(missing_ok=True)
        write_manifest(folder, manifest)
        print(announcement(folder, module, manifest), flush=True)
    # what other runs give it: evaluate.py untrained=also reads it there, wherever they lie by then
    files = save_trained(encoder, setup.adapted, folder / START) if first and encoder.start else []
    states = {"states": fill_states(module)} if config["backbone"]["frozen"] else {}
    before = objective.held_out_scores() if kind.scored_before else {}  # LoRA is as it started, also on continuing
    held_out = HeldOut(objective.held_out_scores, t["validate_every"])
    if t["max_steps"]:  # none: the runs of init.lora as they are combined
        fit(module.cfg, module, [held_out], folder, held_out.complete)
    if not first:
        return
    files = [f"{START}/{name}" for name in files]
    files += save_trained(encoder, setup.adapted, folder)  # before all that may fail
    keep_texts(manifest["data"], config["cache_dir"], examples)
    unmoved = {} if t["max_steps"] else before
    after = held_out.last or unmoved or objective.held_out_scores()
    files += objective.write_held_out(folder, after)
    steps = step_facts(module)
    closing = {
        **steps,
        **objective.facts(steps),
        **({"held_out": {"before": before, "after": after}} if kind.scored_before else {}),
        "files": {name: of_file(folder / name) for name in files},
    }
    write_manifest(folder, {**manifest, **closing, **states, "status": "finished"})
    (folder / LAST).unlink(missing_ok=True)
    shown = list(after)[:SHOWN]
    scores = ", ".join(f"{k} {f'{before[k]:.3f} -> ' if k in before else ''}{after[k]:.3f}" for k in shown)
    loss = f"loss {closing['loss']:.3f}" if t["max_steps"] else "no step"
    print(f"{folder}: {loss}; held-out {scores}")


def fill_states(module: StepModule) -> Config:
    """Compute the states that the cache lacks of the rows of all steps, by shards; return facts for the manifest."""
    from encoders.frozen import CachedEncoder, compute_states

    encoder, work = module.encoder, module.objective.work
    assert isinstance(encoder, CachedEncoder)
    steps = (module.prepared(step)[2] for step in range(module.cfg["trainer"]["max_steps"]))
    rows = chain(module.objective.held_out_rows(), chain.from_iterable(steps))
    limit = module.cfg["backbone"]["state_limit"]
    return compute_states(encoder, work.tokenizer, rows, work.plan.token_budget, limit)


def opening_manifest(config: Config, module: StepModule, triples: list[Triple], precision: Precision) -> Config:
    """Return the facts that are known before the first step."""
    data = described(triples)
    data[module.objective.unit] = data.pop("triples")
    never = set(module.order.never)
    trained_on = [example for i, example in enumerate(module.objective.examples) if i not in never]
    data["trained_on"] = len(trained_on)
    if "mix" in config["data"]:
        data["of_source"] = facts(config["data"], triples, trained_on)
    encoder, device, lengths = module.encoder, next(module.encoder.parameters()).device, first_lengths(module)
    return {
        "study": config["study"],
        "pooler": config["pooler"]["name"],
        "attn": config["attn"]["name"],
        "seed": config["seed"],
        "status": "running",
        "config": config,
        "data": data,
        **base_fingerprints(config["model"]),
        **base_revision(config["model"]),
        **({"merged": encoder.merged} if encoder.merged else {}),
        **encoder.start,
        "precision": precision.name,
        "dtypes": {
            "weights": str(precision.weights).removeprefix("torch."),
            "compute": str(precision.compute).removeprefix("torch."),
            "head": "float32",
        },
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "kernel": encoder.backbone.config._attn_implementation,
        "elementwise": elementwise(encoder.backbone),
        "parameters": parameters(encoder),
        "seeds": {name: stream_seed(config["seed"], name) for name in ("data", "dropout", "adapter", "head")},
        "texts_cut": sum(n > module.cfg["max_length"] for n in lengths) / len(lengths) if lengths else None,
        "threads": torch.get_num_threads(),
        **environment(instruction_sets=instruction_sets()),
        "code": code(config["pooler"]["name"]),
    }


def announcement(folder: Path, module: StepModule, manifest: Config) -> str:
    """Return what is about to be trained, for the screen: steps, then tokens. The time follows when it is measured."""
    trainer, objective, sizes = module.cfg["trainer"], module.objective, manifest["parameters"]
    small = Counter(objective.examples[i].source for i in module.order.never).most_common()
    listed = ", ".join(f"{name} {count}" for name, count in small[:8]) + ", ..." * (len(small) > 8)
    never = f" (never, of sources smaller than a batch: {listed})" if small else ""
    text = (
        f"{folder}: {trainer['max_steps']:,} steps of {trainer['global_batch_size']} {objective.unit} from "
        f"{manifest['data']['trained_on']:,}{never}; {sizes['adapter']:,} adapter and {sizes['head']:,} head "
        "parameters train."
    )
    warmup, share, length = module.cfg["objective"]["warmup"], manifest["texts_cut"], module.cfg["max_length"]
    key = "text_length" if length == module.cfg.get("text_length") else "max_length"
    if warmup > module.warmup:
        text += f" objective.warmup={warmup} is longer than the run, and cut to its {module.warmup} steps."
    if share is not None:
        tokens, many = sum(min(n, length) for n in first_lengths(module)), share > MANY
        text += f"\nAbout {tokens * trainer['max_steps']:,} tokens, {tokens:,} in the first step. "
        text += f"{'warning: ' * many}{key}={length} cuts {share:.0%} of the texts of that step{'; raise it' * many}."
    return text


def first_lengths(module: StepModule) -> list[int]:
    """Return how many tokens each text of the first step has, before max_length cuts it; [] without a step."""
    if not module.cfg["trainer"]["max_steps"]:
        return []
    work = module.objective.work
    usual, work.tokenizer = work.tokenizer, copy(work.tokenizer)
    work.tokenizer.max_length = sys.maxsize
    rows = module.prepared(0)[2]
    work.tokenizer = usual
    return list(map(len, rows))


def step_facts(module: StepModule) -> Config:
    """Return the facts of the steps. Tokens, FLOPs and seconds are those of all attempts together."""
    return {
        "batch_order_sha256": module.batch_order_sha256,
        "steps": module.cfg["trainer"]["max_steps"],
        "token_budget": module.objective.work.plan.token_budget,
        "tokens": module.tokens,
        "flops": _counted(module),
        "seconds": round(module.seconds, 2),
        "tokens_per_second": round(module.tokens / module.seconds, 1) if module.seconds else None,
        "peak_memory_bytes": peak_memory(next(module.encoder.parameters()).device),
        "loss": sum(module.recent_losses) / len(module.recent_losses) if module.recent_losses else None,
    }


def _counted(module: StepModule) -> int | None:
    """FLOPs of the steps; null where counting fails: what was trained is worth more than its count."""
    try:
        return round(training_flops(module.cfg).of(module.tokens_run, module.tokens_spared)) if module.tokens_run else 0
    except Exception:  # an operator without a shape-only form, no memory for the probes, ...
        return None


def peak_memory(device: torch.device) -> int:
    """Most memory that training held: the GPU's tensors, else this process with Python and libraries."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # bytes there, KiB here
