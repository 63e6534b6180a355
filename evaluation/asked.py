"""What mteb asks to embed: its batches of dictionaries as batches of texts, hashed as they go by."""

import json
from collections.abc import Iterable, Iterator
from typing import Any


def texts_of(batches: Iterable[dict[str, Any]], digest: Any, side: str, instruction: str) -> Iterator[list[str]]:
    """Yield the `text` column of each batch and add to `digest`, piece by piece, the bytes of
    `json.dumps([side, instruction, texts])` over all of them."""
    digest.update(f"{json.dumps([side, instruction])[:-1]}, [".encode())
    between = ""
    for batch in batches:
        texts = list(batch["text"])
        if texts:
            digest.update(f"{between}{json.dumps(texts)[1:-1]}".encode())
            between = ", "
        yield texts
    digest.update(b"]]")
