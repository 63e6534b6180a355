"""From conf/pooler/<name>.yaml to the pooler in poolers/<name>.py; nothing but this package is ever imported."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from cli.errors import UserError, nearest
from cli.limits import check_limits
from poolers.shared.base import Pooler

DESIGNS = Path(__file__).resolve().parent.parent
OUTSIDE = {"name", "trainable"}  # keys of the YAML that are not the pooler's own


def pooler_names() -> list[str]:
    """Return the names of all poolers, sorted."""
    return sorted(p.stem for p in DESIGNS.glob("*.py") if p.stem != "__init__")


def pooler_class(name: str) -> type[Pooler]:
    """The class of the pooler of that name, which must be one of `pooler_names`: the one of its file that no other
    class there derives from. Raises `UserError` where there is no such class, or are several."""
    module = import_module(f"poolers.{name}")
    classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Pooler)]
    own = [cls for cls in classes if cls.__module__ == module.__name__]
    last = [cls for cls in own if not any(other is not cls and issubclass(other, cls) for other in own)]
    if len(last) != 1:
        found = f"has {', '.join(cls.__name__ for cls in last)}" if last else "has no class that derives from Pooler"
        raise UserError(f"poolers/{name}.py {found}. It must hold one pooler (docs/extend.md).")
    return last[0]


def check_pooler(config: Mapping[str, Any]) -> None:
    """Refuse an unknown pooler, and numbers and words that its class does not allow. Raises `UserError`."""
    name = config["name"]
    if name not in pooler_names():
        if name in {path.stem for path in (DESIGNS.parent / "conf" / "pooler").glob("*.yaml")}:
            raise UserError(f"conf/pooler/{name}.yaml has no class yet. Write it to poolers/{name}.py.")
        raise UserError(f"There is no pooler '{name}'. {nearest(name, pooler_names())}")
    cls = pooler_class(name)
    limits = {f"pooler.{key}": limit for key, limit in cls.limits.items()}
    words = {f"pooler.{key}": known for key, known in cls.words.items()}
    check_limits({"pooler": dict(config)}, limits, words)


def refuse_blind(config: Mapping[str, Any], causal: bool) -> None:
    """Refuse a pooler of the first token where that sees no other. causal: all layers up to the one that it reads."""
    if causal and pooler_class(config["name"]).takes_first(config):
        raise UserError(
            f"pooler={config['name']} reads the first token, which sees no other in causal layers: no vector would "
            "depend on its text. Give attn=bi, or another pooler."
        )


def reads_padding(config: Mapping[str, Any]) -> bool:
    """Return whether the pooler of `config`, as in conf/pooler, reads states of padding. An unknown name reads none."""
    return config["name"] in pooler_names() and pooler_class(config["name"]).needs_padding(config)


def build_pooler(
    config: dict[str, Any], hidden_size: int, num_layers: int, seed: int, experts: Sequence[int] = ()
) -> Pooler:
    """Build the pooler of `config`, its parameters drawn from a random stream of its own.

    experts: the number of experts of each MoE layer of the decoder, none in a dense one. Raises `UserError` for an
    unknown name, for settings that the pooler refuses, or for a class that says wrongly whether it has parameters.
    """
    check_pooler(config)
    name, cls = config["name"], pooler_class(config["name"])
    settings = {k: v for k, v in config.items() if k not in OUTSIDE}
    if cls.consumes == "routers":
        if not experts:
            raise UserError(
                f"pooler={name} reads the routers of a mixture of experts, and this decoder is dense, or its router "
                "has no choice (adapter.router=uniform). Give model=tiny_moe or another MoE decoder, read a finished "
                "run of adapter=mixse (evaluate.py variants=[moee:routing]), or take a pooler of hidden states alone."
            )
        settings["experts"] = list(experts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            pooler = cls(hidden_size, num_layers, **settings).requires_grad_(config.get("trainable", True))
        except TypeError as error:
            raise UserError(f"The pooler '{name}' cannot be built from its settings: {error}.") from error
    _check_declared(name, pooler)
    pooler.reads_padding = reads_padding(config)
    return pooler


def _check_declared(name: str, pooler: Pooler) -> None:
    """Refuse a class whose `needs_training` is not what it has: frozen runs, mixtures and objectives go by that."""
    held = [parameter for parameter, _ in pooler.named_parameters()]
    if bool(held) != pooler.needs_training:
        has, mend = f"has parameters ({held[0]}, ...)" if held else "has no parameters", "True" if held else "False"
        raise UserError(
            f"poolers/{name}.py {has}, and its class says needs_training = {pooler.needs_training}. "
            f"Write needs_training: ClassVar[bool] = {mend} there (docs/extend.md)."
        )
