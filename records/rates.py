"""Rates measured on this machine, for forecasts: a JSON object in the cache that commands side by side add to."""

import json
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from records.atomic import write_json
from records.lock import alone_in


def read_rates(path: Path) -> dict[str, Any]:
    """Return what was measured, by setting; nothing where there is no file, or a broken one."""
    with suppress(OSError, ValueError, TypeError):
        return dict(json.loads(path.read_text(encoding="utf-8")))
    return {}


def remember_rate(path: Path, setting: str, **measured: float) -> None:
    """Keep today's rate of a setting, and those that other commands write meanwhile."""
    with alone_in(path.parent, wait=True):
        write_json(path, {**read_rates(path), setting: {**measured, "date": str(date.today())}})
