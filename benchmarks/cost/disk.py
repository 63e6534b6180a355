"""What scoring embeds, and what the study takes on disk."""

from benchmarks.cost.inputs import PAPER, Inputs, Scored
from benchmarks.cost.study import base_config, training_work
from benchmarks.gpu_card.model import MODELS
from benchmarks.page import table
from training.cost.check import empty_encoder

GIB = 2**30
PARAMETERS_IN_A_CHECKPOINT = 3  # each trained parameter and AdamW's two moments
FLOAT32, BF16 = 4, 2  # bytes
LARGEST = 6  # corpora that are named


def scored_text(scored: Scored) -> str:
    """Texts and tokens by type of task."""
    rows = [
        [kind, f"{texts:,}", f"{tokens / 1e6:,.1f}", f"{tokens / scored.tokens:.1%}"]
        for kind, (texts, tokens) in sorted(scored.by_type.items(), key=lambda item: -item[1][1])
    ]
    rows.append([f"**all {scored.tasks} tasks**", f"{scored.texts:,}", f"{scored.tokens / 1e6:,.1f}", "100%"])
    sizes: dict[str, int] = {}
    for volume in scored.volumes:
        sizes[volume.task] = sizes.get(volume.task, 0) + volume.texts
    names = sorted(sizes, key=lambda name: -sizes[name])[:LARGEST]
    share = sum(sizes[name] for name in names) / scored.texts
    return f"""{table([PAPER, "distinct texts", "M tokens, at most", "of tokens"], rows)}

{", ".join(names)} have {share:.0%} of the texts. Texts that two tasks share are counted twice."""


def disk_text(inputs: Inputs) -> str:
    """Gibibytes of weights, checkpoints, vectors and states."""
    scored = inputs.sets[PAPER]
    rows = []
    for model in MODELS:
        config = base_config(model)
        encoder = empty_encoder(config)
        shape = encoder.backbone.config.get_text_config()
        trained = sum(p.numel() * p.element_size() for p in encoder.parameters() if p.requires_grad)
        base = sum(p.numel() * p.element_size() for p in encoder.parameters() if not p.requires_grad)
        head = sum(p.numel() * p.element_size() for p in encoder.pooler.parameters())
        vectors = scored.texts * encoder.pooler.embedding_dim * FLOAT32
        states = training_work(config).tokens * shape.num_hidden_layers * shape.hidden_size * BF16
        sizes = [base, trained - head, head, PARAMETERS_IN_A_CHECKPOINT * trained, vectors, states]
        rows.append([model, *(f"{size / GIB:,.2f}" for size in sizes)])
    text = sum(v.texts * v.characters for v in scored.volumes)
    columns = ["GiB", "base, once", "adapter, a run", "head, a run (m2 to m5)", "checkpoint while it trains"]
    columns += [f"all vectors of {PAPER}, a run", "states of all training tokens"]
    return f"""{table(columns, rows)}

A finished run keeps adapter and head; its checkpoint goes. Vectors (float32) are of use only to resume a scoring. The
texts of {PAPER} are about {text / GIB:,.0f} GiB of characters, once. States: the cache of `backbone.frozen=true`
for the whole recipe, which at these sizes does not pay."""
