"""Hidden state (HS), routing weights (RW) and their sum of the same texts, from one forward pass, under any wording."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evaluation.candidates.readings import pooler_config
from representation.encoders_studied import Subject, decoders

if TYPE_CHECKING:
    from encoders.encoder import Readings
    from encoders.templates import Template
    from encoders.text_encoder import TextEncoder

Vectors = dict[str, NDArray[np.float32]]
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


def named_readings(alpha: float) -> dict[str, str]:
    """HS, RW and sum as published: last token, last layer, every router."""
    return {"HS": "moee:hidden", "RW": "moee:routing", "sum": f"moee:sum@{alpha:f}"}


def check_sizes(key: str, sizes: Any) -> None:
    """Raise `UserError` where `sizes` is no list of whole numbers of at least two."""
    from cli.errors import UserError

    if not isinstance(sizes, list) or not sizes or any(type(size) is not int or size < 2 for size in sizes):
        raise UserError(f"{key}={sizes} must be a list of whole numbers, at least 2 each: {key}=[8,32].")


def mixtures(subjects: Sequence[Subject]) -> list[Subject]:
    """Those whose decoder is a mixture of experts, each decoder once, whatever its starts' heads."""
    from encoders.backbone import load_config

    each = [
        replace(subject, label=own.label if len(own.seeds) == 1 else f"{own.label} seed={subject.seed}")
        for own in decoders(subjects)
        for subject in own.seeds
    ]

    def experts(subject: Subject) -> bool:
        shape = load_config(subject.config["model"]).get_text_config()
        return any(getattr(shape, key, None) for key in EXPERTS)

    return [subject for subject in each if experts(subject)]


def readings_of(subject: Subject, names: Mapping[str, str], **changed: Any) -> "Readings":
    """Return the readings `names` (name -> as in evaluate.py readings=) of a subject.

    changed: keys of their pooler's configuration. Raises `UserError` for routers that cannot be read.
    """
    from encoders.encoder import Reading, Readings
    from encoders.routers import experts_of
    from poolers.shared.registry import build_pooler

    encoder = subject.encoder().encoder
    experts, own = experts_of(encoder.backbone), encoder.pooler
    configs = {name: {**pooler_config(word, subject.config), **changed} for name, word in names.items()}
    built = {n: build_pooler(c, own.hidden_size, own.num_layers, subject.seed, experts) for n, c in configs.items()}
    device = subject.encoder().device
    return Readings(
        encoder, {name: Reading(p.to(device).eval(), configs[name]["normalize"]) for name, p in built.items()}
    )


def encode(readings: "Readings", encoder: "TextEncoder", texts: Sequence[str], asked: str) -> Vectors:
    """Return reading -> [N, E] float32 in the order of `texts`, which are distinct. asked: what the template said."""
    held: Vectors = {}
    for indices, part in encoder.run(texts, asked, lambda b: {n: v.cpu().numpy() for n, v in readings(b).items()}):
        for name, vectors in part.items():
            held.setdefault(name, np.empty((len(texts), vectors.shape[1]), np.float32))[indices] = vectors
    return held


def worded(encoder: "TextEncoder", template: "Template") -> "TextEncoder":
    """Return `encoder` under another template, which leaves a text the tokens that it has with no words round it.

    Within one max_length long prompts would cut more of the text than short ones, and prompts differ in what is read.
    Raises `UserError` where that is more than the decoder has positions.
    """
    from cli.errors import UserError
    from encoders.templates import TEXT_FIELD, pieces
    from encoders.text_encoder import TextEncoder
    from encoders.tokens import TextTokenizer

    own = encoder.tokenizer
    words = [part for part in pieces(template.query.bare) if part != TEXT_FIELD]
    ids = [own.tokenizer(w, add_special_tokens=False, split_special_tokens=True)["input_ids"] for w in words]
    added = sum(map(len, ids))
    length = own.max_length - own.template.eos + template.eos + added
    positions = encoder.encoder.backbone.config.get_text_config().max_position_embeddings
    if length > positions:
        raise UserError(
            f"The prompt {template.name} adds {added} tokens to max_length={own.max_length}, which is more than the "
            f"{positions} positions of this decoder. Lower max_length."
        )
    tokenizer = TextTokenizer(own.tokenizer, length, own.padding_side, template)
    return TextEncoder(encoder.encoder, tokenizer, f"{encoder.fingerprint} {template.name}", encoder.token_budget)
