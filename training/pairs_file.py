"""A file of pairs that a command makes, JSON lines, with the facts of its making beside it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cli.errors import UserError
from records.files import write_json, write_text

Config = dict[str, Any]


def check_out(out: Any) -> None:
    """Refuse a file that is there, or that is not named as JSON lines. Raises `UserError`."""
    if not str(out).endswith(".jsonl"):
        raise UserError(f"out={out or ''} must be a file that ends with .jsonl.")
    if Path(out).exists():
        raise UserError(f"out={out} is there. Delete it, or choose another out=.")


def write_pairs(out: str, rows: Iterable[Config], facts: Config | None = None) -> None:
    """Write <out>.json, where there are facts, then <out>, whose being there says that all is done."""
    if facts is not None:
        write_json(Path(f"{out}.json"), facts)
    write_text(Path(out), (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
