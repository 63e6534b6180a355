"""Tables and the figure of the calibration: rates by world and number of tasks."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis.statistics.arrays import Floats

Rates = dict[str, float]
STYLES = {5: ":", 8: (0, (1, 1)), 12: "-.", 20: (0, (3, 1, 1, 1)), 41: "--", 60: "-"}  # to be told apart in grey
MARKERS = {5: "v", 8: "s", 12: "D", 20: "^", 41: "o", 60: "x"}


def measure(job: Callable[..., Rates], plan: Any, spreads: Any, worlds: Iterable[str]) -> dict[str, dict[int, Rates]]:
    """Return world -> n -> rates, cell by cell in two processes."""
    cells = [(world, n) for world in worlds for n in plan.sizes]
    table: dict[str, dict[int, Rates]] = {}
    with ProcessPoolExecutor(max_workers=2) as pool:
        for (world, n), rates in zip(
            cells, pool.map(partial(job, plan, spreads), *zip(*cells, strict=True)), strict=True
        ):
            table.setdefault(world, {})[n] = rates
    return table


def print_row(*cells: object) -> None:
    """Print a row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_head(*names: str, texts: int = 1) -> None:
    """Print the head of a Markdown table whose first columns, so many, hold texts and the others numbers."""
    print_row(*names)
    print_row(*["---"] * texts, *["--:"] * (len(names) - texts))


def print_table(title: str, table: dict[str, dict[int, Rates]], reps: int, bad: Callable[[float], bool]) -> None:
    """Print one row per (world, method), one column per n; a rate that fails its criterion is bold."""
    sizes = list(next(iter(table.values())))
    print(f"\n### {title}\n")
    print_head("differences", "method", *(f"n = {n}" for n in sizes), texts=2)
    for world, by_n in table.items():
        rows: dict[tuple[float, ...], list[str]] = {}
        for name in by_n[sizes[0]]:
            rows.setdefault(tuple(by_n[n][name] for n in sizes), []).append(name)
        for k, (rates, names) in enumerate(rows.items()):  # methods that agree in every repetition share a row
            print_row(world if k == 0 else "", " = ".join(names), *(_cell(rate, reps, bad) for rate in rates))


def _cell(rate: float, reps: int, bad: Callable[[float], bool]) -> str:
    error = 100 * np.sqrt(max(rate * (1 - rate), 1 / reps) / reps)
    text = f"{100 * rate:.1f} ± {error:.1f}"
    return f"**{text}**" if bad(rate) else text


def above(reps: int) -> Callable[[float], bool]:
    """The criterion of a test: more than 5 % and three standard errors."""
    return lambda rate: rate > 0.05 + 3 * np.sqrt(0.05 * 0.95 / reps)


def below(rate: float) -> bool:
    """The criterion of an interval: less than 94 %."""
    return rate < 0.94


def per_cent(shares: Iterable[float]) -> list[str]:
    """Return shares as cells in per cent."""
    return [f"{100 * share:.1f}" for share in shares]


def coverage_cells(ends: Floats) -> list[str]:
    """Return the cells of intervals [sets, methods, 2]: per cent that hold 0 of each method, and the median widths."""
    low, high = ends[..., 0], ends[..., 1]
    widths = np.median(high - low, axis=0)
    return [*per_cent(((low <= 0) & (high >= 0)).mean(axis=0)), ", ".join(f"{width:.4f}" for width in widths)]


def print_power(table: dict[str, dict[int, Rates]]) -> None:
    """Print one row per (spread, difference, test), one column per n; per cent."""
    sizes = list(next(iter(table.values())))
    print("\n### Power at 5 %\n")
    print_head("SD", "difference", "test", *(f"n = {n}" for n in sizes), texts=3)
    for spread, by_n in table.items():
        for name in by_n[sizes[0]]:
            print_row(spread, *name.split(" ", 1), *(f"{100 * by_n[n][name]:.0f}" for n in sizes))


def draw(table: dict[str, dict[int, Rates]], path: Path) -> None:
    """Draw spread -> n -> "difference test" -> power, one panel per spread, to `path` with .pdf and .png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colours = plt.get_cmap("viridis")
    figure, axes = plt.subplots(1, len(table), figsize=(7.2, 2.9), sharey=True, layout="constrained")
    for axis, (spread, by_n) in zip(axes, table.items(), strict=True):
        for k, (n, rates) in enumerate(by_n.items()):
            points = [(float(name.split()[0]), rate) for name, rate in rates.items() if "signed-rank" in name]
            style = {"linestyle": STYLES.get(n, "-"), "marker": MARKERS.get(n, "o"), "markersize": 4, "linewidth": 1.2}
            colour = colours(0.85 * k / max(1, len(by_n) - 1))
            axis.plot(*zip(*points, strict=True), **style, color=colour, label=f"{n} tasks")
        axis.axhline(0.8, color="0.6", linewidth=0.7)
        axis.set(xlabel="Mean difference in score", title=f"SD of differences {spread.lstrip('0')}", ylim=(-0.03, 1.03))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("Power at .05, two-sided")
    axes[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".pdf", ".png"):
        figure.savefig(path.with_suffix(ending), dpi=150)
    plt.close(figure)
