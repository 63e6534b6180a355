"""The results of the read-ahead probe, over seeds, as a table and a figure.

values: of each encoder [L, n], cos(q, s+) - cos(q, s-) of n triples in its layers.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.drawings.drawing import Drawing
from analysis.drawings.fit import inches, short_names
from analysis.drawings.style import BLACK, LINE, MOST_DESIGNS
from analysis.grids.formats import interval, score, signed
from analysis.grids.grid import Cell, Grid
from analysis.statistics.arrays import Floats
from analysis.statistics.intervals import student_interval
from representation.encoders_studied import Studied, by_design, start_of
from representation.figures import look, not_drawn

LEVEL = 0.95


def gains_of(seeds: Sequence[Floats]) -> pd.DataFrame:
    """Return one row per layer of the differences [L, n] of n triples, at least two, of one array per seed.

    mean, low, high: over triples, each averaged over seeds, with Student's interval; share: of triples and seeds above
    zero, those at zero by half; count: of triples.
    """
    every = np.stack(seeds)
    triples = every.mean(axis=0)
    low, high = student_interval(triples, LEVEL)
    share = (every > 0).mean(axis=(0, 2)) + (every == 0).mean(axis=(0, 2)) / 2
    mean, count = triples.mean(axis=1), triples.shape[1]
    return pd.DataFrame({"mean": mean, "low": low, "high": high, "share": share, "count": count})


def gains_by_design(encoders: Sequence[Studied], values: Sequence[Floats]) -> dict[str, pd.DataFrame]:
    """Return design -> `gains_of` its seeds."""
    designs = by_design(encoders)
    return {name: gains_of([values[encoders.index(s)] for s in seeds]) for name, seeds in designs.items()}


def learnt(design: str, encoders: Sequence[Studied], values: Sequence[Floats]) -> tuple[float, float, float] | None:
    """Return the last layer of a design's runs minus that of their starts: mean and interval over triples, paired.

    None for a start, and where a run's start is not among the encoders.
    """
    runs = [run for run in by_design(encoders)[design] if run.trained]
    pairs = [(run, start) for run in runs if (start := start_of(run, encoders))]
    if not pairs:
        return None
    (row,) = gains_of([values[encoders.index(a)][-1:] - values[encoders.index(b)][-1:] for a, b in pairs]).itertuples()
    return row.mean, row.low, row.high


def read_ahead_grid(encoders: Sequence[Studied], values: Sequence[Floats], over: str) -> Grid:
    """Return the last layer of each design."""
    rows = []
    for label, layers in gains_by_design(encoders, values).items():
        last, change = layers.iloc[-1], learnt(label, encoders, values)
        more = f"{signed(change[0])} {interval(*change[1:])}" if change else "-"
        cells = [signed(last["mean"]), interval(last["low"], last["high"]), score(last["share"], 3), more]
        rows.append([Cell(text) for text in (label, *cells, f"{last['count']:.0f}")])
    header = ["Encoder", "Difference", f"{LEVEL:.0%} interval", "q nearer s+", "By training", "Triples"]
    caption = (
        f"cos(q, s+) - cos(q, s-) of the last layer, after the final norm, {over}. Interval: Student's t over triples. "
        "q nearer s+: share of triples, .5 by chance. By training: less that of the run's own start, triple by triple."
    )
    return Grid("read_ahead", caption, header, rows, title="Reading ahead: last layer")


def read_ahead_drawing(encoders: Sequence[Studied], values: Sequence[Floats], over: str) -> Drawing:
    """Draw every layer of each design, at most twelve; those that are exactly zero are named in the caption."""
    designs, trained = gains_by_design(encoders, values), {s.design: s.trained for s in encoders}
    seeing = {label: layers for label, layers in designs.items() if layers["mean"].any()}
    blind = [label for label in designs if label not in seeing]
    caption = (
        f"cos(q, s+) - cos(q, s-) layer by layer, mean and {LEVEL:.0%} interval {over}. Broken lines: untrained. "
        "Above zero a token's state knows what comes after it."
    )
    if seeing and blind:
        caption += f" Exactly zero in every layer, so not drawn: {'; '.join(blind)}."
    lines = seeing or designs
    shown = dict(list(lines.items())[:MOST_DESIGNS])
    names = short_names(shown)
    size = 4.2 + inches(names.values()) + 0.5, max(2.8, 0.6 + LINE * len(shown))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    for k, (label, gains) in enumerate(shown.items()):
        layers, style = gains.index + 1, look(k, 4) | {"linestyle": "-" if trained[label] else "--"}
        axes.fill_between(layers, gains["low"], gains["high"], color=style["color"], alpha=0.15, linewidth=0)
        axes.plot(layers, gains["mean"], label=names[label], **style)
    axes.axhline(0, color=BLACK, linewidth=0.8, zorder=0)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("layer")
    axes.set_ylabel("cos(q, s+) \N{MINUS SIGN} cos(q, s\N{MINUS SIGN})")
    axes.grid(axis="y")
    figure.legend(loc="outside right center")
    ends = "; ".join(f"{label} {signed(layers['mean'].iloc[-1])}" for label, layers in designs.items())
    alt = f"Differences at the last layer: {ends}."
    return Drawing("read_ahead", "Reading ahead by layer", caption + not_drawn(lines, MOST_DESIGNS), alt, figure)
