"""Statistics of training texts for a pooler that standardises: at the start of a run, or where nothing is trained.

python -m training.corpus_statistics out=moee.safetensors model=tiny_moe pooler=moee token_choice.standardise=corpus
python evaluate.py run=null model=tiny_moe pooler=moee token_choice.standardise=corpus
    pooler.statistics=moee.safetensors
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from cli.compose import composed, plain
from cli.errors import UserError, guard
from corpora.readers import read_triples
from corpora.triples import Triple
from encoders.attention.switch import is_unpadded
from encoders.chunking import by_token_budget
from encoders.encoder import Encoder
from encoders.loading import build_encoder, build_tokenizer
from encoders.precision import best_device, resolve_precision
from encoders.tokens import TextTokenizer, Tokens
from poolers.moee import MoEE
from records.files import replacing
from training.batches import query_side

Config = dict[str, Any]


@torch.no_grad()
def fit_statistics(encoder: Encoder, tokenizer: TextTokenizer, rows: Sequence[Tokens], budget: int) -> None:
    """Set the statistics of `encoder`'s pooler to those of `rows`, encoded as it stands, without dropout."""
    pooler, training = encoder.pooler, encoder.training
    assert isinstance(pooler, MoEE)
    device = next(encoder.backbone.parameters()).device
    encoder.eval()
    chunks = by_token_budget([len(r) for r in rows], budget, padded=not is_unpadded(encoder.backbone))
    batches = (tokenizer.batch([rows[i] for i in chunk]).to(device) for chunk in chunks)
    pooler.fit([pooler.parts(encoder.states(batch)) for batch in batches])
    encoder.train(training)


def sample(config: Config, triples: Sequence[Triple], tokenizer: TextTokenizer) -> list[Tokens]:
    """Queries and positives of every k-th triple, `pooler.standardise_texts` texts in all or as many as there are."""
    pairs = max(1, config["pooler"]["standardise_texts"] // 2)
    chosen = triples[:: max(1, len(triples) // pairs)][:pairs]
    template, instruction = tokenizer.template, config["data"].get("instruction")
    queries = [(query_side(t, instruction, template), t.query) for t in chosen]
    return tokenizer.pairs([*queries, *((template.asked("", "document"), t.positive) for t in chosen)])


def main(arguments: Sequence[str]) -> None:
    """Fit the untrained encoder that the words describe, and write its statistics to `out`."""
    out = [a.partition("=")[2] for a in arguments if a.startswith("out=")]
    config = plain(composed("train", [a for a in arguments if not a.startswith("out=")]))
    if len(out) != 1 or config["pooler"].get("standardise") != "corpus":
        raise UserError(
            "Give one out=<file> and a pooler that standardises: pooler=moee token_choice.standardise=corpus."
        )
    device = best_device(config["accelerator"])
    encoder = build_encoder(config, resolve_precision(config["precision"], device), device)
    tokenizer = build_tokenizer(config, encoder.backbone.config.get_text_config().max_position_embeddings)
    rows = sample(config, read_triples(config["data"], config["cache_dir"]), tokenizer)
    fit_statistics(encoder, tokenizer, rows, config["token_budget"])
    with replacing(Path(out[0])) as draft:
        save_file(encoder.pooler.state_dict(), draft)
    print(f"{out[0]}: means and standard deviations of {encoder.pooler.embedding_dim} entries over {len(rows)} texts.")


if __name__ == "__main__":
    guard(lambda: main(sys.argv[1:]))
