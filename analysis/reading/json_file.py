"""Read a JSON object from a file; what cannot be read is named."""

import json
from pathlib import Path
from typing import Any

from records.errors import UserError


def load_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in `path`. Raises UserError (file, line) where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}). Score it again.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object. Remove the file, or score the task again.")
    return value
