"""The grid that the contract tests run over: every pooler of poolers/ with every attention of conf/attn."""

from cli.compose import CONF
from poolers.shared.registry import pooler_class, pooler_names

POOLERS = pooler_names()
ATTENTIONS = sorted(p.stem for p in (CONF / "attn").glob("*.yaml"))
# The first token sees nothing under causal attention, which is refused; under bi_last it is read as under bi.
CELLS = [(p, a) for p in POOLERS for a in ATTENTIONS if p != "cls" or a == "bi"]


def reads_routers(pooler: str) -> bool:
    """Whether the pooler needs a mixture of experts, so that its cells run on one."""
    return pooler_class(pooler).consumes == "routers"
