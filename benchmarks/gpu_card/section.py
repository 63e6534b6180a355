"""The section "On a GPU" of docs/tables/performance.md, made from the records."""

from typing import Any

from benchmarks.gpu_card.figures import Record, figures
from benchmarks.gpu_card.model import Cell
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
HEAD = ["cell", "tokens/s", "texts/s", "of matrix rate", "of own formats", "once", "peak GiB", "token budget"]


def write_section(records: list[Record]) -> None:
    """Put the section into the page; it says that nothing was measured where there are no records at full size."""
    full = [r for r in records if not r["small"]]
    body = "\n\n".join([explained(full[0]), *map(described, full)]) if full else NOT_MEASURED
    publish("gpu", "On a GPU, at the published sizes", body, write=True)


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
        f"Matrix products, best of the rounds: {speeds} TFLOP/s. Padded execution has {places:.2f} places a token."
    )
    compared = table(["this", "compared with", "this / compared"], ratios(record))
    return "\n\n".join([head, table(HEAD, [_line(record, name) for name in record["cells"]]), compared])


def _line(record: Record, name: str) -> list[str]:
    cell, found = record["cells"][name], figures(record, name)
    budget = f"{cell['token_budget']:,}"
    if cell["token_budget"] < record["token_budget"]:
        budget += f" (out of memory at {2 * cell['token_budget']:,})"
    if found is None:
        return [name, "out of memory", "", "", "", "", _peak(cell), f"none down to {budget}"]
    shares = [_share(s) for s in (found.of_bf16, found.of_limit, found.once)]
    return [name, f"{found.tokens.median:,.0f}", f"{found.texts.median:,.0f}", *shares, _peak(cell), budget]


def _share(spread: Any) -> str:
    if spread is None:
        return ""
    return f"**{spread.median:.1%}** ({spread.low:.1%} to {spread.high:.1%})"


def _peak(cell: dict[str, Any]) -> str:
    if cell["peak_bytes"] is None:
        return "not measured"
    return f"{cell['peak_bytes'] / GIB:.1f} ({(cell['held_bytes'] or 0) / GIB:.1f})"


def ratios(record: Record) -> list[list[str]]:
    """Lines (this, compared with, ratio of tokens/s): execution, attention, pooler and TF32, one changed at a time."""
    keys = ("pooler", "attn", "execution", "tf32")
    cells = {name: Cell(*(cell[key] for key in keys)) for name, cell in record["cells"].items()}
    ran = [name for name in cells if all(record["rates"][name])]
    lines = []
    for this in ran:
        for other in ran:
            if _is_pair(cells[this], cells[other]):
                lines.append([this, other, str(ratio(record["rates"], this, other))])
    return lines


def _is_pair(this: Cell, other: Cell) -> bool:
    """Return whether they differ in one thing, and `other` has the plainer value of it."""
    changed = [
        (this.execution, other.execution) == ("unpadded", "padded"),
        (this.attn, other.attn) == ("bi", "causal"),
        this.pooler != "eos" and other.pooler == "eos",
        this.tf32 and not other.tf32,
    ]
    same = [
        this.execution == other.execution,
        this.attn == other.attn,
        this.pooler == other.pooler,
        this.tf32 == other.tf32,
    ]
    return sum(changed) == 1 and all(c or s for c, s in zip(changed, same, strict=True))
