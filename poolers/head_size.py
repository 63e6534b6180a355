"""Sizes of a cross-attention head: given outright, scaled from another width, or matched to a number of parameters."""

from typing import Any

from records.errors import UserError


def sized(width: int, settings: dict[str, Any], extra: int = 0) -> dict[str, Any]:
    """Return the arguments of `CrossAttentionHead` from the keys of conf/head.

    of_width: num_queries and head_dim are meant for that hidden size, and scaled in proportion to `width`.
    match_params: the MLP's inner width is chosen so that the pooler has this many parameters, `extra` included, to
    within half of what one inner unit has (1.5 `width` + 1).
    """
    head = dict(settings)
    of, match = head.pop("of_width", None), head.pop("match_params", None)
    mlp, factor = head.pop("mlp"), head.pop("mlp_factor")
    share = width / of if of else 1.0
    head["num_queries"] = max(1, round(head["num_queries"] * share))
    head_dim = head["head_dim"] or (of or width) // head["num_heads"]
    head["head_dim"] = max(1, round(head_dim * share))
    head["mlp_inner"] = max(1, round(width * factor)) if mlp else 0
    if match is not None:
        head["mlp_inner"] = _matched(width, head, match - extra, mlp)
    return head


def head_parameters(width: int, num_queries: int, num_heads: int, head_dim: int, mlp_inner: int) -> int:
    """Parameters of `CrossAttentionHead`: queries, two norms, four projections; MLP: norm, 2 x inner, back."""
    attention = num_queries * width + 4 * width + 4 * width * num_heads * head_dim
    return attention + (mlp_inner * (3 * width + 2) + 3 * width if mlp_inner else 0)


def _matched(width: int, head: dict[str, Any], wanted: int, mlp: bool) -> int:
    sizes = {k: head[k] for k in ("num_queries", "num_heads", "head_dim")}
    least = head_parameters(width, **sizes, mlp_inner=1)
    if not mlp or wanted < least:
        raise UserError(
            f"pooler.match_params leaves {wanted:,} parameters for the head, which has at least {least:,} "
            "and is matched by its MLP. Give more, lower pooler.num_queries or num_heads * head_dim, or set "
            "pooler.mlp=true."
        )
    return round(1 + (wanted - least) / (3 * width + 2))
