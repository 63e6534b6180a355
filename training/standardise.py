"""Statistics of training texts for a pooler that standardises, where nothing is trained.

python -m training.standardise out=moee.safetensors model=tiny_moe pooler=moee reading.standardise=corpus
python evaluate.py run=null model=tiny_moe pooler=moee reading.standardise=corpus pooler.statistics=moee.safetensors
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpora.triples import Triple
from encoders.tokens import TextTokenizer, Tokens
from records.errors import UserError, guard
from training.infonce import asked_of

Config = dict[str, Any]


def sample(config: Config, triples: Sequence[Triple], tokenizer: TextTokenizer) -> list[Tokens]:
    """Queries and positives of every k-th triple, `pooler.standardise_texts` texts in all or as many as there are."""
    pairs = max(1, config["pooler"]["standardise_texts"] // 2)
    chosen = triples[:: max(1, len(triples) // pairs)][:pairs]
    template, instruction = tokenizer.template, config["data"].get("instruction")
    queries = [(asked_of(t, instruction, template), t.query) for t in chosen]
    return tokenizer.pairs([*queries, *((template.asked("", "document"), t.positive) for t in chosen)])


def main(arguments: Sequence[str]) -> None:
    """Fit the untrained encoder that the words describe, and write its statistics to `out`."""
    from safetensors.torch import save_file

    from corpora.readers import read_triples
    from encoders.corpus_statistics import fit_statistics
    from encoders.loading import build_encoder, build_tokenizer
    from encoders.precision import best_device, resolve_precision
    from records.atomic import replacing
    from records.config import composed, plain
    from records.remembered import remember_below

    out = [a.partition("=")[2] for a in arguments if a.startswith("out=")]
    config = plain(composed("train", [a for a in arguments if not a.startswith("out=")]))
    if len(out) != 1 or config["pooler"].get("standardise") != "corpus":
        raise UserError("Give one out=<file> and a pooler that standardises: pooler=moee reading.standardise=corpus.")
    remember_below(config["cache_dir"])
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
