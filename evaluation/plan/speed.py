"""Tokens a second: what was measured here before, for a forecast; a stated default until then."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records.rates import read_rates, remember_rate

FILE = "rates.json"  # in the cache
DEFAULT = 25_000  # tokens a second of the embedded model on one core
ENOUGH = (10_000, 1.0)  # tokens and seconds of encoding below which nothing is learned
KEYS = ("model", "precision", "accelerator", "threads", "max_length", "attn")


@dataclass(frozen=True)
class Rate:
    """`tokens`: a second. `how`: measured, or not."""

    tokens: float
    how: str


def rate_of(cache_dir: Path, config: dict[str, Any], threads: int | None, devices: int = 1) -> Rate:
    """Return the rate last measured here with this model and setting, or the default.

    Of several devices: theirs where it was measured, else as many times the rate of one.
    """
    rates = read_rates(cache_dir / FILE)
    for count, further in ((devices, ""), (1, f" on one device, times {devices}")):
        measured = rates.get(_key(config, threads, count))
        if measured:
            tokens = measured["tokens_per_second"] * devices / count
            return Rate(tokens, f"as measured here on {measured['date']}{further}")
    of_all = f", times {devices}" if devices > 1 else ""
    return Rate(DEFAULT * devices, f"the rate of the embedded model on one core{of_all}; nothing was measured here yet")


def remember(
    cache_dir: Path, config: dict[str, Any], threads: int | None, *, tokens: int, seconds: float, devices: int = 1
) -> None:
    """Keep a measured rate of all devices together for later forecasts, where enough was encoded."""
    if tokens >= ENOUGH[0] and seconds >= ENOUGH[1]:
        rate = round(tokens / seconds, 1)
        remember_rate(cache_dir / FILE, _key(config, threads, devices), tokens_per_second=rate)


def _key(config: dict[str, Any], threads: int | None, devices: int) -> str:
    words = {"model": config.get("model", {}).get("path"), "attn": config.get("attn", {}).get("name")}
    key = " ".join(f"{key}={({**config, **words, 'threads': threads}).get(key)}" for key in KEYS)
    return key + (f" devices={devices}" if devices > 1 else "")
