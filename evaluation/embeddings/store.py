"""<cache_dir>/embeddings: which folder of it an encoder's vectors may be read from."""

from pathlib import Path
from typing import Any

from evaluation.embeddings.cache import Encoder, Store
from evaluation.embeddings.memory import EmbeddingMemory
from evaluation.embeddings.on_disk import EmbeddingShards
from records.atomic import write_json
from records.fingerprint import of_value

FORMAT = 1  # of the files
FOLDER = "embeddings"


def open_store(encoder: Encoder, cache_dir: Path | None) -> Store:
    """Return the store of this encoder's vectors below `cache_dir`; None: one in memory.

    The folder is <cache_dir>/embeddings/<fingerprint>/<the rest that can move a bit of a vector>: number formats,
    kernel, device, threads, versions and the code itself. It may be deleted at any time when no evaluation runs.
    """
    if cache_dir is None:
        return EmbeddingMemory()
    rest = identity(encoder)
    folder = cache_dir / FOLDER / encoder.fingerprint[:24] / of_value(rest)[:12]
    if not (folder / "identity.json").is_file():
        write_json(folder / "identity.json", rest)
    return EmbeddingShards(folder, encoder.embedding_dim)


def identity(encoder: Encoder) -> dict[str, Any]:
    """Return all that a vector depends on, besides its instruction and text.

    The fingerprint and the sources are made of what `encoders.identity` says of states, and of the pooler.
    """
    from encoders.identity import versions  # which needs torch; here an encoder is loaded already

    return {
        "format": FORMAT,
        "fingerprint": encoder.fingerprint,
        "settings": encoder.settings,
        "sources": encoder.sources,
        "versions": versions("tokenizers"),  # the key of a vector is its text, so tokens matter here
    }
