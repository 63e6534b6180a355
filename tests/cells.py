"""The grid that the contract tests run over: every pooler of poolers/ with every attention of conf/attn."""

from poolers.registry import pooler_names
from records.config import CONF

POOLERS = pooler_names()
ATTENTIONS = sorted(p.stem for p in (CONF / "attn").glob("*.yaml"))
CELLS = [(p, a) for p in POOLERS for a in ATTENTIONS]
