"""The results of the read-ahead probe as a table, a figure and a frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE, MOST_DESIGNS, mark
from analysis.grids.formats import interval, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.statistics.arrays import Floats
from analysis.statistics.intervals import student_interval
from representation.encoders_studied import Studied, by_design, start_of
from representation.figures import Words, styled

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


def gains_of(seeds: Sequence[Floats]) -> list[Gain]:
    """Summarise each layer of the differences [L, n] of n triples, at least two, of one array for each seed.

    A triple's differences are averaged over seeds before the interval over triples is taken; the share is over both.
    """
    gains = []
    for values in np.stack(seeds).swapaxes(0, 1):
        share = float((values > 0).mean() + (values == 0).mean() / 2)
        gains.append(Gain(*_mean_and_interval(values.mean(axis=0)), share, values.shape[1]))
    return gains


def _mean_and_interval(values: Floats) -> tuple[float, float, float]:
    low, high = student_interval(values[None], LEVEL)
    return float(values.mean()), float(low[0]), float(high[0])


@dataclass(frozen=True)
class Ahead:
    """`values`: of each encoder [L, n], cos(q, s+) - cos(q, s-) of n triples."""

    encoders: Sequence[Studied]
    values: list[Floats]

    @property
    def designs(self) -> dict[str, list[Gain]]:
        """Design -> its layers, over seeds and triples."""
        return {name: gains_of([self.of(s) for s in seeds]) for name, seeds in by_design(self.encoders).items()}

    def of(self, studied: Studied) -> Floats:
        """[L, n] of one encoder."""
        return self.values[list(self.encoders).index(studied)]

    def learnt(self, design: str) -> tuple[float, float, float] | None:
        """Last layer of a design's runs minus that of their starts: mean and interval over triples, paired.

        None for a start, and where a run's start is not among the encoders.
        """
        runs = [run for run in by_design(self.encoders)[design] if run.trained]
        pairs = [(run, start) for run in runs if (start := start_of(run, self.encoders))]
        if not pairs:
            return None
        return _mean_and_interval(np.mean([self.of(run)[-1] - self.of(start)[-1] for run, start in pairs], axis=0))


def grid(name: str, ahead: Ahead, over: str) -> Grid:
    """The last layer of each design."""
    rows = []
    for label, layers in ahead.designs.items():
        last, learnt = layers[-1], ahead.learnt(label)
        more = f"{signed(learnt[0])} {interval(*learnt[1:])}" if learnt else "-"
        cells = [signed(last.mean), interval(last.low, last.high), score(last.share, 3), more, str(last.count)]
        rows.append([Cell(label), *map(Cell, cells)])
    header = ["Encoder", "Difference", f"{LEVEL:.0%} interval", "q nearer s+", "By training", "Triples"]
    caption = (
        f"cos(q, s+) - cos(q, s-) of the last layer, after the final norm, {over}. Interval: Student's t over triples. "
        "q nearer s+: share of triples, .5 by chance. By training: less that of the run's own start, triple by triple."
    )
    return Grid(name, caption, header, rows, title="Reading ahead: last layer")


def drawing(name: str, ahead: Ahead, over: str) -> Drawing:
    """Every layer of each design, at most twelve; those that are exactly zero are named in the caption."""
    designs, trained = ahead.designs, {s.design: s.trained for s in ahead.encoders}
    seeing = {label: layers for label, layers in designs.items() if any(gain.mean for gain in layers)}
    blind = [label for label in designs if label not in seeing]
    caption = (
        f"cos(q, s+) - cos(q, s-) layer by layer, mean and {LEVEL:.0%} interval {over}. Broken lines: untrained. "
        "Above zero a token's state knows what comes after it."
    )
    if seeing and blind:
        caption += f" Exactly zero in every layer, so not drawn: {'; '.join(blind)}."
    ends = "; ".join(f"{label} {signed(layers[-1].mean)}" for label, layers in designs.items())
    words = Words(name, "Reading ahead by layer", caption, f"Differences at the last layer: {ends}.")
    lines = seeing or designs
    return styled(lines, lambda: _drawn(words, lines, trained))


def _drawn(words: Words, lines: dict[str, list[Gain]], trained: dict[str, bool]) -> Drawing:
    shown = dict(list(lines.items())[:MOST_DESIGNS])
    names = short_names(shown)
    size = 4.2 + inches(names.values()) + 0.5, max(2.8, 0.6 + LINE * len(shown))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    for k, (label, gains) in enumerate(shown.items()):
        mean, low, high = (np.array([getattr(gain, key) for gain in gains]) for key in ("mean", "low", "high"))
        colour, layers = mark(k).colour, np.arange(1, len(gains) + 1)
        axes.fill_between(layers, low, high, color=colour, alpha=0.15, linewidth=0)
        look: dict[str, Any] = {"marker": mark(k).shape, "linestyle": "-" if trained[label] else "--"}
        axes.plot(layers, mean, color=colour, markersize=4, linewidth=1.2, label=names[label], **look)
    axes.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("layer")
    axes.set_ylabel("cos(q, s+) \N{MINUS SIGN} cos(q, s\N{MINUS SIGN})")
    axes.grid(axis="y")
    figure.legend(loc="outside right center")
    return words.drawing(figure, list(lines)[MOST_DESIGNS:])


def frame(ahead: Ahead) -> pd.DataFrame:
    """One row per (encoder, seed, layer)."""
    rows = [
        {"encoder": studied.design, "seed": studied.seed, "layer": i + 1, **vars(gain)}
        for studied, values in zip(ahead.encoders, ahead.values, strict=True)
        for i, gain in enumerate(gains_of([values]))
    ]
    return pd.DataFrame(rows)
