"""What the read-ahead probe found, as a table, a figure and a frame."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.figures.drawing import Drawing
from analysis.formats import interval, score, signed
from analysis.tables.grid import Cell, Grid
from representation.backbones import by_design, start_of
from representation.probes.layer_lines import Line, layer_lines
from representation.probes.read_ahead_gain import LEVEL, Gain, gains_of
from representation.student import student
from representation.styled import Words

if TYPE_CHECKING:
    import pandas as pd

    from representation.subject import Subject

Floats = NDArray[np.float64]


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
