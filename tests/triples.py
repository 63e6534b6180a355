"""Thirty (query, positive, negative) triples in a file, for runs of a few steps."""

import json
from pathlib import Path

WORDS = ["sum", "array", "shape", "type", "argument", "value", "index", "column", "row", "matrix"]


def write_triples(path: Path) -> Path:
    """Write the triples as JSON lines to `path` and return it."""
    pairs = [(a, b) for i, a in enumerate(WORDS) for b in WORDS[i + 1 : i + 5]]
    rows = [
        {"query": f"the {a} of the {b}", "positive": f"returned {b} as {a}", "negative": f"a new {a}"} for a, b in pairs
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
