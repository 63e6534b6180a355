"""Text and JSON that others wrote: what cannot be read is refused in one line that names the file."""

import json
from pathlib import Path
from typing import Any

from cli.errors import UserError, reading


def read_text(path: Path, remedy: str = "") -> str:
    """Return the text of a file in UTF-8. Raises `UserError` where there is none."""
    with reading(path, remedy):
        return path.read_text(encoding="utf-8-sig")


def read_object(path: Path, remedy: str = "") -> dict[str, Any]:
    """Return the JSON object in a file. Raises `UserError`, with the line, where there is none."""
    with reading(path, remedy):
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object. {remedy}".strip())
    return value
