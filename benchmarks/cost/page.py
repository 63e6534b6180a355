"""docs/tables/cost.md: what is assumed, and the five cells on both bases in GPU hours. All figures are computed."""

from collections import Counter
from collections.abc import Iterable
from datetime import date
from itertools import product
from typing import Any

from torch import nn

from benchmarks.cost import study
from benchmarks.gpu_card.model import MODELS
from benchmarks.page import table
from records.manifest import code
from training.cost.check import empty_encoder
from training.cost.flops import Work

TERA, PETA = 1e12, 1e15
PARTS_OF_ONE = {2: "half", 3: "third", 4: "quarter", 8: "eighth"}
HEAD = ["base", "cell", "training, PFLOP", "scoring, PFLOP", "of them the head", "training, GPU h", "scoring, GPU h"]
HEAD += ["together", "together, head in float32"]
GIB = 2**30
PARAMETERS_IN_A_CHECKPOINT = 3  # each trained parameter and AdamW's two moments
FLOAT32, BF16 = 4, 2  # bytes
LARGEST = 6  # corpora that are named
SHOWN = ("m1", "m2", "m5")  # cells with coefficients of their own; those of m3 and m4 are nearly m5's and m2's
FORMULA = """
    GPU seconds of a cell = training FLOPs / speed + scoring FLOPs / speed
    training FLOPs = texts (B_text + F_text) + tokens (B_token + F_token) + squares (B_square + F_square)
    scoring FLOPs  = texts F_text + tokens F_token + squares F_square
    texts of training = steps x queries x (2 + hard negatives);  squares: the sum over texts of length^2
    speed = utilisation x matrix rate: of bf16 for the FLOPs of m1, of TF32 for what another cell adds to them

F: forward, B: forward and backward. GradCache runs F once more. What a chunk costs once is left out here."""


def scored_text(scored: study.Scored) -> str:
    """Texts and tokens by type of task."""
    rows = [
        [kind, f"{texts:,}", f"{tokens / 1e6:,.1f}", f"{tokens / scored.tokens:.1%}"]
        for kind, (texts, tokens) in sorted(scored.by_type.items(), key=lambda item: -item[1][1])
    ]
    rows.append([f"**all {scored.tasks} tasks**", f"{scored.texts:,}", f"{scored.tokens / 1e6:,.1f}", "100%"])
    sizes = Counter[str]()
    for volume in scored.volumes:
        sizes[volume.task] += volume.texts
    largest = dict(sizes.most_common(LARGEST))
    share = sum(largest.values()) / scored.texts
    return f"""{table([study.PAPER, "distinct texts", "M tokens, at most", "of tokens"], rows)}

{", ".join(largest)} have {share:.0%} of the texts. Texts that two tasks share are counted twice."""


def disk_text(inputs: study.Inputs) -> str:
    """Gibibytes of weights, checkpoints, vectors and states."""
    scored = inputs.sets[study.PAPER]
    rows = []
    for model in MODELS:
        config = study.base_config(model)
        encoder = empty_encoder(config)
        shape = encoder.backbone.config.get_text_config()
        trained = _bytes(p for p in encoder.parameters() if p.requires_grad)
        base, head = _bytes(encoder.parameters()) - trained, _bytes(encoder.pooler.parameters())
        vectors = scored.texts * encoder.pooler.embedding_dim * FLOAT32
        states = study.training_work(config).tokens * shape.num_hidden_layers * shape.hidden_size * BF16
        sizes = [base, trained - head, head, PARAMETERS_IN_A_CHECKPOINT * trained, vectors, states]
        rows.append([model, *(f"{size / GIB:,.2f}" for size in sizes)])
    text = sum(v.texts * v.characters for v in scored.volumes)
    columns = ["GiB", "base, once", "adapter, a run", "head, a run (m2 to m5)", "checkpoint while it trains"]
    columns += [f"all vectors of {study.PAPER}, a run", "states of all training tokens"]
    return f"""{table(columns, rows)}

A finished run keeps adapter and head; its checkpoint goes. Vectors (float32) are of use only to resume a scoring. The
texts of {study.PAPER} are about {text / GIB:,.0f} GiB of characters, once. States: the cache of `backbone.frozen=true`
for the whole recipe, which at these sizes does not pay."""


def _bytes(parameters: Iterable[nn.Parameter]) -> int:
    return sum(p.numel() * p.element_size() for p in parameters)


def page(inputs: study.Inputs) -> str:
    """The whole page."""
    commit = (code()["commit"] or "unknown")[:7]
    origin = f"Made by `python -m benchmarks.cost.cost --write` on {date.today()}, commit {commit}"
    parts = [
        "# What the published study costs",
        f"{origin}; not written by hand. {study.ASSUMED_SIGN}: rests on assumed rates.",
        basis_text(inputs),
        f"## The five cells on both bases\n\n{cells_text(inputs)}",
        f"## The heads\n\n{heads_text(inputs)}",
        f"## How it grows\n\n{growth_text(inputs)}",
        f"## What scoring embeds\n\n{scored_text(inputs.sets[study.PAPER])}",
        f"## On disk\n\n{disk_text(inputs)}",
    ]
    return "\n\n".join(parts) + "\n"


def basis_text(inputs: study.Inputs) -> str:
    """The counted and the assumed."""
    a, config = inputs.assumed, study.base_config(MODELS[0])
    t, work, paper = config["trainer"], study.training_work(config), study.PAPER
    negatives, asked = config["objective"]["hard_negatives"], config["evaluation"]["instructions"]
    documents = f"a positive and {negatives} hard negatives each" if negatives else "a positive each"
    bf16, fp32, tf32 = (f"{rate / TERA:,.0f}" for rate in (a.bf16, a.fp32, a.tf32))
    measured = any(not record["small"] for record in inputs.records)
    where = f", where there is {study.ASSUMED_SIGN}" if measured else " (no GPU was at hand)"
    return f"""* Training, `experiment=paper/<base>`: {t["max_steps"]:,} steps of {t["global_batch_size"]:,} queries
  with {documents}, at most {config["max_length"]} tokens, GradCache, no padding:
  {work.texts / 1e6:.2f} M texts, {work.tokens / 1e6:,.0f} M tokens. The published data set was not at hand: **its
  lengths are assumed to be those of the docstring triples** (benchmarks/gpu_card/lengths.json).
* Scoring, `benchmark="{paper}" instructions={asked}`: each distinct text once, by mteb's descriptive statistics, at
  {inputs.characters:g} characters a token (**assumed**: the embedded tokenizer's on docstrings).
* FLOPs by the closed form of `training/cost/flops.py`: the backbone's products in bf16, a trained head's in TF32, as
  `tf32: true` of the experiment allows.
* **Assumed, not measured**{where}: large products reach {bf16} TFLOP/s in bf16, {fp32} in float32, {tf32} in TF32, and
  a run gets {a.utilisation:.0%} of that. `python -m benchmarks.gpu_card.gpu` measures it; `--rate`, `--utilisation` and
  so on assume otherwise.
* Not in it: tokenising, mteb's own work (clustering, nearest neighbours, classifiers), loading."""


def cells_text(inputs: study.Inputs) -> str:
    """FLOPs and hours of each cell, of all five, of all ten."""
    rows: list[list[str]] = []
    sums = [study.Hours(0, True)] * 4
    for model in MODELS:
        of_base = [study.Hours(0, True)] * 4
        work = inputs.works(model)
        for cell, (pooler, attn) in study.CELLS.items():
            (training, scoring), full = (inputs.hours(model, cell, work, t) for t in (None, False))
            hours = [training, scoring, training + scoring, full[0] + full[1]]
            of_base = [a + b for a, b in zip(of_base, hours, strict=True)]
            flops = [study.needed(model, cell, part, work[part]) for part in study.PARTS]
            head = sum(f.head for f in flops) / sum(f.total for f in flops)
            peta = [f"{f.total / PETA:,.0f}" for f in flops]
            rows.append([model, f"{cell}: {pooler} x {attn}", *peta, f"{head:.0%}", *map(str, hours)])
        rows.append([model, "**all five**", "", "", "", *(f"**{h}**" for h in of_base)])
        sums = [a + b for a, b in zip(sums, of_base, strict=True)]
    rows.append(["**both**", "**all ten**", "", "", "", *(f"**{h}**" for h in sums)])
    part = PARTS_OF_ONE.get(inputs.gpus, f"{inputs.gpus}th")
    clock = f"""On {inputs.gpus} GPUs (`trainer.devices={inputs.gpus}`) training takes at best one {part} of its GPU
hours by the clock, {sums[0].hours / inputs.gpus:,.0f} h for all ten. `evaluate.py` uses one GPU a process: cells are
scored beside one another."""
    return f"{table(HEAD, rows)}\n\n{clock}"


def heads_text(inputs: study.Inputs) -> str:
    """The head's share of a cell's time."""
    a = inputs.assumed
    lines = []
    for model in MODELS:
        count, plain = study.coefficients(model, "m5").forward, study.coefficients(model, "m1").forward
        flops = study.needed(model, "m5", "training", inputs.works(model)["training"])
        full, seconds = (flops.seconds(a.bf16, rate) for rate in (a.fp32, a.tf32))
        lines.append(
            f"* {model}: {count.text / 1e9:,.0f} GFLOP a text and forward pass, as many as the backbone's for "
            f"{count.text / plain.token:,.1f} tokens. At the assumed rates that is "
            f"{1 - flops.backbone / a.bf16 / seconds:.1%} of the time of training m5 "
            f"({seconds / a.utilisation / study.HOUR:,.1f} GPU h) in TF32, "
            f"{1 - flops.backbone / a.bf16 / full:.1%} ({full / a.utilisation / study.HOUR:,.1f} GPU h) in float32."
        )
    text = f"""The paper's head runs an MLP on each of its queries for each text. Its products are of float32
numbers; the card's are taken to be {a.bf16 / a.fp32:.0f} times as slow there as in bf16, and
{a.bf16 / a.tf32:.0f} times in TF32."""
    end = """The experiments say `tf32: true`, so the hours above are with TF32; `tf32=false` in the command takes the
last column's. TF32 keeps ten bits of a mantissa, so that each factor of a product is off by up to 2^-11 of its size.
`benchmarks.gpu_card.gpu` measures both."""
    return "\n\n".join([text, "\n".join(lines), end])


def growth_text(inputs: study.Inputs) -> str:
    """Cases side by side, the formula, its coefficients."""
    large, rows, first = MODELS[1], list[list[str]](), list[float]()
    for name, model, work, how in _cases(inputs):
        by_cell = [inputs.hours(model, cell, work, **how) for cell in study.CELLS]
        hours = [sum(part.hours for part in parts) for parts in zip(*by_cell, strict=True)]
        hours.append(sum(hours))
        first = first or hours
        rows.append([name, *(f"{h:,.1f} (x {h / f:.2f})" for h, f in zip(hours, first, strict=True))])
    plain, headed = (sum(h.hours for h in inputs.hours(large, cell, inputs.works(large))) for cell in ("m1", "m5"))
    count, length = study.coefficients(large, "m1").forward, study.base_config(large)["max_length"]
    square = count.square * length / (count.token + count.square * length)
    cells = f"""Cells and seeds add up: one more on {large} costs {plain:,.1f} h without a trained head and
{headed:,.1f} h with one; three seeds of the five cells {3 * first[2]:,.0f} h. Hours are linear in data, and in length
but for attention's square, which at 512 tokens is {square:.1%} of the backbone's FLOPs. The head's cost
goes by texts, not by tokens."""
    head = ["five cells", "training, GPU h", "scoring, GPU h", "together"]
    return "\n\n".join([table(head, rows), cells, FORMULA.strip("\n"), _coefficients()])


def _cases(inputs: study.Inputs) -> list[tuple[str, str, dict[str, Work], dict[str, Any]]]:
    """(name, base, work, how it is counted); the first is what the others are compared with."""
    small, large = MODELS
    work = inputs.works(large)
    double = {**work, "training": study.times(work["training"], 2)}
    paper, newer = (inputs.sets[name].tasks for name in (study.PAPER, study.NEWER))
    return [
        (f"{large}, as published", large, work, {}),
        ("twice the steps", large, double, {}),
        ("training texts twice as long, cut at 512", large, inputs.works(large, longer=2.0), {}),
        ("all training texts of 512 tokens", large, inputs.works(large, full=True), {}),
        (f"{study.NEWER} ({newer} tasks) for {study.PAPER} ({paper})", large, inputs.works(large, study.NEWER), {}),
        ("without GradCache's second forward pass", large, work, {"once": True}),
        (f"{small} for {large}", small, inputs.works(small), {}),
    ]


def _coefficients() -> str:
    rows = []
    for model, cell in product(MODELS, SHOWN):
        count = study.coefficients(model, cell)
        figures = [f"{v:.3g}" for p in (count.forward, count.both) for v in (p.text, p.token, p.square)]
        rows.append([f"{model}, {cell}", *figures])
    return table(["FLOPs", "F_text", "F_token", "F_square", "B_text", "B_token", "B_square"], rows)
