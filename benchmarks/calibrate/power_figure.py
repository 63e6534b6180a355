"""Power of the signed-rank test against the difference, a line for each number of tasks; pdf and png."""

from pathlib import Path

STYLES = {5: ":", 8: (0, (1, 1)), 12: "-.", 20: (0, (3, 1, 1, 1)), 41: "--", 60: "-"}  # to be told apart in grey
MARKERS = {5: "v", 8: "s", 12: "D", 20: "^", 41: "o", 60: "x"}


def draw(table: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    """Draw spread -> n -> "difference test" -> power, one panel a spread, to `path` with .pdf and .png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colours = plt.get_cmap("viridis")
    figure, axes = plt.subplots(1, len(table), figsize=(7.2, 2.9), sharey=True, layout="constrained")
    for axis, (spread, by_n) in zip(axes, table.items(), strict=True):
        for k, (n, rates) in enumerate(by_n.items()):
            points = [(float(name.split()[0]), rate) for name, rate in rates.items() if "signed-rank" in name]
            axis.plot(
                *zip(*points, strict=True),
                linestyle=STYLES.get(n, "-"),
                marker=MARKERS.get(n, "o"),
                markersize=4,
                linewidth=1.2,
                color=colours(0.85 * k / max(1, len(by_n) - 1)),
                label=f"{n} tasks",
            )
        axis.axhline(0.8, color="0.6", linewidth=0.7)
        axis.set(xlabel="Mean difference in score", title=f"SD of differences {spread.lstrip('0')}", ylim=(-0.03, 1.03))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("Power at .05, two-sided")
    axes[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in (".pdf", ".png"):
        figure.savefig(path.with_suffix(ending), dpi=150)
    plt.close(figure)
