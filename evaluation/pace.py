"""The first seconds of encoding measure the encoder, and tell how long the rest will take."""

from collections.abc import Callable

from evaluation.embedding_cache import Meter

PROBE_SECONDS = 3.0
WORTH_SAYING = 60.0  # seconds that remain


class Pace:
    """Says one line once, `PROBE_SECONDS` into the encoding of `expected` tokens, where long enough remains."""

    def __init__(self, title: str, expected: int | None, meter: Meter, say: Callable[[str], None]) -> None:
        self.title, self.expected, self.meter, self.say = title, expected, meter, say
        self.tokens, self.seconds = meter.tokens, meter.seconds  # where it stood
        self.said = expected is None

    def look(self) -> None:
        """Call after each batch of texts."""
        seconds = self.meter.seconds - self.seconds
        if self.said or seconds < PROBE_SECONDS or self.expected is None:
            return
        self.said = True
        tokens = self.meter.tokens - self.tokens
        left = (self.expected - tokens) * seconds / tokens
        if left >= WORTH_SAYING:
            minutes = f"{left / 60:.0f} min" if left < 5400 else f"{left / 3600:.1f} h"
            self.say(
                f"{self.title}: {tokens / seconds:,.0f} tokens/s in the first {seconds:.0f} s of encoding, longest "
                f"texts first; at most {minutes} of encoding remain."
            )
