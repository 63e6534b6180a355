"""Attention as one value: the tokens that each token sees in each layer, made from the `attn` group of conf/."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from cli.errors import UserError, nearest
from cli.limits import Limit, check_limits
from records.manifest import OF_HEADS

PATTERNS = Path(__file__).resolve().parent / "patterns"  # further ones, a file each

# Positions of queries and of keys in their text, which broadcast -> bool: which key each query sees.
MaskFn = Callable[[Tensor, Tensor], Tensor]


def earlier(queries: Tensor, keys: Tensor) -> Tensor:
    """The tokens up to and including the query: causal attention, which every kernel knows."""
    return keys <= queries


def whole_text(queries: Tensor, keys: Tensor) -> Tensor:
    """All tokens of the text: bidirectional attention, which every kernel knows."""
    return torch.ones_like(keys <= queries)


@dataclass(frozen=True)
class Pattern(ABC):
    """The tokens that each token sees. Its fields are settings, the other keys of conf/attn/<name of its file>.yaml."""

    limits: ClassVar[Mapping[str, Limit]] = {}  # setting -> what numbers it may be

    @abstractmethod
    def of_layer(self, layer: int, layers: int) -> MaskFn:
        """Return what tokens see in `layer` (0 is the first) of `layers`: `earlier`, `whole_text`, or a function.

        Positions count the real tokens of a text from zero. A token sees itself always. The function must be the same
        one, or an equal one, whenever it is asked for with the same layer.
        """

    @property
    def name(self) -> str:
        """The name of the YAML, and of the file in `PATTERNS`."""
        return type(self).__module__.rpartition(".")[2]

    @property
    def identity(self) -> dict[str, Any]:
        """Name and settings: what a cache's key and a record hold."""
        return {"name": self.name, **asdict(self)}

    def of_layers(self, layers: int) -> list[MaskFn]:
        """Return what tokens see in each of `layers`."""
        return [self.of_layer(layer, layers) for layer in range(layers)]

    def __str__(self) -> str:
        """As words of a command line: `attn=bi_last attn.layers=1`."""
        return " ".join([f"attn={self.name}", *(f"attn.{key}={value}" for key, value in asdict(self).items())])


class Causal(Pattern):
    """Every layer causal."""

    name = "causal"

    def of_layer(self, layer: int, layers: int) -> MaskFn:
        """Always the tokens before."""
        return earlier


class Bidirectional(Pattern):
    """Every layer bidirectional."""

    name = "bi"

    def of_layer(self, layer: int, layers: int) -> MaskFn:
        """Always the whole text."""
        return whole_text


@dataclass(frozen=True)
class LastBidirectional(Pattern):
    """layers: so many, counted from the last, see both ways. Raises `UserError` where the decoder has fewer."""

    name = "bi_last"
    layers: int
    limits: ClassVar[Mapping[str, Limit]] = {"layers": Limit(1)}

    def of_layer(self, layer: int, layers: int) -> MaskFn:
        """The whole text in the last layers, the tokens before in the others."""
        if self.layers > layers:
            raise UserError(f"attn.layers={self.layers} is more than the {layers} layers of the decoder. Lower it.")
        return whole_text if layer >= layers - self.layers else earlier


BUILT_IN: dict[str, type[Pattern]] = {"causal": Causal, "bi": Bidirectional, "bi_last": LastBidirectional}


def pattern_names() -> list[str]:
    """Return the names of all patterns, sorted."""
    return sorted({*BUILT_IN, *(path.stem for path in PATTERNS.glob("*.py") if path.stem != "__init__")})


def pattern_of(attn: Mapping[str, Any]) -> Pattern:
    """Return the pattern of the `attn` group of a configuration, or of a manifest.

    Raises `UserError` for an unknown name, for settings that the pattern lacks, and for numbers outside its limits.
    """
    name = str(attn["name"])
    if name not in pattern_names():
        raise UserError(f"There is no attention pattern '{name}'. {nearest(name, pattern_names())}")
    cls = BUILT_IN.get(name) or _of_file(name)
    no_settings = {"attn.name", *OF_HEADS}
    settings = {key: value for key, value in attn.items() if f"attn.{key}" not in no_settings}
    wanted = {field.name for field in fields(cls)}
    if settings.keys() != wanted:
        raise UserError(f"attn={name} has the settings {sorted(wanted)}, not {sorted(settings)}. Mend conf/attn.")
    check_limits({"attn": settings}, {f"attn.{key}": limit for key, limit in cls.limits.items()}, {})
    return cls(**settings)


def _of_file(name: str) -> type[Pattern]:
    module = import_module(f"encoders.attention.patterns.{name}")
    classes = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Pattern)]
    return next(cls for cls in classes if cls.__module__ == module.__name__)
