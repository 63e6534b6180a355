"""What the read-ahead probe found, as a table, a figure and a frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE, MOST_DESIGNS, mark
from analysis.grids.formats import interval, score, signed
from analysis.grids.grid import Cell, Grid
from encoders.encoder import Encoder
from encoders.tokens import Batch
from poolers.shared.base import INSTRUCTION, weighted_mean
from representation.encoders_studied import by_design, start_of
from representation.figures import Words, student, styled

if TYPE_CHECKING:
    import pandas as pd

    from representation.encoders_studied import Subject


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """values, low, high: [L]. trained: drawn through; else broken."""

    values: Floats
    low: Floats
    high: Floats
    trained: bool


def layer_lines(words: Words, lines: Mapping[str, Line], what: str) -> Drawing:
    """At most twelve lines over layers 1 to L; the caption names what is left out.

    what: the name of the vertical axis, whose zero is marked.
    """
    return styled(lines, lambda: _drawn(words, lines, what))


def _drawn(words: Words, lines: Mapping[str, Line], what: str) -> Drawing:
    from matplotlib.figure import Figure

    shown = dict(list(lines.items())[:MOST_DESIGNS])
    names = short_names(shown)
    size = 4.2 + inches(names.values()) + 0.5, max(2.8, 0.6 + LINE * len(shown))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    for k, (name, line) in enumerate(shown.items()):
        look, layers = mark(k), np.arange(1, len(line.values) + 1)
        axes.fill_between(layers, line.low, line.high, color=look.colour, alpha=0.15, linewidth=0)
        axes.plot(layers, line.values, marker=look.shape, color=look.colour, markersize=4, label=names[name],
                  linestyle="-" if line.trained else "--", linewidth=1.2)  # fmt: skip
    axes.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("layer")
    axes.set_ylabel(what)
    axes.grid(axis="y")
    figure.legend(loc="outside right center")
    return words.drawing(figure, list(lines)[MOST_DESIGNS:])


LEVEL = 0.95


@dataclass(frozen=True)
class Gain:
    """`mean` of cos(q, s+) - cos(q, s-) over `count` triples, Student's interval of it, and the share of triples above
    zero; those at zero count half."""

    mean: float
    low: float
    high: float
    share: float
    count: int


def pooled_openings(encoder: Encoder, batch: Batch) -> Tensor:
    """[L, B, D] float32: the mean over A's tokens (role INSTRUCTION) of each layer's states, the last normed."""
    weights = (batch.roles == INSTRUCTION).float()
    count = encoder.pooler.num_layers
    return torch.stack(encoder.each_layer(batch, range(count), lambda _, hidden: weighted_mean(hidden, weights)))


def gains(q: Tensor, plus: Tensor, minus: Tensor) -> Floats:
    """[...] of vectors [..., D]: cos(q, s+) - cos(q, s-). Exactly zero where s+ and s- are the same."""
    q, plus, minus = (torch.nn.functional.normalize(x.double(), dim=-1) for x in (q, plus, minus))
    result: Floats = ((q * plus).sum(dim=-1) - (q * minus).sum(dim=-1)).cpu().numpy()
    return result


def gains_of(seeds: Sequence[Floats]) -> list[Gain]:
    """Summarise each layer of the differences [L, n] of n triples, at least two, of one array for each seed.

    A triple's differences are averaged over seeds before the interval over triples is taken; the share is over both.
    """
    return [gain_of(layer) for layer in np.stack(seeds).swapaxes(0, 1)]


def gain_of(values: Floats) -> Gain:
    """Summarise the differences [seeds, n] of one layer."""
    mean = values.mean(axis=0)
    low, high = student(mean, LEVEL)
    share = float((values > 0).mean() + (values == 0).mean() / 2)
    return Gain(float(mean.mean()), low, high, share, len(mean))


@dataclass(frozen=True)
class Ahead:
    """`values`: of each subject [L, n], cos(q, s+) - cos(q, s-) of n triples."""

    subjects: "list[Subject]"
    values: list[Floats]

    @property
    def designs(self) -> dict[str, list[Gain]]:
        """Design -> its layers, over seeds and triples."""
        return {name: gains_of([self.of(s) for s in seeds]) for name, seeds in by_design(self.subjects).items()}

    def of(self, subject: "Subject") -> Floats:
        """[L, n] of one subject."""
        return self.values[[s.label for s in self.subjects].index(subject.label)]

    def learnt(self, design: str) -> tuple[float, float, float] | None:
        """Last layer of a design's runs minus that of their starts: mean and interval over triples, paired.

        None for a start, and where a run's start is not among the subjects.
        """
        runs = by_design(self.subjects)[design]
        starts = [start_of(run, self.subjects, with_attention=True) for run in runs]
        pairs = [(run, start) for run, start in zip(runs, starts, strict=True) if start and run.trained]
        if not pairs:
            return None
        change = np.mean([self.of(run)[-1] - self.of(start)[-1] for run, start in pairs], axis=0)
        return float(change.mean()), *student(change, LEVEL)


def grid(name: str, ahead: Ahead, what: str) -> Grid:
    """The last layer of each design."""
    rows = []
    for label, layers in ahead.designs.items():
        last, learnt = layers[-1], ahead.learnt(label)
        more = f"{signed(learnt[0])} {interval(*learnt[1:])}" if learnt else "-"
        cells = [signed(last.mean), interval(last.low, last.high), score(last.share, 3), more, str(last.count)]
        rows.append([Cell(label), *map(Cell, cells)])
    header = ["Encoder", "Difference", f"{LEVEL:.0%} interval", "q nearer s+", "By training", "Triples"]
    caption = (
        f"cos(q, s+) - cos(q, s-) of the last layer, after the final norm, {what}. Interval: Student's t over triples. "
        "q nearer s+: share of triples, .5 by chance. By training: less that of the run's own start, triple by triple."
    )
    return Grid(name, caption, header, rows, title="Reading ahead: last layer")


def drawing(name: str, ahead: Ahead, what: str) -> Drawing:
    """Every layer of each design; those that are exactly zero are named in the caption."""
    found, trained = ahead.designs, {s.design: s.trained for s in ahead.subjects}
    seeing = {label: layers for label, layers in found.items() if any(gain.mean for gain in layers)}
    blind = [label for label in found if label not in seeing]
    lines = {label: _line(layers, trained[label]) for label, layers in (seeing or found).items()}
    caption = (
        f"cos(q, s+) - cos(q, s-) layer by layer, mean and {LEVEL:.0%} interval {what}. Broken lines: untrained. "
        "Above zero a token's state knows what comes after it."
    )
    if seeing and blind:
        caption += f" Exactly zero in every layer, so not drawn: {'; '.join(blind)}."
    ends = "; ".join(f"{label} {signed(layers[-1].mean)}" for label, layers in found.items())
    words = Words(name, "Reading ahead by layer", caption, f"Differences at the last layer: {ends}.")
    return layer_lines(words, lines, "cos(q, s+) \N{MINUS SIGN} cos(q, s\N{MINUS SIGN})")


def _line(layers: list[Gain], trained: bool) -> Line:
    mean, low, high = (np.array([getattr(gain, key) for gain in layers]) for key in ("mean", "low", "high"))
    return Line(mean, low, high, trained)


def frame(ahead: Ahead) -> "pd.DataFrame":
    """One row a (encoder, seed, layer)."""
    import pandas as pd

    rows = [
        {"encoder": subject.design, "seed": subject.seed, "layer": i + 1, **vars(gain)}
        for subject, values in zip(ahead.subjects, ahead.values, strict=True)
        for i, gain in enumerate(gains_of([values]))
    ]
    return pd.DataFrame(rows)
