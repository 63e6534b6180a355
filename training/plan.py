"""`plan=true`: what a run will take, counted on its own texts without weights, and the time at rates measured here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.errors import UserError
from encoders.attention.kernels import kernel_of
from encoders.backbone import shape_of
from encoders.loading import build_tokenizer
from encoders.precision import best_device, resolve_precision
from poolers.shared.registry import reads_padding
from records.rates import read_rates, remember_rate
from training.checks import check_instructed
from training.cost.check import GIB, empty_encoder, facts, memory
from training.cost.flops import Work, training_flops
from training.large_batch import ChunkPlan, LargeBatch
from training.mix_order import order_of
from training.objectives.objective import Objective, objective_class
from training.set_up import SetUp

Config = dict[str, Any]
SAMPLE = 16  # steps, evenly spaced, whose texts are tokenised
ENOUGH = 5.0  # seconds of steps below which no rate is learned
FILE = "training_rates.json"  # in the cache
TERA = 1e12


@dataclass(frozen=True)
class Forecast:
    """A run foreseen. memory_bytes: of the tensors that a process keeps over a step.

    seconds: of all steps, None where no rate was measured here.
    disk_bytes: of the finished run, and while its last checkpoint is there.
    """

    tokens: int
    flops: float
    seconds: float | None
    memory_bytes: int
    disk_bytes: tuple[int, int]
    how: str


def plan(config: Config) -> None:
    """Print what the run of `config` takes. Raises `UserError` for an objective whose steps are not counted."""
    f = forecast(config)
    t = config["trainer"]
    devices = t["devices"] * t["num_nodes"]
    hours, (final, most) = (f.seconds or 0) / 3600, f.disk_bytes
    spent = "unknown" if f.seconds is None else f"{hours:.2f} h, {hours * devices:.2f} device hours"
    whose = "GPU" if best_device(config["accelerator"]).type == "cuda" else "process; Python and libraries take more"
    lines = {
        "tokens": f"{f.tokens:,} in {t['max_steps']:,} steps, by {min(SAMPLE, t['max_steps'])} of them",
        "FLOPs": f"{f.flops:.3g}",
        "time": f"{spent} on {devices} device{'s' * (devices > 1)} ({f.how})",
        "memory": f"{f.memory_bytes / GIB:.2f} GiB of tensors per {whose}",
        "disk": f"{final / 2**20:,.0f} MiB, {most / 2**20:,.0f} MiB with the checkpoint while it trains",
    }
    print("\n".join(f"{name:<12}{text}" for name, text in lines.items()))


def forecast(config: Config) -> Forecast:
    """Lay out some steps of the run as it would, on an encoder without memory, and count them."""
    kind, t = objective_class(config["objective"]["name"]), config["trainer"]
    if not (issubclass(kind, Objective) and kind.contrastive):
        name = config["objective"]["name"]
        raise UserError(f"plan=true counts contrastive runs, not objective={name}. Give check=true.")
    examples = kind.read(config["data"], config["cache_dir"])
    check_instructed(config, examples)
    kept, held_out = kind.split(examples, config)
    device = best_device(config["accelerator"])
    precision, shape = resolve_precision(config["precision"], device), shape_of(config["model"])
    encoder = empty_encoder(config)
    encoder.backbone.config._attn_implementation = kernel_of(config["model"], shape, reads_padding(config["pooler"]))
    tokenizer = build_tokenizer(config, shape.max_position_embeddings)
    chunks = ChunkPlan(config["token_budget"], t["chunk_size"], t["gradcache"], t["sync_gradients"], t["graph_tokens"])
    work = LargeBatch(encoder, tokenizer, chunks, config["seed"])
    objective = kind(SetUp(config, encoder, tokenizer, work, None, precision), kept, held_out)
    order, steps = order_of(config, objective.examples), t["max_steps"]
    some = sorted({round(k * (steps - 1) / max(1, SAMPLE - 1)) for k in range(SAMPLE)})
    run, spared, tokens, most = Work(), Work(), 0, 0
    for step in some:
        _, rows = objective.lay_out(order.batch(step), step)
        of_step, once = work.work(rows)
        run, spared, tokens = run.plus(of_step), spared.plus(once), tokens + sum(map(len, rows))
        most = max(most, sum(map(sum, of_step)))
    flops = training_flops(config).of(run, spared) * steps / len(some)
    rate, how = rate_of(config, device.type)
    f = facts(config)
    fixed, kept_bytes = memory(config, f, most)
    final = f.trained_bytes
    moments = 3 * f.trained_bytes + (2 * f.trained_bytes if t["average"] else 0)  # a mean is summed in float64
    return Forecast(
        round(tokens * steps / len(some)),
        flops,
        flops / rate if rate else None,
        fixed + kept_bytes,
        (final, max(final, moments) if t["checkpoint_every"] else final),
        how,
    )


def rate_of(config: Config, device: str) -> tuple[float | None, str]:
    """Return FLOPs a second of all devices, as last measured here with this model and setting, and a word on it.

    Where so many devices were never measured: as many times the rate of one.
    """
    t = config["trainer"]
    devices, rates = t["devices"] * t["num_nodes"], read_rates(Path(config["cache_dir"]) / FILE)
    for count in dict.fromkeys((devices, 1)):
        measured = rates.get(_key(config, device, count))
        if measured:
            rate, times = measured["flops_per_second"], devices // count
            further = f", times {times}" if times > 1 else ""
            return rate * times, f"{rate / TERA:.3g} TFLOP/s as measured here on {measured['date']}{further}"
    return None, "no rate was measured here: any run of a few steps does it, trainer.max_steps=5 study=rate"


def remember(config: Config, device: str, flops: float | None, seconds: float) -> None:
    """Keep the rate of a run for later plans, where it trained long enough."""
    if not flops or seconds < ENOUGH:
        return
    key = _key(config, device, config["trainer"]["devices"] * config["trainer"]["num_nodes"])
    remember_rate(Path(config["cache_dir"]) / FILE, key, flops_per_second=round(flops / seconds))


def _key(config: Config, device: str, devices: int) -> str:
    t, model = config["trainer"], config["model"]
    how = config["precision"], device, t["threads"], t["shard_base"]
    values = (model["path"], model.get("quantise"), *how, config["pooler"]["name"])
    return " ".join(map(str, (*values, config["token_budget"], t["gradient_checkpointing"], devices)))
