"""Tokens a second: what was measured here before, for a forecast; a stated default until then."""

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from records.atomic import write_json

DEFAULT = 25_000  # tokens a second of the embedded model on one core
ENOUGH = (10_000, 1.0)  # tokens and seconds of encoding below which nothing is learned
KEYS = ("model", "precision", "accelerator", "threads", "max_length", "attn")


@dataclass(frozen=True)
class Rate:
    """`tokens`: a second. `how`: measured, or not."""

    tokens: float
    how: str


def rate_of(cache_dir: Path, config: dict[str, Any], threads: int | None) -> Rate:
    """Return the rate last measured here with this model and setting, or the default."""
    held = _read(cache_dir).get(_key(config, threads))
    if held:
        return Rate(held["tokens_per_second"], f"as measured here on {held['date']}")
    return Rate(DEFAULT, "the rate of the embedded model on one core; nothing was measured here yet")


def remember(cache_dir: Path, config: dict[str, Any], threads: int | None, tokens: int, seconds: float) -> None:
    """Keep a measured rate for later forecasts, where enough was encoded."""
    if tokens >= ENOUGH[0] and seconds >= ENOUGH[1]:
        held = {"tokens_per_second": round(tokens / seconds, 1), "date": str(date.today())}
        write_json(_path(cache_dir), {**_read(cache_dir), _key(config, threads): held})


def _key(config: dict[str, Any], threads: int | None) -> str:
    own = {"threads": threads, "model": config.get("model", {}).get("path"), "attn": config.get("attn", {}).get("name")}
    return " ".join(f"{key}={({**config, **own}).get(key)}" for key in KEYS)


def _path(cache_dir: Path) -> Path:
    return cache_dir / "rates.json"


def _read(cache_dir: Path) -> dict[str, Any]:
    try:
        held = json.loads(_path(cache_dir).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}
