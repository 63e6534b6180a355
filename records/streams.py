"""Separate random streams: changing what draws from one moves nothing in another."""

import hashlib


def stream_seed(seed: int, stream: str, *position: int) -> int:
    """Return a 63-bit seed for `stream` ("data", "dropout", "adapter", "head", ...) at `position` (step, chunk, ...).

    A function of its arguments alone, so an interrupted run draws what the uninterrupted one would have drawn.
    """
    text = ":".join(map(str, (seed, stream, *position)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
