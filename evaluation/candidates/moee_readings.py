"""`moee:<reading>[/<tokens>[/<layers>]]`: the words for a reading of MoEE on the command line and in tables."""

import re
from typing import Any

Config = dict[str, Any]
NUMBER = r"\d+(?:\.\d+)?"
PATTERN = re.compile(
    rf"moee:(?:(?P<both>hidden|concat|sum)(?:(?<=sum)@(?P<alpha>{NUMBER}))?(?:/(?P<tokens>last|mean)(?:/(?P<layers>last|all|mean))?)?"
    rf"|routing(?:/(?P<routed>last|mean))?)"
)
CHOICES = (
    "moee:<hidden|routing|concat|sum>[/<last|mean>[/<last|all|mean>]] with tokens and then, where hidden states are "
    "read, layers, and moee:sum@<alpha>"
)


def is_moee(name: str) -> bool:
    """Return whether `name` asks for a reading of MoEE."""
    return PATTERN.fullmatch(name) is not None


def moee_pooler(name: str, usual: Config) -> Config:
    """Return the configuration `usual` of pooler=moee with what `name` asks for: what it leaves out is "last"."""
    match = PATTERN.fullmatch(name)
    assert match is not None, name
    tokens = match["tokens"] or match["routed"] or "last"
    return {
        **usual,
        "reading": match["both"] or "routing",
        "alpha": float(match["alpha"] or 1.0),
        "hidden_tokens": tokens,
        "routing_tokens": tokens,
        "hidden_layers": match["layers"] or "last",
    }


def moee_word(pooler: Config) -> str:
    """Return the name of a reading of MoEE: `moee` as published, else with what differs, `moee_hidden_mean_all`."""
    reading, layers = pooler["reading"], pooler["hidden_layers"]
    of_hidden, of_routing = pooler["hidden_tokens"], pooler["routing_tokens"]
    tokens = [of_routing if reading == "routing" else of_hidden]
    if reading in ("concat", "sum") and of_hidden != of_routing:
        tokens = [f"h{of_hidden}", f"r{of_routing}"]
    parts = [f"{pooler['alpha']:g}"] if reading == "sum" and pooler["alpha"] != 1 else []
    if reading != "routing" and layers != "last":
        parts += [*tokens, layers]
    elif tokens != ["last"]:
        parts += tokens
    return "_".join(["moee", *([reading] if reading != "sum" or parts else []), *parts])
