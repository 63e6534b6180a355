"""The grid that the contract tests run over: every pooler of poolers/ with every attention of conf/attn, and more."""

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
    """Whether the pooler, words behind its name left out, needs a mixture of experts: its cells then run on one."""
    return pooler_class(pooler.split(maxsplit=1)[0]).consumes == "routers"


LANDMARKED = "mean template=landmark template.landmarks=4"
PREPENDED = [("eos template=prepend", "causal"), ("mean template=prepend_prompteol", "causal")]
CONTRACT = [*CELLS, (LANDMARKED, "causal"), (LANDMARKED, "bi"), *PREPENDED]  # with templates that add tokens to a text
