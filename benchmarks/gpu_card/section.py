"""The section "On a GPU" of docs/tables/performance.md, made from the records."""

from itertools import product

from benchmarks.gpu_card.figures import Record, figures
from benchmarks.page import publish, table
from benchmarks.rounds import ratio

GIB = 2**30
COMMAND = "`python -m benchmarks.gpu_card.gpu` on the GPU, then `python -m benchmarks.gpu_card.gpu --write`"
NOT_MEASURED = f"""Not measured: no GPU was at hand. {COMMAND}
fill this section in; the first takes eight minutes. The code path is tested on a CPU (tests/benchmarks/test_gpu.py).
docs/tables/cost.md computes with assumed rates until then."""
HOW = """Random weights in the published shapes (conf/model), bf16, LoRA r 16 with dropout on all linear layers,
heads as `head=paper` has them, float32. Lengths: those of the docstring triples ({mix}). A turn of training is a
share of the chunks of a batch of {queries:,} queries with a positive and a hard negative each ({texts:,} texts,
{tokens:,} tokens): every k-th chunk in order of length, so that the composition is that of all; GradCache's time is
proportional to the chunks, and its memory is that of one. The loss is over the whole batch; clipping and AdamW are in
it; nothing is tokenised. Encoding is `TextEncoder.encode`, LoRA apart. Tokens are real ones.

* Of matrix rate: FLOPs that the real tokens need (in training GradCache's second forward pass is among them) over what
  8192 x 8192 bf16 products reach in the same round; causal attention counts as full.
* Of own formats: the time of all products, each at the measured rate of its own number format (the head's are
  float32), over the time taken. Once: as of matrix rate, without the second forward pass.
* Peak: the largest allocation, in brackets what was there before (weights and head).
* Medians over rounds in turn in one process, tenth and ninetieth percentile in brackets."""
PLAINER = {"pooler": "eos", "attn": "causal", "execution": "padded", "tf32": False}  # of two cells that are compared
HEAD = ["cell", "tokens/s", "texts/s", "of matrix rate", "of own formats", "once", "peak GiB", "token budget"]


def write_section(records: list[Record]) -> None:
    """Put the section into the page; it says that nothing was measured where there are no records at full size."""
    full = [r for r in records if not r["small"]]
    parts = [explained(full[0]), *map(described, full)] if full else [NOT_MEASURED]
    publish("gpu", "On a GPU, at the published sizes", parts, write=True)


def explained(record: Record) -> str:
    """The measurements and their settings."""
    batch = record["batch"]
    return HOW.format(mix=f"mean {batch['tokens'] / batch['texts']:.0f}, at most {record['max_length']}", **batch)


def described(record: Record) -> str:
    """One heat as Markdown: on what, then the cells and their ratios."""
    rates = record["rates"]
    speeds = ", ".join(f"{name} {max(rates[name]) / 1e12:.3g}" for name in ("bf16", "tf32", "fp32"))
    places = sum(record["places_a_token"]) / len(record["places_a_token"])
    head = (
        f"### {record['model']}, {record['part']}\n\n{record['date']}, {record['device']}, commit "
        f"{(record['code']['commit'] or 'unknown')[:7]}, torch {record['versions']['torch']}, transformers "
        f"{record['versions']['transformers']}; {len(rates['bf16'])} rounds of about {record['tokens']:,} tokens. "
        f"Matrix products, best of the rounds: {speeds} TFLOP/s. Padded execution has {places:.2f} places per token."
    )
    compared = table(["this", "compared with", "this / compared"], ratios(record))
    return "\n\n".join([head, table(HEAD, [_line(record, name) for name in record["cells"]]), compared])


def _line(record: Record, name: str) -> list[str]:
    cell, measured = record["cells"][name], figures(record, name)
    peak, budget = "not measured", f"{cell['token_budget']:,}"
    if cell["peak_bytes"] is not None:
        peak = f"{cell['peak_bytes'] / GIB:.1f} ({(cell['held_bytes'] or 0) / GIB:.1f})"
    if cell["token_budget"] < record["token_budget"]:
        budget += f" (out of memory at {2 * cell['token_budget']:,})"
    if measured is None:
        return [name, "out of memory", "", "", "", "", peak, f"none down to {budget}"]
    spreads = (measured.of_bf16, measured.of_limit, measured.once)
    shares = [f"**{s.median:.1%}** ({s.low:.1%} to {s.high:.1%})" if s else "" for s in spreads]
    return [name, f"{measured.tokens.median:,.0f}", f"{measured.texts.median:,.0f}", *shares, peak, budget]


def ratios(record: Record) -> list[list[str]]:
    """Lines (this, compared with, ratio of tokens/s): execution, attention, pooler and TF32, one changed at a time."""
    ran = {name: cell for name, cell in record["cells"].items() if all(record["rates"][name])}
    lines = []
    for (this, cell), (other, against) in product(ran.items(), repeat=2):
        changed = [key for key in PLAINER if cell[key] != against[key]]
        if len(changed) == 1 and against[changed[0]] == PLAINER[changed[0]]:
            lines.append([this, other, str(ratio(record["rates"], this, other))])
    return lines
