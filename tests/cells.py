"""The grid that the contract tests run over: every pooler of poolers/ with every attention of conf/attn."""

from omegaconf import OmegaConf

from cli.compose import CONF
from poolers.shared.registry import pooler_class, pooler_names

POOLERS = pooler_names()
ATTENTIONS = sorted(p.stem for p in (CONF / "attn").glob("*.yaml"))


def takes_first(pooler: str) -> bool:
    """Whether the pooler reads the first token, which sees nothing under causal attention: that is refused."""
    return pooler_class(pooler).takes_first(OmegaConf.load(CONF / "pooler" / f"{pooler}.yaml"))


CELLS = [(p, a) for p in POOLERS for a in ATTENTIONS if a == "bi" or not takes_first(p)]  # bi_last is read as bi is


def reads_routers(pooler: str) -> bool:
    """Whether the pooler needs a mixture of experts, so that its cells run on one."""
    return pooler_class(pooler).consumes == "routers"
